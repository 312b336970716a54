/* tune.h - finds the fastest batch, loader workers, threads and bucket by trials: what to try, and what counts.
 *
 *   largest batch that memory allows (predicted, by bisection) -> batches, in powers of two from a small one up,
 *   then between the best ones; the largest is tried once, at the end if it takes long -> workers -> threads ->
 *   buckets -> the best against the given one
 *
 * One thing at a time, each with the best of those before; batch and workers with a thread for each core where
 * threads are looked for; batches once more where more workers turned out to be needed. The search
 * knows no networks: what a setting needs and what it does are asked of tg_tune_ops (train/tune_bed.h has the
 * real ones, tests have their own).
 *
 * Noise    every setting is tried once, the best few of a stage TG_TUNE_REPEATS times in turns; the median
 *          counts. Its noise is half the distance of the lowest from the highest, TG_TUNE_NOISE of the median
 *          at least, and three times that where there was but one trial. Rates closer than the greater noise of
 *          the two, and TG_TUNE_TIE at most, are a tie, which the cheaper setting wins: the smaller batch,
 *          fewer workers, fewer threads, the bucket nearest to the given one.
 * Time     no trial begins that would, by the speed seen so far, end after its stage's share of max_seconds;
 *          what a stage leaves, the next ones have.
 * Ranks    every rank runs the search; ops give all the same answers, so all choose alike.
 * Errors   TG_ERROR_MACHINE when a batch of 1 (or the one that is to stay) does not fit: says what is needed and
 *          what is there. TG_ERROR_STOPPED from a trial ends the search; *out is then what it knows so far.
 *          Others as the ops give them.
 * Memory   none. Threads one at a time.
 */
#ifndef TG_TRAIN_TUNE_H
#define TG_TRAIN_TUNE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_TUNE_ROWS_MAX = 64, TG_TUNE_REPEATS = 3 };
#define TG_TUNE_NOISE 0.01
#define TG_TUNE_TIE 0.03

typedef struct tg_tune_setting {
    int64_t batch_size; /* of a rank */
    int threads, workers;
    double bucket_mib;
} tg_tune_setting;

typedef enum tg_tune_stage {
    TG_TUNE_BATCH,
    TG_TUNE_WORKERS,
    TG_TUNE_THREADS,
    TG_TUNE_BUCKET,
    TG_TUNE_COMPARE, /* the best with the given one, and with what is fastest by then */
    TG_TUNE_STAGES
} tg_tune_stage;
/* "batch", "workers", "threads", "bucket", "compare" */
const char *tg_tune_stage_name(tg_tune_stage stage);

/* One trial of a setting. NaN: not known. */
typedef struct tg_tune_trial {
    tg_tune_setting setting;
    tg_tune_stage stage;
    bool fits; /* false: memory was refused; nothing else is known but predicted_bytes */
    bool
        first_step; /* it was that alone, which says what memory is needed, and not how fast steps are */
    int64_t steps, images; /* timed, of all ranks together */
    double seconds, images_per_s, step_s;
    double wait_s;                             /* a step waits so long for photos */
    double loader_images_per_s;                /* what the workers could give, of all ranks */
    double cpu_s_per_image;                    /* of all threads, over the machines of all ranks */
    double voluntary_per_s, involuntary_per_s; /* context switches, of all ranks */
    double
        run_queue; /* threads of a rank that ran or waited for a core, mean; the rank that has most */
    double pressure; /* share of the time in which something on the machine waited for a core */
    double predicted_bytes, rss_bytes; /* of the rank that has most; rss: behind the steps */
} tg_tune_trial;

typedef struct tg_tune_ops {
    void *user;
    /* Bytes that a rank needs at most. */
    tg_status (*predict)(void *user, const tg_tune_setting *setting, double *out_bytes);
    /* A step that is not timed, then timed ones for so long, one at least; below 0 the first one alone, timed with
     * what is done once. Sets all but stage. */
    tg_status (*measure)(void *user, const tg_tune_setting *setting, double seconds,
                         tg_tune_trial *out);
    double (*elapsed)(void *user); /* seconds since tuning began, the same on all ranks */
    /* After each trial; done: the share of the time that has gone. NULL: nobody listens. */
    tg_status (*told)(void *user, const tg_tune_trial *trial, double done);
} tg_tune_ops;

typedef struct tg_tune_plan {
    tg_tune_setting given;
    bool find[TG_TUNE_COMPARE]; /* by stage */
    int64_t most_batch_size;    /* no larger one is looked at */
    int cores, ranks;
    double limit_bytes; /* that a rank may take */
    double seconds_per_trial, max_seconds;
} tg_tune_plan;

/* A setting with all its trials. */
typedef struct tg_tune_row {
    tg_tune_setting setting;
    tg_tune_stage stage; /* that first asked for it */
    bool fits;
    size_t trials;                 /* 0: none that tells the speed */
    double rates[TG_TUNE_REPEATS]; /* in order of size */
    double images_per_s, noise;
    tg_tune_trial last;
} tg_tune_row;

/* How a stage was decided: rows. */
typedef struct tg_tune_verdict {
    bool decided;
    size_t fastest, chosen; /* different ones: a tie, won by the cheaper */
} tg_tune_verdict;

#define TG_TUNE_NO_ROW SIZE_MAX

typedef struct tg_tune_result {
    tg_tune_row rows[TG_TUNE_ROWS_MAX]; /* in the order of their first trials */
    size_t row_count;
    size_t best, given; /* rows; TG_TUNE_NO_ROW: nothing, or not the given one, was measured */
    tg_tune_verdict verdicts[TG_TUNE_STAGES];
    int64_t largest_batch_size; /* that fits */
    double largest_bytes;       /* predicted */
    size_t largest;             /* its row; TG_TUNE_NO_ROW: there was no time to try it */
    bool given_fits;
    double given_bytes; /* predicted */
    bool short_of_time; /* something was left out for lack of it */
    bool stopped;
} tg_tune_result;

/* The largest batch of 1..most that is predicted to take no more than limit_bytes, with the other things as in
 * `setting`; from 16 on a multiple of 8. 0: not even 1. */
tg_status tg_tune_largest(const tg_tune_ops *ops, const tg_tune_setting *setting, int64_t most,
                          double limit_bytes, int64_t *out) TG_MUST_CHECK;

tg_status tg_tune_search(const tg_tune_plan *plan, const tg_tune_ops *ops,
                         tg_tune_result *out) TG_MUST_CHECK;

#endif
