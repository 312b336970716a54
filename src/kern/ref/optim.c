#include "kern/ref/ref.h"

#include <math.h>

void tg_ref_optim_adamw(tg_stream *stream, size_t n, float *p, const float *g, float *m, float *v,
                        const tg_adamw *hyper)
{
    const double b1 = hyper->beta1, b2 = hyper->beta2, lr = hyper->lr;
    for (size_t i = 0; i < n; i++) {
        double grad = (double)g[i] * hyper->grad_scale;
        m[i] = (float)(b1 * m[i] + (1 - b1) * grad);
        v[i] = (float)(b2 * v[i] + (1 - b2) * grad * grad);
        double denominator = sqrt(v[i]) / sqrt(hyper->bias2) + hyper->eps;
        p[i] =
            (float)(p[i] * (1 - lr * hyper->weight_decay) - lr / hyper->bias1 * m[i] / denominator);
        if (hyper->average)
            tg_ref_optim_average(stream, 1, hyper->average + i, p + i, hyper->average_decay);
    }
}

double tg_ref_optim_sum_squares(tg_stream *stream, size_t n, const float *x)
{
    (void)stream;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

void tg_ref_optim_average(tg_stream *stream, size_t n, float *e, const float *p, float decay)
{
    (void)stream;
    for (size_t i = 0; i < n; i++)
        e[i] = (float)(e[i] + (1 - (double)decay) * ((double)p[i] - e[i]));
}
