/* checked.h - size arithmetic that cannot wrap, for every number that comes from outside.
 *
 * Each function returns true and writes *out on success, false (and leaves *out alone) when the
 * result does not fit. Reentrant, no memory, no error slot: the caller knows what was being sized.
 */
#ifndef TG_BASE_CHECKED_H
#define TG_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tg_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool tg_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* Rounds up to a multiple of `align` (a power of two). */
static inline bool tg_round_up_size(size_t a, size_t align, size_t *out)
{
    size_t r;
    if (!tg_add_size(a, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

static inline bool tg_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

#endif
