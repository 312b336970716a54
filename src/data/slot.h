/* slot.h - this rank's share of one batch under construction: its buffers and how it is finished;
 *          inside of loader.c.
 *
 * States   FREE -> FILLING (planned photos are claimed, made and counted) -> READY -> LENT ->
 *          FREE. A share without photos is READY at once. State and counters belong to the
 *          loader's lock; buffers to whoever claimed the photo, and to the one that finishes.
 * Memory   blocks in the loader's arena.
 */
#ifndef TG_DATA_SLOT_H
#define TG_DATA_SLOT_H

#include "base/arena.h"
#include "data/deal.h"
#include "data/loader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_slot_state {
    TG_SLOT_FREE,
    TG_SLOT_FILLING,
    TG_SLOT_READY,
    TG_SLOT_LENT
} tg_slot_state;

typedef struct tg_slot {
    tg_batch batch; /* what the consumer sees; its pointers are the buffers */
    tg_slot_state state;
    uint64_t first; /* position in the epoch of the batch's first sample, whoever's that is */
    size_t nominal; /* samples of the whole batch */
    tg_deal deal;   /* which of them are made here */
    size_t planned, claimed, finished;
    bool *bad;       /* [planned] */
    tg_status error; /* of the earliest photo that ends the run, with its message */
    size_t error_at;
    char *message; /* TG_ERROR_BYTES */
} tg_slot;

/* Arena bytes of one slot; SIZE_MAX when they cannot be counted. */
size_t tg_slot_bytes(const tg_loader_options *options);
tg_status tg_slot_init(tg_slot *slot, const tg_loader_options *options,
                       tg_arena *arena) TG_MUST_CHECK;
/* Gives a FREE slot this rank's share of the batch of `nominal` samples from position `first`. */
void tg_slot_begin(tg_slot *slot, const tg_loader_options *options, uint64_t first, size_t nominal);
/* Keeps the message of the earliest failing photo. Call under the lock. */
void tg_slot_fail(tg_slot *slot, size_t at, tg_status status, const char *message);
/* All photos are there: mixes, builds the targets, closes the gaps of bad ones. */
void tg_slot_finish(tg_slot *slot, const tg_loader_options *options, uint64_t epoch);

#endif
