/* tagine train and tagine distill: from options to a finished run directory. */
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_idle.h"
#include "cli/options_train.h"
#include "cli/rank_cores.h"
#include "cli/resume_check.h"
#include "cli/same_options.h"
#include "cli/signal.h"
#include "kern/level.h"
#include "os/clock.h"
#include "os/file.h"
#include "run/run_info.h"
#include "train/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For the first rank to write why another one left. */
#define FIRST_SPEAKS_S 2.0

static const tg_command_group TRAIN_GROUP_LIST[] = {TG_TRAIN_GROUPS};
static const tg_command_group DISTILL_GROUP_LIST[] = {TG_DISTILL_GROUP, TG_TRAIN_GROUPS};

static void show_step(void *user, const tg_train_progress *p, const tg_step_record *record)
{
    (void)user;
    char what[64];
    tg_text note = {0};
    snprintf(what, sizeof what, "epoch %lld/%lld", (long long)p->epoch + 1, (long long)p->epochs);
    tg_text_append_format(&note, "loss %.3f  %.1f images/s  ", record->loss, p->images_per_s);
    tg_console_append_duration(&note, p->seconds_left);
    tg_text_append_string(&note, " left");
    if (p->slow_rank >= 0 && p->slow_share > 0)
        tg_text_append_format(&note, "  rank %d slow: +%.0f %% in %s", p->slow_rank,
                              100 * p->slow_share, p->slow_phase);
    tg_console_progress(what, (uint64_t)p->step, (uint64_t)p->steps_per_epoch,
                        tg_text_string(&note));
    tg_text_done(&note);
}

static void show_evaluating(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    tg_console_progress("evaluating", done, total, "");
}

/* What another rank was asked by signal counts as asked of this one. */
static void adopt_stop(void *user, int stop)
{
    (void)user;
    tg_signal_adopt(stop);
}

static int stop_wanted(void *user)
{
    (void)user;
    return tg_signal_stop();
}

/* Everything about the run that is written down beside the records. */
typedef struct session {
    tg_run_dir dir;
    tg_run_log log;
    tg_run_info info;
    tg_run_pair libraries[1], kernels[4];
    tg_run_memory_row memory[TG_MEMORY_ROWS];
    char start[TG_CLOCK_ISO_BYTES], library[TG_DEV_LIBRARY_BYTES];
    const tg_invocation *invocation;
    const tg_train_options *options;
    const tg_rank_cores *cores;
    bool opened, logging;
    bool begun; /* the records in the folder are this run's; known to ranks other than the first */
    int rank;
} session;

static void show_evaluation(void *user, const char *what, int64_t epoch, const tg_evaluation *e)
{
    const session *s = user;
    if (strcmp(what, "student") == 0)
        tg_log_info("epoch %lld/%lld  validation: top-1 %.2f %%  top-5 %.2f %%  loss %.4f  (%llu "
                    "photos)",
                    (long long)epoch, (long long)s->options->recipe.epochs, e->top1, e->top5,
                    e->loss, (unsigned long long)e->images);
}

static tg_status write_job(const tg_invocation *invocation, const session *s)
{
    tg_text yaml = {0};
    tg_options_print(invocation->options, &yaml);
    tg_status status = tg_text_check(&yaml, "job.yaml");
    if (status == TG_OK)
        status = tg_run_dir_write_job(&s->dir, tg_text_string(&yaml), yaml.length);
    tg_text_done(&yaml);
    return status;
}

static void describe(const tg_invocation *invocation, const tg_train_options *options, session *s)
{
    tg_dev_library(s->library);
    s->libraries[0] = (tg_run_pair){"matrix_products", s->library};
    tg_cpu_level level = tg_cpu_level_detect();
    if (options->cpu_cap < level)
        level = options->cpu_cap;
    tg_dtype dtype = options->recipe.amp && level >= TG_CPU_AVX512_BF16 ? TG_BF16 : TG_F32;
    s->kernels[0] = (tg_run_pair){"instruction_set", tg_cpu_level_name(level)};
    s->kernels[1] =
        (tg_run_pair){"attention", tg_cpu_level_name(tg_kern_attention_level(level, dtype))};
    s->kernels[2] = (tg_run_pair){"rows", tg_cpu_level_name(tg_kern_rows_level(level))};
    s->kernels[3] = (tg_run_pair){"products", tg_kern_products(level, dtype)};
    s->info.machine = s->cores->machine;
    s->info.each = s->cores->ranks;
    s->info.command = invocation->command->name;
    s->info.version = TG_PROGRAM_VERSION;
    s->info.libraries = s->libraries;
    s->info.library_count = 1;
    s->info.kernels = s->kernels;
    s->info.kernel_count = 4;
    s->info.ranks = options->comm->size;
    s->info.threads = options->threads;
    s->info.workers = tg_train_options_workers(options);
    s->info.start = s->start;
}

