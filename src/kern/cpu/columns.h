/* columns.h - sums over the rows of a matrix, as bias gradients need them.
 *
 * Formula    out[c] (+)= sum_r dy[r,c]
 * Arguments  dy [R,C] of `dtype` (TG_F32 or TG_BF16) with leading dimension ld >= C; out fp32 [C].
 * Order      fp32 sums over chunks of 64 rows in row order, chunks added in order: the bits of a
 *            column do not depend on how the caller splits the columns over threads.
 * Threads    one: the caller splits the columns (multiples of 64 keep cache lines whole).
 */
#ifndef TG_KERN_CPU_COLUMNS_H
#define TG_KERN_CPU_COLUMNS_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>

void tg_column_sums(tg_cpu_level level, tg_dtype dtype, size_t R, size_t C, size_t ld,
                    const void *dy, float *out, bool accumulate);

#endif
