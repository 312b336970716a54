/* job.h - a whole training or distillation job: from options to a finished model folder.
 *
 *   options -> data sets, class list -> networks -> optimizer, step, loaders -> (resume) -> epochs
 *           -> evaluation -> checkpoints -> RUN/model
 *
 * One job is one run directory (run/run_dir.h). The last model and the best one are in its
 * checkpoints; RUN/model is the best by validation accuracy (the average when there is one), or the
 * last without a validation split.
 *
 * Errors   as the parts; TG_ERROR_STOPPED after a requested stop, with everything saved. A failed save
 *          (of a checkpoint or of RUN/model) is a warning, and training goes on; the last save of a
 *          run must succeed.
 */
#ifndef TG_TRAIN_JOB_H
#define TG_TRAIN_JOB_H

#include "train/options.h"
#include "train/watch.h"

typedef struct tg_train_result {
    tg_evaluation evaluation; /* of RUN/model; images 0 without a validation split, or when
                                 a run before this resume wrote it */
    tg_evaluation teacher;    /* images 0 without one */
    int64_t updates, epochs;
    size_t parameters;
    double seconds;      /* of this process's training, evaluation included */
    double images_per_s; /* of the training steps */
} tg_train_result;

/* `run_path`: a run directory that the caller has opened; job.yaml and run.json are the caller's. */
tg_status tg_train_job_run(const tg_train_options *options, const char *run_path,
                           const tg_train_watch *watch, tg_train_result *out) TG_MUST_CHECK;

#endif
