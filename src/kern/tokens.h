/* tokens.h - prefix tokens, patches and positions to the residual stream, and pooling at its end.
 *
 * Assemble   x[b, t, :] = prefix[t, :]                          t <  prefix_count
 *            x[b, prefix_count + n, :] = patch[b, n, :] + pos[n, :]
 *            The model builds `prefix` [prefix_count, C] fp32 from class, distillation and register
 *            tokens and their positions (a few rows), and passes pos [N, C] of the patches.
 * Backward   dprefix[t,c] (+)= sum_b dx[b,t,c];  dpos[n,c] (+)= sum_b dx[b,prefix_count+n,c];
 *            dpatch = dx of the patch rows in dtype.
 * Mean       out[b,c] = mean over t in [first, T) of x[b,t,c] (average pooling);
 *            backward adds d_out[b,c] / (T - first) to dres (dres_zero: writes, other rows 0).
 * Arguments  x, dx fp32 [B,T,C] with T = prefix_count + N; patch, dpatch [B,N,C] dtype.
 * Order      sums over b run in index order: same bits for any thread count.
 */
#ifndef TG_KERN_TOKENS_H
#define TG_KERN_TOKENS_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_tokens_shape {
    size_t B, N, C, prefix_count;
    tg_dtype dtype;
} tg_tokens_shape;

typedef struct tg_tokens_ops {
    void (*assemble)(tg_stream *stream, const tg_tokens_shape *shape, const void *patch,
                     const float *prefix, const float *pos, float *out_x);
    /* dprefix or dpos may be NULL (frozen). */
    void (*assemble_backward)(tg_stream *stream, const tg_tokens_shape *shape, const float *dx,
                              void *out_dpatch, float *dprefix, float *dpos, bool accumulate);
    void (*mean)(tg_stream *stream, size_t B, size_t T, size_t C, size_t first, const float *x,
                 float *out_mean);
    void (*mean_backward)(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                          const float *d_out, float *dres, bool dres_zero);
    /* Conversions between fp32 and dtype, n elements. */
    void (*from_f32)(tg_stream *stream, size_t n, const float *x, tg_dtype dtype, void *out);
    void (*to_f32)(tg_stream *stream, size_t n, const void *x, tg_dtype dtype, float *out);
} tg_tokens_ops;

#endif
