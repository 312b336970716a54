/* bench.h - how fast whole steps are on this machine: behind `tagine bench train|distill|infer`.
 *
 * Random pictures of one batch lie in memory; nothing is decoded. Steps are the very ones of training
 * (train/step.h: forward, loss, backward, AdamW, prepared copies) or one forward of inference. The
 * median of the timed steps counts, after `warmup` untimed ones.
 *
 * FLOPs    2 for a multiply-add of matrix products and attention (tg_vit_macs); backward counts as two
 *          forwards: 6 macs an image for training, 2 for inference, and 2 of the teacher's on top for
 *          distillation.
 * Peak     the machine's best large matrix product of the same type (kern/peak.h), measured right
 *          after the steps, whose memory is given back before; peak_rss_bytes is read earlier.
 * Account  with `profile` the same steps run again after the timed ones, this time with a span around
 *          every operation (kern/traced.h). Only their sum is compared with them: their median goes
 *          nowhere. The timed steps then compute through the same table at rest, two thread-local
 *          loads an operation.
 * Ranks    batch_size is each rank's; reduce_s is what a step waits for others (exposed communication);
 *          the peak is measured by all ranks at once.
 * Trace    of the timed steps, each operation in it; these are slower by what `trace_cost` measures.
 * Errors   TG_ERROR_USAGE, TG_ERROR_INPUT for models; TG_ERROR_MACHINE; TG_ERROR_STOPPED.
 * Threads  one at a time.
 */
#ifndef TG_TRAIN_BENCH_H
#define TG_TRAIN_BENCH_H

#include "infer/network.h"
#include "kern/peak.h"
#include "train/overlap.h"
#include "train/ranks.h"
#include "trace/trace.h"

#include <stdint.h>

typedef enum tg_bench_kind { TG_BENCH_TRAIN, TG_BENCH_DISTILL, TG_BENCH_INFER } tg_bench_kind;

typedef struct tg_bench_options {
    tg_bench_kind kind;
    const char *model; /* architecture name or model folder */
    tg_network_shape shape;
    const char *teacher; /* DISTILL: the same; its class count becomes the student's */
    size_t batch_size;
    int64_t warmup, steps; /* steps >= 1 */
    tg_dtype dtype;        /* TG_BF16 becomes TG_F32 where the machine lacks it */
    int threads;
    tg_cpu_level cpu_cap;
    tg_comm
        *comm; /* NULL or other ranks that run the same bench: each its own pictures, one update */
    tg_ranks_options ranks;
    bool no_peak;    /* steps alone: result.peak stays zeroed */
    bool trace_cost; /* then as many pairs of steps, one recorded as a job records it, one not */
    bool profile;    /* account for every operation, in `steps` more steps */
    const char
        *trace; /* folder for timelines of the timed steps (train/step_trace.h); NULL: none */
    void (*progress)(void *user, uint64_t done, uint64_t total); /* or NULL */
    int (*stop)(void *user);                                     /* or NULL */
    void *user;
} tg_bench_options;

/* What recording costs a step: medians and quartiles of pairs, with it and without. */
typedef struct tg_bench_cost {
    double share, low, high;
    double spans, span_s; /* a step, by the thread that trains; of one, measured by itself */
} tg_bench_cost;

/* Where the time of `steps` steps went; what no operation took is seconds minus their sum. */
typedef struct tg_bench_profile {
    int64_t steps;  /* 0: none was asked for */
    double seconds; /* of all steps together */
    size_t operation_count;
    tg_trace_totals
        operations[TG_TRACE_KEYS]; /* of all steps; longest first; keys in kern/traced.h */
} tg_bench_profile;

typedef struct tg_bench_result {
    char architecture[64];
    size_t parameters, img_size;
    tg_dtype dtype; /* really used */
    tg_cpu_level level;
    int threads;
    double first_step_s, step_s, step_min_s, step_max_s; /* step_s: median */
    /* medians of a step's parts; NaN where there is none */
    double teacher_s, forward_s, backward_s, reduce_s, optimizer_s;
    tg_overlap overlap; /* medians over the steps; without ranks buckets is 0 */
    double
        exchange_cpu_s; /* of a core, by the thread that moves messages: mean of a step; NaN: no ranks */
    int ranks;
    size_t optimizer_bytes; /* moments of this rank */
    /* images and FLOPs a second: of all ranks together */
    double flops_per_image, images_per_s, flops_per_s;
    tg_peak peak;
    uint64_t peak_rss_bytes;
    tg_bench_profile profile;
    tg_bench_cost cost; /* zeroed: not asked for */
    tg_text
        picture; /* of the last timed step's exchange (overlap.h), empty without ranks; the caller's to free */
} tg_bench_result;

tg_status tg_bench_run(const tg_bench_options *options, tg_bench_result *out) TG_MUST_CHECK;

#endif