/* From here on the folder's records are this run's. */
static tg_status begin_records(void *user)
{
    session *s = user;
    if (s->info.start)
        return TG_OK;
    TG_TRY(tg_resume_check(&s->dir, s->invocation));
    TG_TRY(tg_run_dir_remove_failure(&s->dir));
    TG_TRY(write_job(s->invocation, s));
    tg_clock_iso(s->start);
    describe(s->invocation, s->options, s);
    return tg_run_info_write(&s->dir, &s->info);
}

static tg_status note_beginning(void *user)
{
    ((session *)user)->begun = true;
    return TG_OK;
}

/* run.json as it is known from here on; that it could not be written is no reason to stop. */
static void keep_memory(void *user, const tg_memory_report *report)
{
    session *s = user;
    for (int row = 0; row < TG_MEMORY_ROWS; row++)
        s->memory[row] = (tg_run_memory_row){.name = tg_memory_row_key((tg_memory_row)row),
                                             .predicted_bytes = report->predicted.bytes[row],
                                             .least_bytes = report->least.bytes[row],
                                             .most_bytes = report->most.bytes[row]};
    s->info.memory = (tg_run_memory){.rows = s->memory,
                                     .row_count = TG_MEMORY_ROWS,
                                     .predicted_bytes = report->predicted_bytes,
                                     .available_bytes = report->available_bytes,
                                     .peak_rss_bytes = report->peak_rss_bytes};
    if (s->info.start && tg_run_info_write(&s->dir, &s->info) != TG_OK)
        tg_log_warning("run.json was not completed: %s", tg_error_message());
}

static bool has(const char *folder, const char *name)
{
    char *path = tg_path_join(folder, name);
    bool there = path && tg_file_exists(path);
    free(path);
    return there;
}

/* Where an earlier run left its records they stay as they are until this one is known to begin. */
static tg_status open_session(const char *path, const tg_comm *comm, session *s)
{
    TG_TRY(tg_run_dir_open(path, &s->dir));
    s->opened = true;
    TG_TRY(tg_run_log_open(&s->dir, 0, &s->log));
    s->logging = true;
    tg_console_attach(&s->log);
    tg_log_info("run: %s", path);
    tg_rank_cores_log(s->cores, comm);
    return has(path, "run.json") || has(path, "model") ? TG_OK : begin_records(s);
}

/* Ranks other than the first keep a log; what is said to people is the first's to say. */
static tg_status join_session(const char *path, int rank, session *s)
{
    TG_TRY(tg_run_dir_join(path, &s->dir));
    s->opened = true;
    TG_TRY(tg_run_log_open(&s->dir, rank, &s->log));
    s->logging = true;
    tg_console_attach(&s->log);
    return TG_OK;
}

/* The first rank opens the run's directory, then the others join. */
static tg_status open_sessions(const char *path, tg_comm *comm, session *s)
{
    s->rank = comm->rank;
    tg_status status = comm->rank == 0 ? open_session(path, comm, s) : TG_OK;
    TG_TRY(tg_comm_agree(comm, "the run's directory", status));
    status = comm->rank == 0 ? TG_OK : join_session(path, comm->rank, s);
    return tg_comm_agree(comm, "logs", status);
}

