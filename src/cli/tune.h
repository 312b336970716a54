/* tune.h - the parts of `tagine tune`: settings, the report, and the settings file. */
#ifndef TG_CLI_TUNE_H
#define TG_CLI_TUNE_H

#include "cli/command.h"
#include "cli/options_train.h"
#include "train/tune_bed.h"

typedef struct tg_tune_settings {
    tg_train_settings train; /* first, as its groups ask for */
    const char *find, *output, *plot;
    double seconds_per_trial, max_seconds, memory_limit_mib;
    int64_t max_batch_size;
} tg_tune_settings;

/* What a report is about. */
typedef struct tg_tune_subject {
    const tg_invocation *invocation;
    const tg_train_options *options;
    const tg_tune_bed *bed;
    const tg_tune_plan *plan;
    double available_bytes;
    const char *command; /* "train" */
} tg_tune_subject;

/* A trial as a line of JSON. */
void tg_tune_put_trial(const tg_tune_trial *trial, tg_text *out);
/* What came of all trials: JSON in one line, or a table with reasons. `status` of the search: OK or STOPPED. */
void tg_tune_put_result(const tg_tune_subject *subject, const tg_tune_result *result, tg_text *out);
void tg_tune_print_result(const tg_tune_subject *subject, const tg_tune_result *result,
                          tg_text *out);
/* "--batch-size 64 --threads 2"; options that have no say here are left out. */
void tg_tune_print_arguments(const tg_tune_subject *subject, const tg_tune_setting *setting,
                             tg_text *out);

/* The options that were given, with the setting in them, as --config of train or distill reads them. */
tg_status tg_tune_write_yaml(const tg_tune_subject *subject, const tg_tune_setting *setting,
                             double images_per_s, const char *path) TG_MUST_CHECK;

#endif
