/* arena.h - one reservation, many 64-byte aligned blocks, freed all at once.
 *
 * Lifetimes are arenas: one for the run (parameters, moments), one for the step (activations), one
 * per loader worker. Modules answer "how many bytes for this configuration?" with TG_ARENA_ROUND
 * per block; the caller sums, reserves once with tg_arena_init, and nothing is allocated later.
 *
 * States  zeroed struct -> init -> alloc / mark / release ... -> done. done accepts a zeroed struct.
 * Memory  init maps `bytes` (rounded to pages), zero-filled on first touch; large maps ask for
 *         transparent huge pages. Owned by the arena until done.
 * Errors  init: TG_ERROR_MACHINE when the map fails. alloc: NULL when the arena is too small, which
 *         is a bug in a `_bytes` function.
 * Threads not thread-safe; one owner at a time.
 */
#ifndef TG_BASE_ARENA_H
#define TG_BASE_ARENA_H

#include "base/status.h"

#include <stddef.h>

#define TG_ALIGN 64
/* Bytes that a block of n bytes takes inside an arena. */
#define TG_ARENA_ROUND(n) (((size_t)(n) + (TG_ALIGN - 1)) & ~(size_t)(TG_ALIGN - 1))

typedef struct tg_arena {
    unsigned char *base;
    size_t size;
    size_t used;
    size_t peak; /* largest `used` ever seen */
} tg_arena;

tg_status tg_arena_init(tg_arena *arena, size_t bytes, const char *what) TG_MUST_CHECK;
void tg_arena_done(tg_arena *arena);

/* 64-byte aligned, contents undefined after a release; NULL when it does not fit. */
void *tg_arena_alloc(tg_arena *arena, size_t bytes);

/* Position now; tg_arena_release(arena, mark) frees everything allocated after it. */
size_t tg_arena_mark(const tg_arena *arena);
void tg_arena_release(tg_arena *arena, size_t mark);

#endif
