/* plan.h - the parts of `tagine plan`: settings, where times come from, and the forecast for many ranks. */
#ifndef TG_CLI_PLAN_H
#define TG_CLI_PLAN_H

#include "cli/command.h"
#include "cli/options_model.h"
#include "cli/options_parallel.h"
#include "train/forecast.h"
#include "train/memory.h"

typedef struct tg_plan_settings {
    tg_model_choice model;
    const char *teacher;
    int64_t batch_size, grad_accum_steps, workers;
    bool amp, model_ema;
    int amp_dtype;
    tg_parallel_choice parallel; /* zero, bucket_mib, reduce_dtype */
    const char *ranks;           /* "2,32-4096" */
    int64_t ranks_per_host;
    int exchange; /* tg_exchange_method */
    double link_gbit, local_gbit, latency_us, message_us, core_ns_per_kib;
    int64_t ranks_per_core, spare_cores;
    const char *bench_comm;
    bool measure;
    double step_seconds;
    const char *run;
    double spread; /* per cent */
    double images, epochs, price_per_hour;
    tg_option_doubles seen_hours;
} tg_plan_settings;

/* What is planned: shapes as resolved. */
typedef struct tg_plan_subject {
    const tg_plan_settings *settings;
    const tg_invocation *invocation;
    tg_vit_config student, teacher;
    bool has_teacher;
    tg_dtype dtype;
} tg_plan_subject;

/* Prediction for rank 0 of `ranks`. */
tg_status tg_plan_memory(const tg_plan_subject *subject, int ranks, tg_memory *out) TG_MUST_CHECK;

enum { TG_PLAN_RANKS_MAX = 64 };
/* "1,2,8" and "32-4096", which doubles from the one to the other. TG_ERROR_USAGE for what is no such list. */
tg_status tg_plan_parse_ranks(const char *text, int out[TG_PLAN_RANKS_MAX],
                              size_t *out_count) TG_MUST_CHECK;

/* How long one rank's step takes, and how that is known. */
typedef struct tg_plan_source {
    tg_step_seconds alone;
    bool known;
    char origin[160];
} tg_plan_source;

/* --step-seconds, --run or --measure; known false when none was given. */
tg_status tg_plan_read_source(const tg_plan_subject *subject, tg_plan_source *out) TG_MUST_CHECK;
/* Shares a step of one rank out by the FLOPs of its parts. */
tg_step_seconds tg_plan_split_step(const tg_plan_subject *subject, double step_s);
/* Link and core time by the options, or as `bench comm` has measured it. */
tg_status tg_plan_read_link(const tg_plan_settings *settings, tg_link *out) TG_MUST_CHECK;

/* The table for --ranks, or its lines of JSON. */
tg_status tg_plan_forecast(const tg_plan_subject *subject, tg_text *out) TG_MUST_CHECK;

#endif
