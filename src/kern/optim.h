/* optim.h - elementwise work on flat fp32 buffers: AdamW, norms, averages.
 *
 * AdamW      Loshchilov, Hutter 2019, as torch.optim.AdamW computes it:
 *            p *= 1 - lr wd;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
 *            p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *            g is first multiplied by grad_scale (clipping, averaging).
 *            With `average` given, its update (Average, below) follows in the same sweep.
 * Norm       sum of squares in double over fixed chunks of 65,536 elements in index order, the first of
 *            which begins at x. Its bits depend on x[0 .. n) alone: not on the thread count, nor on
 *            where in a larger buffer x lies. So the sums of a buffer's pieces, added in a fixed order,
 *            are the same bits whoever computes which.
 * Average    e += (1 - decay) (p - e)
 */
#ifndef TG_KERN_OPTIM_H
#define TG_KERN_OPTIM_H

#include "dev/dev.h"

#include <stddef.h>

typedef struct tg_adamw {
    double beta1, beta2; /* double: in float, 1 - 0.999f is 1.3e-5 away from 0.001 */
    float lr, eps, weight_decay;
    float grad_scale;
    double bias1, bias2; /* 1 - beta1^t, 1 - beta2^t */
    float *average;     /* [n] weight average to update with the new p, or NULL */
    float average_decay;
} tg_adamw;

typedef struct tg_optim_ops {
    void (*adamw)(tg_stream *stream, size_t n, float *p, const float *g, float *m, float *v,
                  const tg_adamw *hyper);
    double (*sum_squares)(tg_stream *stream, size_t n, const float *x);
    void (*average)(tg_stream *stream, size_t n, float *e, const float *p, float decay);
} tg_optim_ops;

#endif
