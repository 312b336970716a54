/* options_train.h - every option of train and distill: the tables that fill a tg_train_options.
 *
 * Names and meanings are timm's (train.py of timm 1.0); defaults are tg_train_options_default()
 * (a test compares). Most options go straight into their field of tg_train_options; a few need a
 * step between (two numbers for one range, a choice that is an enum plus one) and wait in
 * tg_train_extra until tg_train_settings_resolve, which also sees to names and paths.
 *
 * A command's settings struct is (or begins with) a tg_train_settings, and its groups begin with
 * TG_TRAIN_GROUPS, or TG_TRAIN_JOB_GROUPS where there is no run directory; distill adds TG_DISTILL_GROUP.
 */
#ifndef TG_CLI_OPTIONS_TRAIN_H
#define TG_CLI_OPTIONS_TRAIN_H

#include "base/option.h"
#include "cli/observer.h"
#include "cli/options_data.h"
#include "cli/options_model.h"
#include "cli/options_parallel.h"
#include "data/augment.h"
#include "train/options.h"

#include <stdbool.h>

typedef struct tg_train_extra {
    tg_option_doubles scale, ratio, mean, std, opt_betas;
    int interpolation;  /* 0 the model's, then tg_interpolation + 1 */
    int opt, amp_dtype; /* adamw; bfloat16, float32 */
    int kd_loss;        /* tg_kd_loss - 1 */
    const char *experiment;
    const char *trace_steps; /* "3-5" */
    bool tensorboard;
    const char *prometheus; /* a file, or NULL */
} tg_train_extra;

typedef struct tg_train_settings {
    tg_train_options train;
    tg_train_extra extra;
    tg_parallel_choice parallel;
    tg_observer_choice observer;
    char output[4096]; /* where train.output.output points after resolve */
} tg_train_settings;

enum {
    TG_LOADER_OPTION_COUNT = 3,
    TG_START_OPTION_COUNT = 6,
    TG_RECIPE_OPTION_COUNT = 21,
    TG_AUGMENT_OPTION_COUNT = 13,
    TG_OUTPUT_OPTION_COUNT = 14,
    TG_DISTILL_OPTION_COUNT = 5,
};
extern const tg_option tg_loader_option_table[TG_LOADER_OPTION_COUNT];
extern const tg_option tg_start_option_table[TG_START_OPTION_COUNT];
extern const tg_option tg_recipe_option_table[TG_RECIPE_OPTION_COUNT];
extern const tg_option tg_augment_option_table[TG_AUGMENT_OPTION_COUNT];
extern const tg_option tg_output_option_table[TG_OUTPUT_OPTION_COUNT];
extern const tg_option tg_distill_option_table[TG_DISTILL_OPTION_COUNT];

/* Rows of a tg_command's groups. The tables' offsets are those of tg_train_settings, but for the
 * shared ones, which are those of the part they fill. */
#define TG_TRAIN_JOB_GROUPS                                                                        \
    {"Data", tg_data_option_table, TG_DATA_OPTION_COUNT, offsetof(tg_train_settings, train.data)}, \
        {"Model", tg_model_option_table, TG_MODEL_OPTION_COUNT,                                    \
         offsetof(tg_train_settings, train.model)},                                                \
        {"Start", tg_start_option_table, TG_START_OPTION_COUNT, 0},                                \
        {"Optimisation", tg_recipe_option_table, TG_RECIPE_OPTION_COUNT, 0},                       \
        {"Augmentation", tg_augment_option_table, TG_AUGMENT_OPTION_COUNT, 0},                     \
        {"Loader", tg_loader_option_table, TG_LOADER_OPTION_COUNT, 0},                             \
    {                                                                                              \
        "Ranks", tg_parallel_option_table, TG_PARALLEL_OPTION_COUNT,                               \
            offsetof(tg_train_settings, parallel)                                                  \
    }
#define TG_TRAIN_GROUPS                                                                            \
    TG_TRAIN_JOB_GROUPS, {"Run", tg_output_option_table, TG_OUTPUT_OPTION_COUNT, 0},               \
    {                                                                                              \
        "Findings", tg_observer_option_table, TG_OBSERVER_OPTION_COUNT,                            \
            offsetof(tg_train_settings, observer)                                                  \
    }
#define TG_DISTILL_GROUP                                                                           \
    {                                                                                              \
        "Distillation", tg_distill_option_table, TG_DISTILL_OPTION_COUNT, 0                        \
    }

/* A tg_cores_workers (train/cores.h): loader threads beside so many compute threads; user: a tg_train_options. */
int tg_train_workers_beside(const void *options, int threads);

/* Completes settings->train: extra fields, threads and instruction set, and the run directory
 * (--output, else runs/COMMAND-TIME; --experiment is a folder below it). With a teacher the
 * objective's kind is set, without one it stays TG_KD_NONE. TG_ERROR_USAGE names the option.
 * Strings stay those of the parsed options. */
tg_status tg_train_settings_resolve(tg_train_settings *settings, const char *command, int threads,
                                    tg_cpu_level cpu_cap) TG_MUST_CHECK;

#endif
