/* level.h - which instruction set an operation really uses: the record of a run says it.
 *
 * A stream's level (dev/dev.h) is what operations may use; not each has a version for every level. The
 * row operations (norm, GELU, tokens, loss, optimizer, conversions) have one version a level up to
 * avx512_bf16, attention in fp32 up to avx512, attention in bf16 for avx512_bf16 and amx. What a matrix
 * library uses below `level` it does not say.
 *
 * `level` is the stream's; the answer is never above it. Reentrant, no errors.
 */
#ifndef TG_KERN_LEVEL_H
#define TG_KERN_LEVEL_H

#include "dev/dev.h"
#include "tensor/dtype.h"

tg_cpu_level tg_kern_rows_level(tg_cpu_level level);
/* TG_BF16 only for a level of avx512_bf16 or more, as for attention itself. */
tg_cpu_level tg_kern_attention_level(tg_cpu_level level, tg_dtype dtype);
/* Whose matrix products: "own" (on AMX tiles, widths that are multiples of 32) or "onednn". Static. */
const char *tg_kern_products(tg_cpu_level level, tg_dtype dtype);

#endif
