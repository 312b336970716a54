#include "kern/ref/ref.h"

#include "base/checked.h"
#include "kern/ref/element.h"

#include <stdlib.h>

size_t tg_ref_weight_bytes(size_t out_features, size_t in_features, tg_dtype compute,
                           bool trainable)
{
    (void)compute;
    (void)trainable;
    return sizeof(tg_weight) + out_features * in_features * sizeof(float) +
           in_features * sizeof(double);
}

void tg_ref_weight_free(tg_weight *weight)
{
    if (!weight)
        return;
    free(weight->w);
    free(weight->row);
    free(weight);
}

tg_status tg_ref_weight_new(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out)
{
    (void)stream;
    (void)trainable;
    size_t count;
    tg_weight *weight = calloc(1, sizeof *weight);
    if (!weight || !tg_mul_size(out_features, in_features, &count))
        goto free_weight;
    *weight =
        (tg_weight){.out_features = out_features, .in_features = in_features, .compute = compute};
    weight->w = calloc(count, sizeof *weight->w);
    weight->row = calloc(in_features, sizeof *weight->row);
    if (!weight->w || !weight->row)
        goto free_weight;
    *out = weight;
    return TG_OK;
free_weight:
    tg_ref_weight_free(weight);
    return tg_fail(TG_ERROR_MACHINE, "linear [%zu,%zu]: no memory for the prepared weight",
                   out_features, in_features);
}

tg_status tg_ref_weight_refresh(tg_stream *stream, tg_weight *weight, const float *w)
{
    (void)stream;
    for (size_t i = 0; i < weight->out_features * weight->in_features; i++)
        weight->w[i] = (float)tg_element_round(w[i], weight->compute);
    weight->fresh = true;
    return TG_OK;
}

tg_status tg_ref_linear_forward(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                const float *bias, void *out_y, tg_dtype y_dtype)
{
    (void)stream;
    assert(weight->fresh);
    const size_t out = weight->out_features, in = weight->in_features;
    for (size_t r = 0; r < R; r++) {
        for (size_t i = 0; i < in; i++)
            weight->row[i] = tg_element_load(x, weight->compute, r * in + i);
        for (size_t o = 0; o < out; o++) {
            double sum = bias ? bias[o] : 0;
            for (size_t i = 0; i < in; i++)
                sum += weight->row[i] * weight->w[o * in + i];
            tg_element_store(out_y, y_dtype, r * out + o, sum);
        }
    }
    return TG_OK;
}

tg_status tg_ref_linear_backward_input(tg_stream *stream, tg_weight *weight, size_t R,
                                       const void *dy, void *out_dx)
{
    (void)stream;
    assert(weight->fresh);
    const size_t out = weight->out_features, in = weight->in_features;
    for (size_t r = 0; r < R; r++) {
        for (size_t i = 0; i < in; i++)
            weight->row[i] = 0;
        for (size_t o = 0; o < out; o++) {
            double d = tg_element_load(dy, weight->compute, r * out + o);
            for (size_t i = 0; i < in; i++)
                weight->row[i] += d * weight->w[o * in + i];
        }
        for (size_t i = 0; i < in; i++)
            tg_element_store(out_dx, weight->compute, r * in + i, weight->row[i]);
    }
    return TG_OK;
}

tg_status tg_ref_linear_backward_weight(tg_stream *stream, tg_weight *weight, size_t R,
                                        const void *x, const void *dy, float *dw, float *dbias,
                                        bool accumulate)
{
    (void)stream;
    const size_t out = weight->out_features, in = weight->in_features;
    for (size_t o = 0; o < out; o++) {
        double sum = 0;
        for (size_t i = 0; i < in; i++)
            weight->row[i] = 0;
        for (size_t r = 0; r < R; r++) {
            double d = tg_element_load(dy, weight->compute, r * out + o);
            sum += d;
            for (size_t i = 0; i < in; i++)
                weight->row[i] += d * tg_element_load(x, weight->compute, r * in + i);
        }
        for (size_t i = 0; i < in; i++)
            tg_element_sum(&dw[o * in + i], weight->row[i], accumulate);
        if (dbias)
            tg_element_sum(&dbias[o], sum, accumulate);
    }
    return TG_OK;
}
