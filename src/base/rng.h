/* rng.h - counter-based random numbers: a pure function of (seed, epoch, sample, purpose).
 *
 * Source     Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 *            1, 2, 3", SC 2011. Key = seed; counter = (block, sample, epoch, purpose).
 * Use        Never share a generator between threads, workers or ranks: build one where it is
 *            needed, from what the number is for. The same four values give the same sequence on
 *            every machine, thread and rank count.
 * Memory     none beyond the struct. Reentrant.
 */
#ifndef TG_BASE_RNG_H
#define TG_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What the numbers are for; a new use gets a new value at the end, so old runs keep their bits. */
typedef enum tg_rng_purpose {
    TG_RNG_INIT = 1,       /* fresh weights; sample = index of the tensor */
    TG_RNG_SHUFFLE = 2,    /* order of samples; sample = 0 */
    TG_RNG_AUGMENT = 3,    /* crop, flip, jitter, erasing, RandAugment; sample = index in the set */
    TG_RNG_MIX = 4,        /* mixup and cutmix; sample = step in the epoch */
    TG_RNG_DROP_PATH = 5,  /* stochastic depth; sample = index in the set */
    TG_RNG_SYNTH = 6,      /* generated pictures; epoch = class, sample = number */
    TG_RNG_SPLIT = 7,      /* train/validation split */
    TG_RNG_TEST = 1000,
} tg_rng_purpose;

typedef struct tg_rng {
    uint32_t key[2];
    uint32_t counter[4]; /* [0] = block, [1] = sample low, [2] = sample high ^ epoch, [3] = purpose */
    uint32_t block[4];   /* numbers of the current block */
    unsigned used;       /* how many of them were handed out */
} tg_rng;

tg_rng tg_rng_init(uint64_t seed, uint64_t epoch, uint64_t sample, tg_rng_purpose purpose);

/* 32 uniform bits. */
uint32_t tg_rng_u32(tg_rng *rng);
/* Uniform in [0,1) with 53 random bits; takes two u32. */
double tg_rng_uniform(tg_rng *rng);
/* Uniform whole number in [0,n), n > 0, without bias. */
uint32_t tg_rng_below(tg_rng *rng, uint32_t n);
/* Standard normal (Box-Muller; takes four u32). */
double tg_rng_normal(tg_rng *rng);
/* Beta(alpha, alpha), alpha > 0 (Joehnk for alpha <= 1, ratio of gammas above). */
double tg_rng_beta(tg_rng *rng, double alpha);
/* Fisher-Yates permutation of 0..n-1 into out. */
void tg_rng_permutation(tg_rng *rng, uint32_t *out, uint32_t n);

#endif
