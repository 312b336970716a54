/* optimizer.h - AdamW over the flat buffer: groups, clipping, and the weight average.
 *
 * Source   Loshchilov, Hutter, "Decoupled weight decay regularization", 2019; layer-wise rates:
 *          Clark et al., "ELECTRA", 2020, with timm's grouping; weight average: Polyak, Juditsky.
 * Groups   A parameter decays when its table entry says so (2-D and more, no token, no position);
 *          its rate is lr * layer_decay^(top layer - layer). Neighbours of one group are updated as
 *          one span, padding included (it is 0 and stays 0).
 * Average  e += (1 - d_n)(p - e) with d_n = min(decay, (1 + n)/(10 + n)) after n updates: a short run
 *          is not held back by its random start.
 * Memory   moments m, v and the average are the caller's flat buffers, zeroed (m, v) or equal to the
 *          parameters (average) at the start; groups are owned by the optimizer (heap).
 */
#ifndef TG_OPTIM_OPTIMIZER_H
#define TG_OPTIM_OPTIMIZER_H

#include "kern/kern.h"
#include "tensor/param.h"

#include <stdint.h>

typedef struct tg_optimizer_options {
    double beta1, beta2, eps, weight_decay;
    double layer_decay; /* 1: off */
    double clip_grad;   /* largest gradient norm; 0: off */
    double ema_decay;   /* 0: no average */
} tg_optimizer_options;

typedef struct tg_optimizer_span {
    size_t offset, count;
    bool decay;
    float lr_scale;
} tg_optimizer_span;

typedef struct tg_optimizer {
    tg_optimizer_options options;
    const tg_kern *kern;
    tg_stream *stream;
    tg_optimizer_span *spans;
    size_t span_count;
    size_t elements;
    float *params, *m, *v, *average; /* borrowed; average NULL when off */
    int64_t updates;                 /* done so far: t of the bias correction, n of the average */
} tg_optimizer;

tg_status tg_optimizer_init(tg_optimizer *optimizer, const tg_optimizer_options *options,
                            const tg_kern *kern, tg_stream *stream, const tg_param_table *table,
                            float *params, float *m, float *v, float *average) TG_MUST_CHECK;
void tg_optimizer_done(tg_optimizer *optimizer);

/* One update from `grads` times `grad_scale` (the mean over a window of micro-batches). Writes the
 * norm of the scaled gradient before clipping. Returns TG_AGAIN and changes nothing when that norm is
 * not finite. */
tg_status tg_optimizer_step(tg_optimizer *optimizer, const float *grads, double grad_scale,
                            double lr, double *out_grad_norm) TG_MUST_CHECK;

/* The same in pieces, for whoever has the norm and keeps gradients, moments and average piece by piece:
 * begin_step once (`updates` goes up by one), then update_range for each range [offset, offset + count),
 * both multiples of 16 floats; a range may cut tensors and groups. Each element at most once a step.
 * grads, m, v and average (NULL when off) point at the first element of the range; grad_scale holds
 * the clipping (tg_optimizer_clip). Whatever the cuts, the same bits as tg_optimizer_step. */
void tg_optimizer_begin_step(tg_optimizer *optimizer);
void tg_optimizer_update_range(const tg_optimizer *optimizer, size_t offset, size_t count,
                               const float *grads, float *m, float *v, float *average,
                               double grad_scale, double lr);
/* Factor of a gradient whose norm, scaled by grad_scale, is `norm`: grad_scale itself, or less. */
double tg_optimizer_clip(const tg_optimizer *optimizer, double grad_scale, double norm);

/* Elements with and without decay, for the start log. */
void tg_optimizer_count(const tg_param_table *table, size_t *out_decay, size_t *out_no_decay);

#endif
