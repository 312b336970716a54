/* deal.h - which samples of a group batch are one rank's; inside of loader.c.
 *
 * Units    what mixes with each other stays together: where the options can mix (training with
 *          mixup or cutmix above 0) a unit is the pair of samples i and n-1-i of a batch of n, the
 *          middle one of an odd batch alone; else a unit is one sample.
 * Dealing  U units go to the ranks in order, U/ranks each, one more to the first U%ranks of them.
 *          So no smaller batch gives a rank more units than a full one does.
 * Order    a rank's samples keep their order. Of pairs it has two runs, one in each half of the
 *          batch, that mirror each other: its sample i of m mixes with its sample m-1-i.
 * Threads  pure functions. ranks 0 means 1.
 */
#ifndef TG_DATA_DEAL_H
#define TG_DATA_DEAL_H

#include "base/status.h"
#include "data/loader.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tg_deal {
    size_t count;          /* samples of this rank */
    size_t low, low_count; /* the first low_count of them begin at place `low` of the batch */
    size_t high;           /* the others begin here */
} tg_deal;

/* TG_ERROR_USAGE when the rank is none of 0..ranks-1, or a full batch has too few units for all. */
tg_status tg_deal_check(const tg_loader_options *options) TG_MUST_CHECK;
/* For a batch of n samples, n <= batch_size. */
tg_deal tg_deal_make(const tg_loader_options *options, size_t n);
/* Place in the batch of this rank's sample `at`, at < count. */
size_t tg_deal_place(const tg_deal *deal, size_t at);
/* The rank's samples in an epoch of `photos`, a last part-batch included. */
uint64_t tg_deal_epoch(const tg_loader_options *options, uint64_t photos);

#endif
