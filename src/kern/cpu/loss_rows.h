/* loss_rows.h - bodies of the losses (kern/loss.h) of one sample, for one instruction set.
 *
 * The exponentials are fp32 (vf_exp), all sums are double: 16 sums whatever the vectors' width. */
#ifndef TG_KERN_CPU_LOSS_ROWS_H
#define TG_KERN_CPU_LOSS_ROWS_H

#include "kern/cpu/rows.h"
#include "kern/cpu/simd.h"

VF_INLINE float loss_largest(size_t K, const float *x)
{
    const size_t whole = K - K % VF_LANES;
    float largest = -INFINITY;
    if (whole) {
        vf m = vf_load(x, VF_LANES);
        for (size_t k = VF_LANES; k < whole; k += VF_LANES)
            m = vf_max(m, vf_load(x + k, VF_LANES));
        largest = vf_largest(m);
    }
    for (size_t k = whole; k < K; k++)
        largest = x[k] > largest ? x[k] : largest;
    return largest;
}

/* out[l] = exp(scale (x[l] - shift)) for l < n <= 16 */
VF_INLINE void loss_exp16(size_t n, const float *x, float shift, float scale, float out[16])
{
    for (size_t l = 0; l < n; l += VF_LANES)
        vf_store(out + l, n - l, vf_exp((vf_load(x + l, n - l) - vf_set(shift)) * vf_set(scale)));
}

VF_INLINE double loss_total(const double lanes[16])
{
    double sum = 0;
    for (size_t l = 0; l < 16; l++)
        sum += lanes[l];
    return sum;
}

/* log sum_k exp(scale (x[k] - largest)); 0 or more */
VF_INLINE double loss_log_sum(size_t K, const float *x, float largest, float scale)
{
    double lanes[16] = {0};
    for (size_t k = 0; k < K; k += 16) {
        size_t n = K - k < 16 ? K - k : 16;
        float e[16] = {0};
        loss_exp16(n, x + k, largest, scale, e);
        for (size_t l = 0; l < 16; l++)
            lanes[l] += e[l];
    }
    return log(loss_total(lanes));
}

VF_INLINE void loss_gradient(float *out, float value, bool accumulate)
{
    *out = accumulate ? *out + value : value;
}

static inline float cross_entropy_row(size_t K, const float *logits, const float *target,
                                      float weight, float *out_d, bool accumulate)
{
    const float largest = loss_largest(K, logits);
    const double log_sum = loss_log_sum(K, logits, largest, 1);
    double mass = 0, inner = 0;
    for (size_t k = 0; k < K; k++) {
        mass += target[k];
        if (target[k] != 0) /* a class of probability 0 may have a logit of -inf */
            inner += target[k] * ((double)logits[k] - largest);
    }
    const float share = (float)(mass * exp(-log_sum));
    for (size_t k = 0; out_d && k < K; k += 16) {
        size_t n = K - k < 16 ? K - k : 16;
        float e[16];
        loss_exp16(n, logits + k, largest, 1, e);
        for (size_t l = 0; l < n; l++)
            loss_gradient(out_d + k + l, weight * (e[l] * share - target[k + l]), accumulate);
    }
    return (float)(mass * log_sum - inner);
}

static inline float kl_row(size_t K, const float *student, const float *teacher, float temperature,
                           float weight, float *out_d, bool accumulate)
{
    const float cold = 1 / temperature;
    const float max_s = loss_largest(K, student), max_t = loss_largest(K, teacher);
    const double log_s = loss_log_sum(K, student, max_s, cold);
    const double log_t = loss_log_sum(K, teacher, max_t, cold);
    const float share_s = (float)exp(-log_s), share_t = (float)exp(-log_t);
    const float factor = weight * temperature;
    double lanes[16] = {0};
    for (size_t k = 0; k < K; k += 16) {
        size_t n = K - k < 16 ? K - k : 16;
        float q[16], p[16];
        loss_exp16(n, student + k, max_s, cold, q);
        loss_exp16(n, teacher + k, max_t, cold, p);
        for (size_t l = 0; l < n; l++) {
            double log_p = ((double)teacher[k + l] - max_t) / temperature - log_t;
            double log_q = ((double)student[k + l] - max_s) / temperature - log_s;
            if (p[l] > 0)
                lanes[l] += (double)p[l] * share_t * (log_p - log_q);
            if (out_d)
                loss_gradient(out_d + k + l, factor * (q[l] * share_s - p[l] * share_t),
                              accumulate);
        }
    }
    return (float)((double)temperature * temperature * loss_total(lanes));
}

static inline float squared_error_row(size_t K, const float *x, const float *y, float weight,
                                      float *out_d, bool accumulate)
{
    const float factor = (float)(weight * 2.0 / (double)K);
    double lanes[16] = {0};
    for (size_t k = 0; k < K; k += 16) {
        size_t n = K - k < 16 ? K - k : 16;
        for (size_t l = 0; l < n; l++) {
            float d = x[k + l] - y[k + l];
            lanes[l] += (double)d * d;
            if (out_d)
                loss_gradient(out_d + k + l, factor * d, accumulate);
        }
    }
    return (float)(loss_total(lanes) / (double)K);
}

#endif