/* Where the first rank cannot, one of the others writes how the run ended. Who does says it, too. */
static void stand_in_for_first(session *s, tg_status status, const char *reason)
{
    char end[TG_CLOCK_ISO_BYTES];
    tg_text lines = {0};
    tg_run_log_last(&s->log, &lines);
    tg_clock_iso(end);
    tg_status written = tg_run_dir_add_failure(&s->dir, reason, tg_text_string(&lines));
    if (written >= 0)
        tg_console_settle(written == TG_OK);
    if (written == TG_OK)
        written = tg_run_info_complete(&s->dir, end, tg_status_exit_code(status), reason);
    if (written < 0)
        tg_log_own_warning("how the run ended was not written: %s", tg_error_message());
    tg_text_done(&lines);
}

/* Tells the others what ended this rank, and stays until the first has written it, because a launcher may end
 * all of them as soon as one is gone. */
static void leave_first(session *s, tg_status status, const char *reason)
{
    char whose[TG_ERROR_BYTES + TG_COMM_HOST_BYTES + 32];
    tg_comm *comm = s->options->comm;
    char *failure = tg_run_dir_path(&s->dir, "failure");
    tg_comm_leave(comm, reason);
    snprintf(whose, sizeof whose, "rank %d on %s: %s", comm->rank, tg_comm_host(comm, comm->rank),
             reason);
    if (s->begun && !(failure && tg_file_await(failure, FIRST_SPEAKS_S)))
        stand_in_for_first(s, status, whose);
    free(failure);
}

/* The end of another rank than the first is in its log; where the first one is gone, it is the run's failure. */
static void leave_word(session *s, tg_status status, const char *reason)
{
    tg_run_log_line(&s->log, status == TG_ERROR_STOPPED ? TG_LOG_INFO : TG_LOG_ERROR, reason);
    if (status == TG_ERROR_PEER && tg_comm_lost(s->options->comm, 0))
        stand_in_for_first(s, status, reason);
    (void)tg_fail(status, "%s", reason);
    if (status != TG_ERROR_PEER && status != TG_ERROR_STOPPED && !tg_comm_agreed(s->options->comm))
        leave_first(s, status, reason);
}

/* How it ended: run.json, and `failure` when it failed. The job's own message stays recorded. */
static void close_session(session *s, tg_status status)
{
    char end[TG_CLOCK_ISO_BYTES], reason[TG_ERROR_BYTES];
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    if (s->opened && s->info.start) {
        tg_clock_iso(end);
        s->info.end = end;
        s->info.exit_code = tg_status_exit_code(status);
        if (status == TG_ERROR_STOPPED)
            s->info.exit_code = tg_signal_exit_code();
        s->info.failure = status < 0 ? reason : NULL;
        if (tg_run_info_write(&s->dir, &s->info) != TG_OK)
            tg_log_warning("run.json was not completed: %s", tg_error_message());
        if (status < 0 && status != TG_ERROR_STOPPED) {
            tg_text lines = {0};
            tg_run_log_last(&s->log, &lines);
            if (tg_run_dir_write_failure(&s->dir, reason, tg_text_string(&lines)) != TG_OK)
                tg_log_warning("the reason was not written: %s", tg_error_message());
            tg_text_done(&lines);
        }
    }
    if (s->opened && s->logging && s->rank > 0 && status < 0)
        leave_word(s, status, reason);
    tg_console_attach(NULL);
    if (s->logging)
        tg_run_log_close(&s->log);
    if (s->opened)
        tg_run_dir_close(&s->dir);
    if (status < 0)
        (void)tg_fail(status, "%s", reason);
}

static void print_json(const char *path, const tg_train_result *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "output", path);
    tg_json_put_uint(&w, "parameters", r->parameters);
    tg_json_put_int(&w, "epochs", r->epochs);
    tg_json_put_int(&w, "steps", r->updates);
    tg_json_put_double(&w, "train_s", r->seconds);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    if (r->evaluation.images) {
        tg_json_put_double(&w, "val_top1", r->evaluation.top1);
        tg_json_put_double(&w, "val_top5", r->evaluation.top5);
        tg_json_put_double(&w, "val_loss", r->evaluation.loss);
    }
    if (r->teacher.images)
        tg_json_put_double(&w, "teacher_top1", r->teacher.top1);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_result(const char *path, const tg_train_result *r, tg_text *out)
{
    tg_text_append_format(out, "%lld update%s in ", (long long)r->updates,
                          r->updates == 1 ? "" : "s");
    tg_console_append_duration(out, r->seconds);
    tg_text_append_format(out, ", %.1f images/s\n", r->images_per_s);
    if (r->evaluation.images)
        tg_text_append_format(out, "best top-1 %.2f %% of %llu validation photos\n",
                              r->evaluation.top1, (unsigned long long)r->evaluation.images);
    tg_text_append_format(out, "model: %s/model\n", path);
}

