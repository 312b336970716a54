#include "kern/ref/ref.h"

#include "kern/ref/element.h"

#include <math.h>

/* log sum exp of x[0..K) / T */
static double log_sum_exp(size_t K, const float *x, double T)
{
    double max = -INFINITY, sum = 0;
    for (size_t k = 0; k < K; k++)
        max = fmax(max, x[k] / T);
    for (size_t k = 0; k < K; k++)
        sum += exp(x[k] / T - max);
    return max + log(sum);
}

void tg_ref_loss_cross_entropy(tg_stream *stream, size_t B, size_t K, const float *logits,
                               const float *target, float weight, float *out_loss,
                               float *out_dlogits, bool accumulate)
{
    (void)stream;
    for (size_t b = 0; b < B; b++, logits += K, target += K) {
        double lse = log_sum_exp(K, logits, 1), loss = 0, mass = 0;
        for (size_t k = 0; k < K; k++) {
            mass += target[k];
            if (target[k] != 0)
                loss -= target[k] * (logits[k] - lse);
        }
        out_loss[b] = (float)loss;
        for (size_t k = 0; out_dlogits && k < K; k++)
            tg_element_sum(&out_dlogits[b * K + k],
                           weight * (exp(logits[k] - lse) * mass - target[k]), accumulate);
    }
}

void tg_ref_loss_kl(tg_stream *stream, size_t B, size_t K, const float *student,
                    const float *teacher, float temperature, float weight, float *out_loss,
                    float *out_dlogits, bool accumulate)
{
    (void)stream;
    const double T = temperature;
    for (size_t b = 0; b < B; b++, student += K, teacher += K) {
        double lse_s = log_sum_exp(K, student, T), lse_t = log_sum_exp(K, teacher, T), loss = 0;
        for (size_t k = 0; k < K; k++) {
            double log_p = teacher[k] / T - lse_t, log_q = student[k] / T - lse_s;
            if (exp(log_p) > 0)
                loss += exp(log_p) * (log_p - log_q);
            if (out_dlogits)
                tg_element_sum(&out_dlogits[b * K + k], weight * T * (exp(log_q) - exp(log_p)),
                               accumulate);
        }
        out_loss[b] = (float)(T * T * loss);
    }
}

void tg_ref_loss_squared_error(tg_stream *stream, size_t B, size_t K, const float *x,
                               const float *y, float weight, float *out_loss, float *out_dx,
                               bool accumulate)
{
    (void)stream;
    for (size_t b = 0; b < B; b++) {
        double sum = 0;
        for (size_t i = b * K; i < (b + 1) * K; i++) {
            double d = (double)x[i] - y[i];
            sum += d * d;
            if (out_dx)
                tg_element_sum(&out_dx[i], weight * 2 * d / (double)K, accumulate);
        }
        out_loss[b] = (float)(sum / (double)K);
    }
}
