/* job_parts.h - the parts of a training job, built in order; for job*.c, loop.c and tune_*.c only. */
#ifndef TG_TRAIN_JOB_PARTS_H
#define TG_TRAIN_JOB_PARTS_H

#include "train/checkpoint.h"
#include "train/job.h"
#include "train/outlier.h"
#include "train/recorder.h"
#include "train/step.h"
#include "train/step_trace.h"
#include "train/straggler.h"

#include "monitor/monitor.h"
#include "run/control.h"
#include "run/metrics.h"

/* What ranks spend their steps on: the first one's record and rule. */
typedef struct tg_job_phases {
    tg_rank_steps file;
    tg_straggler rule;
} tg_job_phases;

/* Trials of --workers auto (job_workers.c). */
typedef struct tg_auto_workers tg_auto_workers;

/* The last steps, some of which are still to be kept. */
enum { TG_JOB_WINDOWS = 4 };
typedef struct tg_job_window {
    tg_step_window step;
    tg_comm_record *records; /* what step.records points to; NULL without ranks */
    bool keep, added;
} tg_job_window;

/* Timelines that a job keeps (job_trace.c). */
typedef struct tg_job_timeline {
    tg_step_trace *file; /* NULL: nothing is recorded */
    tg_job_window windows[TG_JOB_WINDOWS];
    int64_t window_count;
    int64_t begin_ns,
        exchange_cpu_ns;         /* when the step began; of the thread that moves messages, then */
    int64_t keep_until;          /* steps up to it are kept */
    tg_control_follower control; /* who asks while the job runs */
    int64_t request, asked_ns;   /* the last wish that was followed; when somebody looked */
    tg_outlier rule;
    int64_t outliers, next_outlier;
    double worst_s;               /* the longest outlier that was kept */
    bool dirty;                   /* something is kept that is not written */
    int64_t written_ns, write_ns; /* when, and how long that took */
} tg_job_timeline;

/* Everything a job holds; zeroed, then filled by tg_job_open in the order of the fields. */
typedef struct tg_job {
    const tg_train_options *options;
    const tg_train_watch *watch;
    const char *run_path;

    tg_comm *comm; /* tg_comm_self() without other ranks */
    tg_ranks ranks;
    size_t group_batch, share; /* photos of a micro-batch: of all ranks, at most of this one */
    int stop;                  /* a rank's wish to stop that all know of */
    bool together;             /* all ranks see one run directory */

    tg_stream *stream;
    const tg_kern *kern;
    tg_kern traced; /* kern is this where the job records */
    tg_recorder recorder;
    tg_dtype dtype;
    int workers;

    tg_dataset train, val; /* val.count 0: none */
    tg_network student, teacher;
    tg_preprocess teacher_preprocess;
    tg_preprocess stored_preprocess; /* of the weights to start with; width_px 0: made anew */
    uint32_t *teacher_class;         /* remapping of the teacher's classes, or NULL */
    uint32_t *teacher_labels; /* teacher's class k is the data's class teacher_labels[k], or NULL */

    tg_param_table table; /* student's and the projection's parameters */
    tg_projection projection;
    tg_arena state_memory;          /* grads, m, v, average */
    float *grads, *m, *v, *average; /* sharded: m, v, average of this rank's pieces alone */
    float *whole_average; /* all of it, as of the last tg_job_gather_model; sharded: where gradients
                             are, which nobody needs between windows */
    tg_optimizer optimizer;
    tg_schedule schedule;

    tg_step step;
    tg_arena arena;
    tg_loader *loader;
    tg_loader_options loading;
    tg_auto_workers *auto_workers; /* NULL: as many workers as were asked for */
    int64_t steps_per_epoch, total_updates;

    double program_bytes, student_heap_bytes, teacher_heap_bytes; /* as they were opened */
    tg_memory predicted;
    tg_memory_report memory;
    bool memory_known; /* the first step has been looked at */

    char *checkpoint_folder;
    tg_metrics metrics;
    bool metrics_open;
    tg_job_timeline timeline;
    tg_monitor *monitor;  /* NULL but on the first rank of each machine */
    tg_job_phases phases; /* zeroed but on the first of several ranks */
    tg_train_state state;
    bool saved; /* the state as it is now, with its score, is a checkpoint */
    bool
        owes_evaluation; /* the checkpoint that was resumed has no score, and there are photos for one */
    tg_evaluation best, last; /* of the student, by this process; zeroed: none */
    tg_evaluation teacher_score;
    uint64_t images_done; /* by this process */
    double train_seconds;
    bool complete; /* it ended as it should */
} tg_job;