/* Before the run directory is made: typing mistakes leave nothing behind. */
static tg_status check_data(const tg_data_choice *choice, const char *output)
{
    const char *ignored;
    if (!choice->data)
        return tg_fail(TG_ERROR_USAGE, "--data is missing: the folder with the photos");
    TG_TRY(tg_data_choice_train_split(choice, &ignored));
    return tg_data_choice_check_output(choice, output);
}

static tg_status present(void *user)
{
    return tg_run_dir_check(&((session *)user)->dir);
}

/* The first rank's result, for people or programs. */
static tg_status tell_result(const tg_invocation *invocation, const char *path,
                             const tg_train_result *result)
{
    tg_text text = {0};
    if (invocation->common->json)
        print_json(path, result, &text);
    else
        print_result(path, result, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run_resolved(const tg_invocation *invocation, const tg_train_options *options,
                              const tg_rank_cores *cores)
{
    const char *path = options->output.output;
    session s = {.invocation = invocation, .options = options, .cores = cores};
    tg_train_result result;
    const bool first = options->comm->rank == 0;
    const tg_train_watch watch = {.user = &s,
                                  .opened = first ? begin_records : note_beginning,
                                  .memory = first ? keep_memory : NULL,
                                  .step = first ? show_step : NULL,
                                  .evaluation = show_evaluation,
                                  .evaluating = first ? show_evaluating : NULL,
                                  .present = first ? present : NULL,
                                  .stopping = adopt_stop,
                                  .stop = stop_wanted};
    TG_TRY(tg_comm_agree(options->comm, "data", check_data(&options->data, path)));
    tg_status status = open_sessions(path, options->comm, &s);
    if (status == TG_OK)
        status = tg_train_job_run(options, path, &watch, &result);
    tg_console_progress_end();
    close_session(&s, status);
    TG_TRY(status);
    return first ? tell_result(invocation, path, &result) : TG_OK;
}

/* The clock in a folder's name may differ between ranks: the first's counts. */
static tg_status share_output(tg_comm *comm, tg_train_settings *s)
{
    char *all = calloc((size_t)comm->size, sizeof s->output);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = tg_comm_meet(comm, "output", s->output, sizeof s->output, all);
    if (status == TG_OK)
        memcpy(s->output, all, sizeof s->output);
    free(all);
    return status;
}

static tg_status run_ranks(const tg_invocation *invocation, tg_train_settings *settings)
{
    tg_comm *comm;
    tg_rank_cores cores = {0};
    TG_TRY(tg_parallel_open(&settings->parallel, &comm));
    settings->train.comm = comm;
    settings->train.ranks = tg_parallel_ranks(&settings->parallel);
    settings->train.stall_s = settings->parallel.stall_s;
    tg_console_open(invocation->common->quiet, invocation->common->verbose);
    tg_status status =
        tg_comm_agree(comm, "the same options", tg_same_options(comm, invocation->options));
    if (status == TG_OK)
        status = share_output(comm, settings);
    if (status == TG_OK)
        status =
            tg_rank_cores_open(invocation, comm, tg_train_workers_beside, &settings->train, &cores);
    if (status == TG_OK) {
        settings->train.threads = cores.threads;
        status = run_resolved(invocation, &settings->train, &cores);
    }
    tg_rank_cores_close(&cores);
    tg_parallel_close(comm, status);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    tg_train_settings settings = *(const tg_train_settings *)invocation->settings;
    TG_TRY(tg_train_settings_resolve(&settings, invocation->command->name,
                                     tg_invocation_threads(invocation),
                                     (tg_cpu_level)invocation->common->cpu_isa));
    tg_train_settings_warn_idle(invocation->options, invocation->settings);
    if (settings.train.model.initial_checkpoint &&
        tg_options_source(invocation->options, "model") == TG_OPTION_FROM_DEFAULT)
        settings.train.model.model = NULL; /* a default asks for nothing */
    return run_ranks(invocation, &settings);
}

static tg_status run_distill(const tg_invocation *invocation)
{
    if (!((const tg_train_settings *)invocation->settings)->train.distill.teacher)
        return tg_fail(TG_ERROR_USAGE, "--teacher is missing: the model folder to learn from");
    return run(invocation);
}

static const tg_command_note FILES[] = {
    {"OUTPUT, or runs/COMMAND-TIME", "The run directory"},
    {"OUTPUT/model/", "The model of the best evaluation, or the last where nothing was evaluated"},
    {"OUTPUT/job.yaml", "Every option as resolved; --config reads it"},
    {"OUTPUT/run.json", "The machine, what ran on it and how it ended"},
    {"OUTPUT/metrics.jsonl", "A line for each step and each evaluation"},
    {"OUTPUT/ranks.jsonl", "With several ranks: what each spent each step on"},
    {"OUTPUT/trace/rank-N.json.gz", "Timelines of --trace-steps, which Perfetto opens"},
    {"OUTPUT/log/rank-N.log", "The log of each rank; of one alone, rank-0.log"},
    {"OUTPUT/checkpoints/",
     "step-N, and the links last and best: what a stopped run needs to go on"},
    {"OUTPUT/failure", "Why the run failed, if it did"},
    {"OUTPUT/lock", "Held while a job runs here"},
    {0},
};

static const tg_command_note TRAIN_EXAMPLES[] = {
    {"tagine train --data photos --img-size 32 --patch-size 8 --embed-dim 96 --depth 4 --epochs 2 "
     "--output runs/teacher",
     "A small network from fresh weights, on 32 px pictures"},
    {"tagine train --data photos --initial-checkpoint runs/teacher --epochs 1 --lr 1e-4 --output "
     "runs/tuned",
     "Go on from a trained model, or one from timm, as a new run"},
    {"tagine train --config runs/teacher/job.yaml --output runs/teacher --resume auto --epochs 3",
     "Go on with a run where it stopped, here for an epoch more"},
    {0},
};

const tg_command tg_command_train = {
    .name = "train",
    .arguments = "",
    .summary = "Train or fine-tune a vision transformer on labelled photos",
    .description =
        "Trains --model on the photos of --data: an architecture name starts from fresh weights, "
        "a\n"
        "model folder is fine-tuned (a new class count gets a new head). Everything the job "
        "leaves\n"
        "behind is in --output: records, checkpoints, and the finished model in OUTPUT/model.\n\n"
        "SIGINT, SIGTERM and SIGHUP save and leave; --resume auto goes on at the exact photo.",
    .examples = TRAIN_EXAMPLES,
    .files = FILES,
    .see_also = "distill, eval, plan, data check, bench train",
    .groups = TRAIN_GROUP_LIST,
    .group_count = TG_COUNT_OF(TRAIN_GROUP_LIST),
    .settings_bytes = sizeof(tg_train_settings),
    .run = run,
};

static const tg_command_note DISTILL_EXAMPLES[] = {
    {"tagine distill --data photos --teacher runs/teacher --img-size 32 --patch-size 8 --embed-dim "
     "48 --depth 2 --epochs 2 --output runs/student",
     "A student of half the teacher's width"},
    {0},
};

const tg_command tg_command_distill = {
    .name = "distill",
    .arguments = "",
    .summary = "Train a small student from a frozen teacher",
    .description =
        "Trains --model (the student) to say what --teacher says, mixed with the labels by\n"
        "--kd-alpha: 0 labels alone, 1 the teacher alone (no labels needed). The teacher sees the\n"
        "same crop and flip at its own size, mean and std. Its accuracy on the validation photos\n"
        "is shown at the start, and every record holds both loss terms.",
    .examples = DISTILL_EXAMPLES,
    .files = FILES,
    .see_also = "train, eval, bench distill",
    .groups = DISTILL_GROUP_LIST,
    .group_count = TG_COUNT_OF(DISTILL_GROUP_LIST),
    .settings_bytes = sizeof(tg_train_settings),
    .run = run_distill,
};
