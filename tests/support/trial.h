/* trial.h - a small model that ranks, as threads of one process, train together for a few windows, and what comes
 * of it: for tests of what must not depend on how they share the work. */
#ifndef TG_TEST_TRIAL_H
#define TG_TEST_TRIAL_H

#include "support/ranks.h"

#include "train/step.h"

enum { TG_TRIAL_STEPS = 5, TG_TRIAL_LATE_NS = 60 * 1000 * 1000 };

/* What one rank had at the end. */
typedef struct tg_trial_outcome {
    float *params, *average; /* heap; as their owners have them */
    size_t elements;
    size_t
        rounded; /* of params, not what their owners have until asked for, but what bf16 keeps of that */
    double loss[TG_TRIAL_STEPS], norm[TG_TRIAL_STEPS];
    bool skipped[TG_TRIAL_STEPS];
    int64_t least_wait_ns, most_wait_ns; /* of a step */
} tg_trial_outcome;

/* How ranks work, and what came of it. */
typedef struct tg_trial {
    tg_ranks_options ranks;
    tg_dtype dtype;  /* TG_BF16: at tg_test_cpu_cap, which must have it; TG_F32: AVX2's */
    bool pairs;      /* shares of the samples: neighbours, or as mixing deals them */
    bool idle;       /* the last rank has no sample in any window */
    bool abrupt;     /* closed without waiting for the parameters of the last step */
    bool late;       /* the last rank comes TG_TRIAL_LATE_NS after the others in every step */
    bool short_last; /* the last window has one micro-batch alone, as at an epoch's end */
    size_t
        mean_over; /* what gradients are divided by until a window's photos are known; 0: a whole window's */
    int poisoned; /* step in which the last rank sees a picture that is not finite; -1: none */
    tg_trial_outcome of[TG_TEST_RANKS];
} tg_trial;

/* Asserts that all ranks come to the end. Ended by tg_trial_done. */
void tg_trial_run(int size, tg_trial *trial);
void tg_trial_done(int size, tg_trial *trial);
/* Asserts that every rank holds the same bits. */
void tg_trial_check_alike(int size, const tg_trial *trial);
/* |a - b| / |b| */
double tg_trial_distance(const float *a, const float *b, size_t n);

#endif