/* All but what stands on the run directory: what it holds, and where training begins. */
tg_status tg_job_open(tg_job *job) TG_MUST_CHECK;
void tg_job_close(tg_job *job);

/* Its first parts: communicator, stream, type of activations; then, with the lists of photos there, networks,
 * state, loader, optimizer and step. A list without photos (train/tune_bed.h) gets no loader. */
tg_status tg_job_open_device(tg_job *job) TG_MUST_CHECK;
tg_status tg_job_build(tg_job *job) TG_MUST_CHECK;

/* Data sets under one class list (job_data.c). */
tg_status tg_job_open_data(tg_job *job) TG_MUST_CHECK;
/* What the network of --teacher (not NULL) is opened or described with; TG_ERROR_INPUT when it is no path. */
tg_status tg_job_teacher_request(const tg_train_options *options, tg_dtype dtype,
                                 tg_network_request *out) TG_MUST_CHECK;
/* Student, teacher, preprocessing, class names (job_networks.c). */
tg_status tg_job_open_networks(tg_job *job) TG_MUST_CHECK;
/* The loader of the training split. */
tg_status tg_job_open_loader(tg_job *job) TG_MUST_CHECK;

/* Refuses what the run would destroy: a teacher, start weights or a folder in OUTPUT/model
 * (job_resume.c). */
tg_status tg_job_check_output(const tg_job *job) TG_MUST_CHECK;
/* A fresh state, or that of --resume; refuses a folder that another run has used. */
tg_status tg_job_resume(tg_job *job) TG_MUST_CHECK;

/* Nonzero when whoever started the job wants it to save and leave. */
int tg_job_stop_wanted(const tg_job *job);

/* Scores the student with `params` (its own or the average), or the teacher, on the validation split. */
tg_status tg_job_evaluate(tg_job *job, const float *params, tg_evaluation *out) TG_MUST_CHECK;
tg_status tg_job_evaluate_teacher(tg_job *job, tg_evaluation *out) TG_MUST_CHECK;

/* The tensors of a checkpoint as this rank holds them. */
tg_train_tensors tg_job_tensors(tg_job *job);

/* Other ranks (job_ranks.c). All of them do nothing in a job of one rank. */
static inline bool tg_job_has_ranks(const tg_job *job)
{
    return job->comm->size > 1;
}
/* Records, checkpoints and models are the first rank's to write. */
static inline bool tg_job_is_first(const tg_job *job)
{
    return job->comm->rank == 0;
}
/* How gradients and state are dealt out; before tg_job's state memory is taken. */
tg_status tg_job_open_ranks(tg_job *job) TG_MUST_CHECK;
/* Elements of moments and average that this rank keeps. */
size_t tg_job_own_elements(const tg_job *job);
/* Copies this rank's pieces of `whole` to packed storage. */
void tg_job_pack(const tg_job *job, const float *whole, float *out_packed);
/* Refuses ranks that would not compute the same: names who differs, and in what. */
tg_status tg_job_compare_ranks(tg_job *job) TG_MUST_CHECK;
/* What is exported, of all ranks and exact: the weight average into whole_average; without one the parameters, which
 * shares may have rounded here (tg_ranks_complete). */
tg_status tg_job_gather_model(tg_job *job) TG_MUST_CHECK;
/* Finds out whether all ranks see one run directory (job->together). Every rank calls it. */
tg_status tg_job_look_around(tg_job *job) TG_MUST_CHECK;
/* Around work whose length differs much between ranks: reading and writing of state. */
void tg_job_be_patient(tg_job *job, bool patient);
/* What the first rank did is everyone's: its status (an error here stays one) and its answer. */
tg_status tg_job_follow_first(tg_job *job, const char *what, tg_status status, void *inout_answer,
                              size_t bytes) TG_MUST_CHECK;

