/* weight_amx.h - packs fp32 weights W [out,in] into the bf16 panels of kern/cpu/panels.h.
 *
 * transposed  b = W^T [in,out], for y = x W^T;   plain  b = W [out,in], for dx = dy W
 * Shapes      out and in are multiples of 32. One call does 32 rows of W from n on and reads them once, so
 *             that the caller may deal rows out to threads.
 * Rounding    to nearest, ties to even. */
#ifndef TG_KERN_CPU_WEIGHT_AMX_H
#define TG_KERN_CPU_WEIGHT_AMX_H

#include <stddef.h>
#include <stdint.h>

/* out_plain may be NULL. */
void tg_amx_pack_rows(size_t out_features, size_t in_features, const float *w, size_t n,
                      uint16_t *out_transposed, uint16_t *out_plain);

#endif
