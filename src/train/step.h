/* step.h - one optimizer step: the one file that joins the stages. Read it first.
 *
 *   batch -> teacher forward -> student forward -> objective -> student backward     (each micro-batch)
 *         -> (other ranks: sums, ranks.h) -> clip, AdamW, weight average
 *         -> prepared copies refreshed                                               (each window)
 *
 * A window is `accumulation` micro-batches (fewer at the end of an epoch). Means are over the samples
 * really seen in the window. A step whose loss or gradient is not finite changes nothing and is
 * counted; TG_STEP_BAD_LIMIT of them in a row is an error.
 *
 * Traced   (trace/trace.h) "teacher", "forward", "backward" of each micro-batch, "optimizer", and the waits of ranks.h;
 *          what is recorded inside them has the same word as its phase.
 * Memory   the step arena, tg_step_arena_bytes, reserved by the caller; after the first step of a
 *          shape nothing is allocated.
 * Errors   TG_ERROR_MACHINE from the device; TG_ERROR_FAILED when the loss stays non-finite.
 */
#ifndef TG_TRAIN_STEP_H
#define TG_TRAIN_STEP_H

#include "data/loader.h"
#include "loss/objective.h"
#include "model/vit.h"
#include "optim/optimizer.h"
#include "train/ranks.h"

#define TG_STEP_BAD_LIMIT 20

typedef struct tg_step_phases {
    int64_t data_ns, teacher_ns, forward_ns, backward_ns, reduce_ns, optimizer_ns;
} tg_step_phases; /* reduce: waiting for other ranks, in none of the others */

typedef struct tg_step_report {
    size_t images, own_images; /* of all ranks, of this one */
    double loss, task, kd;     /* means over the window; NaN: not used */
    double grad_norm;
    bool skipped; /* not finite: no update was made */
    int stop;     /* a rank's wish to stop, the same on all */
    tg_step_phases phases;
    int64_t backward_begin_ns, backward_end_ns; /* of the last micro-batch; tg_clock_ns */
} tg_step_report;

typedef struct tg_step {
    const tg_kern *kern;
    tg_stream *stream;
    tg_vit *student;
    tg_vit *teacher;               /* NULL without distillation */
    const uint32_t *teacher_class; /* [K]: teacher's index of each student class, or NULL: equal */
    tg_objective objective;
    tg_projection *projection; /* TG_KD_FEATURE, else NULL */
    const float *projection_params;
    tg_optimizer *optimizer;
    tg_arena *arena;
    float *grads;
    size_t num_classes, mean_over; /* nominal samples of a window, over all ranks */
    uint64_t seed;
    tg_ranks *ranks; /* NULL: this process alone */
    /* the window under way */
    size_t images;
    double task, kd;
    tg_step_phases phases;
    int64_t backward_begin_ns, backward_end_ns;
    int bad_in_a_row;
    int64_t
        keep; /* the last step that is to be kept as a timeline: this rank's wish, after an update anyone's */
} tg_step;

/* Bytes of the arena for batches of B; (size_t)-1 when that number does not fit. */
size_t tg_step_arena_bytes(const tg_step *step, size_t B, tg_dtype dtype);
/* The same from shapes alone. teacher NULL: none; feature: its features are distilled. */
size_t tg_step_bytes(const tg_vit_config *student, const tg_vit_config *teacher, bool feature,
                     size_t B, tg_dtype dtype);

/* With shares, has parameters travel between ranks in no more bits than the step reads (tg_ranks_narrow); else
 * without effect. table: of all that ranks exchange; borrowed until ranks are closed. Once, before the first step. */
tg_status tg_step_narrow(tg_step *step, const tg_param_table *table) TG_MUST_CHECK;

/* One micro-batch of `epoch`: gradients are added to the window's. last: it is the window's last, the
 * same on every rank; its gradients go to the other ranks. */
tg_status tg_step_micro(tg_step *step, const tg_batch *batch, uint64_t epoch,
                        bool last) TG_MUST_CHECK;

/* Ends the window: updates the parameters with rate `lr`. stop: this rank's wish (report.stop). With
 * shards the new parameters are still on their way when it returns; the next forward waits for them
 * layer by layer, anyone else calls settle. */
tg_status tg_step_update(tg_step *step, double lr, int stop, tg_step_report *out) TG_MUST_CHECK;

/* All parameters and their prepared copies are there when it returns: for whoever runs the model. What is to be
 * saved or exported needs tg_ranks_complete besides. */
tg_status tg_step_settle(tg_step *step) TG_MUST_CHECK;

#endif
