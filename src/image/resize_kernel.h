/* resize_kernel.h - the two passes of resize.c, plain and AVX2; not for use outside image/.
 *
 * A weight w of 22 fraction bits is split as w = 2048 high + low with 0 <= low < 2048, so that two
 * taps fit one multiply-add of 16-bit numbers; both versions give the same integers.
 */
#ifndef TG_IMAGE_RESIZE_KERNEL_H
#define TG_IMAGE_RESIZE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { TG_RESIZE_BITS = 22, TG_RESIZE_LOW_BITS = 11 };

/* For target pixel i: taps weights (a multiple of 4, the last ones 0) from source pixel start[i].
 */
typedef struct tg_resize_table {
    int count, taps;
    const int32_t *start, *used; /* used: taps that are not padding */
    const int32_t *weight;       /* [count][taps] */
    const int16_t *high, *low;   /* [count][taps] */
} tg_resize_table;

/* Rows of `table->count` pixels from `rows` source rows. The AVX2 version reads up to 28 bytes past
 * the last tap. */
typedef void (*tg_resize_horizontal)(const tg_resize_table *table, const uint8_t *source,
                                     size_t source_stride, int rows, uint8_t *out,
                                     size_t out_stride);
/* One target row (number `i`) of `samples` bytes; source row 0 is what start[] counts from. */
typedef void (*tg_resize_vertical)(const tg_resize_table *table, int i, const uint8_t *source,
                                   size_t source_stride, size_t samples, uint8_t *out);

void tg_resize_horizontal_plain(const tg_resize_table *table, const uint8_t *source,
                                size_t source_stride, int rows, uint8_t *out, size_t out_stride);
void tg_resize_vertical_plain(const tg_resize_table *table, int i, const uint8_t *source,
                              size_t source_stride, size_t samples, uint8_t *out);
#if defined(__x86_64__)
void tg_resize_horizontal_avx2(const tg_resize_table *table, const uint8_t *source,
                               size_t source_stride, int rows, uint8_t *out, size_t out_stride);
void tg_resize_vertical_avx2(const tg_resize_table *table, int i, const uint8_t *source,
                             size_t source_stride, size_t samples, uint8_t *out);
#endif

#endif
