/* worker_trials.h - how many loader workers: which numbers to try, for how long, and which to take. Knows no clock and
 * no loader: it is told what trials measured (train/job_workers.c does them, within the steps of a job).
 *
 * Tried    0, 1, 2, 4, ... upward, until a trial does not wait for photos any more (1 % of its time) or two in a row
 *          are slower than the best; then the same ones again downward, then upward, so that what drifts meanwhile does
 *          not decide; three times, and up to nine while the noise is more than a tie may be. Those 20 % below the best
 *          have two trials. A trial is TG_WORKERS_SETTLE steps that do not
 *          count, in which the batches that lay ready are used up, and TG_WORKERS_TIMED or more that do, to half a
 *          second. Where an epoch is short a trial is whole epochs, from their first steps.
 * Taken    the fewest workers within the noise of the best rate: half the distance of a number's trials (three times
 *          TG_TUNE_NOISE for one alone, TG_TUNE_NOISE of the median at least), and TG_TUNE_TIE at most.
 * Bounds   a third of the steps that are left and TG_WORKERS_MOST_S; jobs without that many steps are not measured.
 * Later    the watch asks for new trials when photos were waited for, over a minute, a tenth of the time more than when
 *          it was measured: 15 minutes after that at the earliest, then 30, 60, ...
 */
#ifndef TG_TRAIN_WORKER_TRIALS_H
#define TG_TRAIN_WORKER_TRIALS_H

#include "run/tune.h"

#include <stdbool.h>

enum {
    TG_WORKERS_SETTLE = 3,
    TG_WORKERS_TIMED = 4,
    TG_WORKERS_ROUNDS = 3,
    TG_WORKERS_MOST_ROUNDS = 9
};
#define TG_WORKERS_SHARE (1.0 / 3)
#define TG_WORKERS_MOST_S 600.0

typedef struct tg_worker_plan {
    int first, most; /* workers: as training goes now; no more are tried */
    int64_t left, epoch,
        settle; /* steps: of the run, of an epoch, that do not count (TG_WORKERS_SETTLE) */
    double step_s;
} tg_worker_plan;

typedef struct tg_worker_trials {
    tg_worker_plan plan;
    int64_t settle, timed; /* steps of a trial */
    bool by_epoch;         /* a trial begins with an epoch */
    int candidates[TG_TUNE_POINTS];
    size_t count, at;
    int round;
    int64_t steps; /* that trials took, timed or not */
    double seconds;
    tg_tune_point trials[TG_TUNE_TRIALS];
    size_t trial_count;
} tg_worker_trials;

/* False: too few steps are left. */
bool tg_worker_trials_begin(tg_worker_trials *t, const tg_worker_plan *plan);
/* The next trial's workers; false: there is none, decide. */
bool tg_worker_trials_next(const tg_worker_trials *t, int *out_workers);
/* What the trial that next() named gave; in all it took `steps` of the job and `seconds`. */
void tg_worker_trials_add(tg_worker_trials *t, const tg_tune_point *trial, int64_t steps,
                          double seconds);
/* Fills points, trials, steps, seconds, cost, best, chosen and why, and leaves the rest. At least one trial. */
void tg_worker_trials_decide(const tg_worker_trials *t, tg_tune_search_record *out);

typedef struct tg_worker_watch {
    double base;             /* share of the time that was waited when it was measured */
    double since_s, pause_s; /* since then; not again before */
    double window_s, wait_s;
    int high; /* windows in a row */
} tg_worker_watch;

/* searches: how many this process has made. */
void tg_worker_watch_begin(tg_worker_watch *w, double base, int searches);
/* A step; true: measure again. */
bool tg_worker_watch_add(tg_worker_watch *w, double step_s, double wait_s);

#endif
