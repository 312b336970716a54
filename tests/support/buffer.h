/* buffer.h - arrays for tests of kernels: poisoned, guarded on both sides, fp32 or bf16.
 *
 * new fills data and guards with NaN, so that an element never written and a write outside both
 * show. Owned by the test; freed by tg_buffer_free, which also checks the guards. */
#ifndef TG_TESTS_SUPPORT_BUFFER_H
#define TG_TESTS_SUPPORT_BUFFER_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_buffer {
    tg_dtype dtype;
    size_t n;
    void *data; /* 64-byte aligned */
} tg_buffer;

tg_buffer tg_buffer_new(tg_dtype dtype, size_t n);
/* A copy with guards of its own. */
tg_buffer tg_buffer_copy(const tg_buffer *from);
/* Normal numbers times `scale`, rounded to the dtype; the same for the same seed. */
tg_buffer tg_buffer_random(tg_dtype dtype, size_t n, uint64_t seed, double scale);
void tg_buffer_free(tg_buffer *buffer);

float tg_buffer_get(const tg_buffer *buffer, size_t i);
void tg_buffer_set(tg_buffer *buffer, size_t i, float value);

/* Fails unless |got - want| <= absolute + relative |want| for every element; NaN equals NaN, so that
 * an element which the reference leaves alone must be left alone. */
void tg_assert_near_at(const tg_buffer *got, const tg_buffer *want, double absolute,
                       double relative, const char *what, const char *file, int line);
#define assert_near(got, want, absolute, relative, what)                                           \
    tg_assert_near_at((got), (want), (absolute), (relative), (what), __FILE__, __LINE__)
/* The same bits. */
void tg_assert_same_at(const tg_buffer *got, const tg_buffer *want, const char *what,
                       const char *file, int line);
#define assert_same(got, want, what) tg_assert_same_at((got), (want), (what), __FILE__, __LINE__)

#endif
