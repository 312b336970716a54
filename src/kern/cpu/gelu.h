/* gelu.h - GELU and its slope on spans of elements, for the feed-forward on the CPU.
 *
 * Formula    as kern/mlp.h. exact: Phi(h) = (1 + erf(h / sqrt 2)) / 2, phi(h) = exp(-h^2/2)/sqrt(2 pi)
 *            g = h Phi(h);  dh = dg (Phi(h) + h phi(h))
 *            tanh: with u = sqrt(2/pi)(h + 0.044715 h^3), s = 1 / (1 + exp(-2u)):
 *            g = h s;  dh = dg (s + 2 h s (1 - s) u')
 * Arguments  n elements of `dtype` (TG_F32 or TG_BF16), any alignment. out_g of forward may be h.
 *            out_dh may be dg; out_g of backward may be NULL (only dh) and may not overlap h or dg.
 * Level      a level this machine has (tg_stream_level); higher levels use wider vectors.
 * Threads    one: the caller splits the span. The bits of an element do not depend on the split.
 * Accuracy   fp32 exact: g within 5 eps |g| (eps 2^-23; 2 eps |g| for h >= 0), the slope within 5 eps
 *            of the sum of its terms' magnitudes; tanh: 3 |u| eps more where h < 0.
 *            bf16: before their final rounding g is within 1.1e-5 |h| and the slope within 4e-5.
 */
#ifndef TG_KERN_CPU_GELU_H
#define TG_KERN_CPU_GELU_H

#include "dev/dev.h"
#include "kern/mlp.h"

void tg_gelu_forward_rows(tg_cpu_level level, tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                          void *out_g);
void tg_gelu_backward(tg_cpu_level level, tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                      const void *dg, void *out_g, void *out_dh);

#endif