/* Memory of all ranks, predicted and allocated, in the log and to the watch (job_memory.c); the second,
 * after a step, what it took at most. Every rank calls them. */
tg_status tg_job_tell_memory(tg_job *job) TG_MUST_CHECK;
tg_status tg_job_tell_peak(tg_job *job) TG_MUST_CHECK;

/* What is trained on what, to the watch. */
void tg_job_tell_subject(tg_job *job);

/* Pixels of the largest of a few photos, spread over the list; those that cannot be read say nothing. */
double tg_job_photo_px(const tg_dataset *data);
/* How many of the ranks run on this one's machine. */
int tg_job_ranks_here(const tg_comm *comm);

/* Phases of all ranks (job_phases.c): ranks.jsonl, and who is slow. */
tg_status tg_job_open_phases(tg_job *job, bool resumed) TG_MUST_CHECK;
void tg_job_close_phases(tg_job *job);
/* After an update: takes what the others told of the step before, and keeps this rank's own for the next
 * meeting. */
void tg_job_note_phases(tg_job *job, const tg_step_record *record, size_t own_images);
/* The last step's are told and written now; every rank calls it. */
tg_status tg_job_settle_phases(tg_job *job) TG_MUST_CHECK;
/* One line on the whole run. */
void tg_job_sum_up_phases(tg_job *job);

/* Timelines of steps (job_trace.c); every rank calls open. begin: before the first batch of a step; end: after its update;
 * note: when its record is made; close: writes what there is. */
tg_status tg_job_open_trace(tg_job *job) TG_MUST_CHECK;
void tg_job_begin_recording(tg_job *job);
void tg_job_end_recording(tg_job *job, const tg_step_report *report);
void tg_job_note_timeline(tg_job *job, const tg_step_record *record);
void tg_job_close_trace(tg_job *job);
/* Step `step`, of those just done, took `seconds`, the longest of all ranks: where that is far beyond the usual, it is kept
 * with the one before and two after. Called with the same on all ranks, these keep the same steps. */
void tg_job_judge_step(tg_job *job, int64_t step, double seconds);
/* Steps from here up to `step` are kept: somebody asked for them. */
void tg_job_trace_until(tg_job *job, int64_t step);

/* One for each machine (job_monitor.c); every rank calls open, which fails only with its peers. close: says what it cost. */
tg_status tg_job_open_monitor(tg_job *job) TG_MUST_CHECK;
void tg_job_close_monitor(tg_job *job);

/* Operations of all steps (job_operations.c): trace/operations-rank-N.json. open: the file of a run that goes on, or none;
 * note: a step is over; close: writes the last of it, with the machine's best matrix product where the job was complete and
 * took long enough; it needs the stream alone. */
tg_status tg_job_open_operations(tg_job *job) TG_MUST_CHECK;
void tg_job_note_operations(tg_job *job, const tg_step_record *record);
void tg_job_close_operations(tg_job *job);

/* --workers auto (job_workers.c): numbers of loader workers are tried while training goes on; RUN/tune.json. Every rank
 * calls open, which takes a resumed run's choice up, and note, after each step. The others say when an epoch or the first
 * batch of a step begins, and that no step follows for now. All do nothing where a number was asked for. */
tg_status tg_job_open_workers(tg_job *job) TG_MUST_CHECK;
void tg_job_begin_epoch_workers(tg_job *job);
void tg_job_begin_step_workers(tg_job *job);
tg_status tg_job_note_workers(tg_job *job, const tg_step_record *step) TG_MUST_CHECK;
void tg_job_end_epoch_workers(tg_job *job);
void tg_job_close_workers(tg_job *job);

/* Trains from job->state to the end (loop.c). */
tg_status tg_job_train(tg_job *job) TG_MUST_CHECK;

#endif
