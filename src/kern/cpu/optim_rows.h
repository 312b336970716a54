/* optim_rows.h - bodies of the optimizer's kernels (kern/optim.h) for one instruction set. */
#ifndef TG_KERN_CPU_OPTIM_ROWS_H
#define TG_KERN_CPU_OPTIM_ROWS_H

#include "kern/cpu/rows.h"
#include "kern/cpu/simd.h"

typedef struct adamw_factors {
    vf grad_scale, b1, not_b1, b2, not_b2, keep, step, inv_sqrt_bias2, eps, not_decay;
} adamw_factors;

VF_INLINE void adamw_lanes(size_t n, float *p, const float *g, float *m, float *v, float *average,
                           const adamw_factors *f)
{
    vf grad = vf_load(g, n) * f->grad_scale;
    vf new_m = vf_fma(f->b1, vf_load(m, n), f->not_b1 * grad);
    vf new_v = vf_fma(f->b2, vf_load(v, n), f->not_b2 * grad * grad);
    vf denominator = vf_fma(vf_sqrt(new_v), f->inv_sqrt_bias2, f->eps);
    vf new_p = vf_load(p, n) * f->keep - f->step * new_m / denominator;
    vf_store(m, n, new_m);
    vf_store(v, n, new_v);
    vf_store(p, n, new_p);
    if (average) {
        vf e = vf_load(average, n);
        vf_store(average, n, vf_fma(f->not_decay, new_p - e, e));
    }
}

static inline void adamw_rows(size_t n, float *p, const float *g, float *m, float *v,
                              float *average, const tg_adamw *h)
{
    const adamw_factors f = {
        .grad_scale = vf_set(h->grad_scale),
        .b1 = vf_set((float)h->beta1),
        .not_b1 = vf_set((float)(1 - h->beta1)),
        .b2 = vf_set((float)h->beta2),
        .not_b2 = vf_set((float)(1 - h->beta2)),
        .keep = vf_set((float)(1 - (double)h->lr * h->weight_decay)),
        .step = vf_set((float)(h->lr / h->bias1)),
        .inv_sqrt_bias2 = vf_set((float)(1 / sqrt(h->bias2))),
        .eps = vf_set(h->eps),
        .not_decay = vf_set((float)(1 - (double)h->average_decay)),
    };
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        adamw_lanes(VF_LANES, p + i, g + i, m + i, v + i, average ? average + i : NULL, &f);
    if (i < n)
        adamw_lanes(n - i, p + i, g + i, m + i, v + i, average ? average + i : NULL, &f);
}

/* 16 double sums whatever the vectors' width, so that every level gives the same bits. */
static inline double sum_squares_rows(size_t n, const float *x)
{
    double lanes[16] = {0}, sum = 0;
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t l = 0; l < 16; l++)
            lanes[l] += (double)x[i + l] * x[i + l];
    for (; i < n; i++)
        sum += (double)x[i] * x[i];
    for (size_t l = 0; l < 16; l++)
        sum += lanes[l];
    return sum;
}

static inline void average_rows(size_t n, float *e, const float *p, float decay)
{
    const vf factor = vf_set((float)(1 - (double)decay));
    for (size_t i = 0; i < n; i += VF_LANES) {
        vf old = vf_load(e + i, n - i);
        vf_store(e + i, n - i, vf_fma(factor, vf_load(p + i, n - i) - old, old));
    }
}

#endif
