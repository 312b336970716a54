/* options.h - everything a training job is told, as plain values; names and meanings are timm's.
 *
 * The command line fills it (cli/options_train.h says names, defaults and help). Strings are borrowed.
 * tg_train_options_default gives the defaults that the option tables also state.
 */
#ifndef TG_TRAIN_OPTIONS_H
#define TG_TRAIN_OPTIONS_H

#include "infer/network.h"
#include "loss/objective.h"
#include "optim/schedule.h"
#include "train/ranks.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_model_choice {
    const char *model;              /* architecture name, or a folder to fine-tune; NULL: whatever
                                       initial_checkpoint holds */
    const char *initial_checkpoint; /* weights to start from when `model` is a name; or NULL */
    int64_t img_size, patch_size, embed_dim, depth, num_heads, reg_tokens, num_classes;
    int global_pool; /* 0: the model's; else tg_pool + 1 */
    double drop_path;
} tg_model_choice;

typedef struct tg_data_choice {
    const char *data;                    /* root folder */
    const char *train_split, *val_split; /* "train", "train+more"; val_split: a name or a share */
    int64_t workers;                     /* -1: as many as the cores allow */
    double max_bad_share;
    bool strict;
} tg_data_choice;

typedef struct tg_augment_choice {
    double scale_min, ratio_min; /* area and aspect of the random resized crop */
    double hflip, vflip, color_jitter, reprob, smoothing, mixup, cutmix, mixup_prob,
        mixup_switch_prob;
    const char *aa; /* "rand-m9-mstd0.5-inc1", or NULL */
    bool no_aug;    /* evaluation transform in training, and no mixing */
} tg_augment_choice;

typedef struct tg_preprocess_choice {
    double crop_pct;   /* NaN: the model's */
    int interpolation; /* -1: the model's; else a tg_interpolation */
    double mean[3], std[3];
    bool has_mean, has_std;
} tg_preprocess_choice;

typedef struct tg_recipe {
    int64_t epochs, batch_size, grad_accum_steps; /* batch_size: of each rank */
    int64_t global_batch_size; /* of all ranks together; 0: batch_size times their number */
    double lr;                 /* NaN: 5e-4 * batch / 512 (DeiT) */
    double min_lr, warmup_lr;
    double warmup_epochs;
    tg_schedule_kind sched;
    double weight_decay, beta1, beta2, eps, layer_decay, clip_grad;
    bool model_ema;
    double model_ema_decay;
    bool amp; /* bf16 compute where the machine has it */
    int64_t seed;
} tg_recipe;

typedef struct tg_distill_choice {
    const char *teacher; /* model folder; NULL: plain training */
    tg_objective objective;
} tg_distill_choice;

enum { TG_TRACE_OUTLIERS = 8, TG_TRACE_BUDGET_MIB = 32 };

typedef struct tg_output_choice {
    const char *output;       /* run directory */
    const char *resume;       /* NULL, "auto", a checkpoint folder, or a run directory */
    int64_t checkpoint_hist;  /* newest step folders that stay, last's among them; best's besides */
    int64_t checkpoint_steps; /* save every so many updates as well; 0: at epoch ends only */
    int64_t eval_interval;    /* epochs between evaluations; 0: only at the end */
    int64_t max_steps;        /* stop after so many updates (the schedule stays); 0: no limit */
    bool trace;               /* record what every operation takes */
    int64_t trace_outliers;   /* slow steps with a timeline, at most */
    int64_t trace_budget_mib; /* of each rank's timelines */
    int64_t trace_first, trace_last; /* steps with a timeline, from 1; 0: none */
    int64_t monitor_interval_ms;     /* 0: off */
    int64_t monitor_budget_mib;      /* of each machine's samples on disk */
} tg_output_choice;

typedef struct tg_train_options {
    tg_model_choice model;
    tg_data_choice data;
    tg_augment_choice augment;
    tg_preprocess_choice preprocess;
    tg_recipe recipe;
    tg_distill_choice distill;
    tg_output_choice output;
    int threads; /* compute threads, >= 1 */
    tg_cpu_level cpu_cap;
    tg_comm *comm; /* the ranks that do this job together, borrowed; NULL: this process alone */
    tg_ranks_options ranks;
    double stall_s; /* how long a rank may give nothing (comm.h) */
} tg_train_options;

tg_train_options tg_train_options_default(void);

/* Loader threads that a job begins with: as asked for, or one for every two compute threads (1 to 8): decoding takes
 * a few percent of a step, and more threads would take the cores from it. What was not asked for is then measured
 * (train/worker_trials.h). */
int tg_train_options_workers(const tg_train_options *options);

/* The share that --val-split holds out of one folder of classes; 0: it is a name (or there is none).
 * TG_ERROR_USAGE for what looks like a share, is none between 0 and 1, and names no folder below
 * `data` either. */
tg_status tg_data_choice_share(const tg_data_choice *choice, double *out) TG_MUST_CHECK;

/* Where the training photos lie, with a share or without: *out names folders below `data` joined by '+';
 * NULL when the class folders lie in `data` itself, because train_split is "", or because it is the usual
 * "train" (or NULL) and `data` has neither that folder nor one called "val". TG_ERROR_INPUT for a folder
 * of data or a split that is not there. */
tg_status tg_data_choice_train_split(const tg_data_choice *choice, const char **out) TG_MUST_CHECK;

/* A run among the photos would be a class, or photos of one, to the next: TG_ERROR_USAGE for `output` inside
 * a split, a warning inside `data` beside the splits. */
tg_status tg_data_choice_check_output(const tg_data_choice *choice,
                                      const char *output) TG_MUST_CHECK;

/* The first name of "a+b" that is no folder below `data`, cut to fit; false when all are there. */
enum { TG_SPLIT_NAME_BYTES = 256 };
bool tg_data_choice_lacks(const tg_data_choice *choice, const char *names,
                          char out[TG_SPLIT_NAME_BYTES]);

/* The overrides as infer/network.h takes them. */
tg_network_shape tg_model_choice_shape(const tg_model_choice *choice);

#endif
