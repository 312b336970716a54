#include "kern/ref/ref.h"

#include "kern/ref/element.h"

void tg_ref_tokens_assemble(tg_stream *stream, const tg_tokens_shape *s, const void *patch,
                            const float *prefix, const float *pos, float *out_x)
{
    (void)stream;
    for (size_t b = 0; b < s->B; b++) {
        float *x = out_x + b * (s->prefix_count + s->N) * s->C;
        for (size_t i = 0; i < s->prefix_count * s->C; i++)
            x[i] = prefix[i];
        x += s->prefix_count * s->C;
        for (size_t i = 0; i < s->N * s->C; i++)
            x[i] = (float)(tg_element_load(patch, s->dtype, b * s->N * s->C + i) + pos[i]);
    }
}

/* out[i] (+)= sum_b dx[b][first + i] over i < n, with samples `stride` apart. */
static void sum_samples(size_t B, size_t stride, size_t first, size_t n, const float *dx,
                        float *out, bool accumulate)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t b = 0; b < B; b++)
            sum += dx[b * stride + first + i];
        tg_element_sum(&out[i], sum, accumulate);
    }
}

void tg_ref_tokens_assemble_backward(tg_stream *stream, const tg_tokens_shape *s, const float *dx,
                                     void *out_dpatch, float *dprefix, float *dpos, bool accumulate)
{
    (void)stream;
    const size_t prefix = s->prefix_count * s->C, rest = s->N * s->C, stride = prefix + rest;
    for (size_t b = 0; b < s->B; b++)
        for (size_t i = 0; i < rest; i++)
            tg_element_store(out_dpatch, s->dtype, b * rest + i, dx[b * stride + prefix + i]);
    if (dprefix)
        sum_samples(s->B, stride, 0, prefix, dx, dprefix, accumulate);
    if (dpos)
        sum_samples(s->B, stride, prefix, rest, dx, dpos, accumulate);
}

void tg_ref_tokens_mean(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                        const float *x, float *out_mean)
{
    (void)stream;
    for (size_t b = 0; b < B; b++)
        for (size_t c = 0; c < C; c++) {
            double sum = 0;
            for (size_t t = first; t < T; t++)
                sum += x[(b * T + t) * C + c];
            out_mean[b * C + c] = (float)(sum / (double)(T - first));
        }
}

void tg_ref_tokens_mean_backward(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                                 const float *d_out, float *dres, bool dres_zero)
{
    (void)stream;
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t < T; t++)
            for (size_t c = 0; c < C; c++) {
                double d = t < first ? 0 : d_out[b * C + c] / (double)(T - first);
                tg_element_sum(&dres[(b * T + t) * C + c], d, !dres_zero);
            }
}

void tg_ref_tokens_from_f32(tg_stream *stream, size_t n, const float *x, tg_dtype dtype, void *out)
{
    (void)stream;
    for (size_t i = 0; i < n; i++)
        tg_element_store(out, dtype, i, x[i]);
}

void tg_ref_tokens_to_f32(tg_stream *stream, size_t n, const void *x, tg_dtype dtype, float *out)
{
    (void)stream;
    for (size_t i = 0; i < n; i++)
        out[i] = (float)tg_element_load(x, dtype, i);
}
