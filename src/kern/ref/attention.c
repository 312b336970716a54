#include "kern/ref/ref.h"

#include "base/checked.h"
#include "kern/ref/element.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { Q, K, V };

/* Element index of row `which` of token t, head h in the packed [B,T,3,H,D]. */
static size_t packed(const tg_attention_shape *s, size_t b, size_t t, size_t which, size_t h)
{
    return (((b * s->T + t) * 3 + which) * s->H + h) * s->D;
}

static size_t row_of_o(const tg_attention_shape *s, size_t b, size_t t, size_t h)
{
    return ((b * s->T_q + t) * s->H + h) * s->D;
}

static double dot(const tg_attention_shape *s, const void *a, size_t i, const void *b, size_t j)
{
    double sum = 0;
    for (size_t d = 0; d < s->D; d++)
        sum += tg_element_load(a, s->dtype, i + d) * tg_element_load(b, s->dtype, j + d);
    return sum;
}

/* row += factor * array[i..i+D) */
static void add_scaled(const tg_attention_shape *s, double *row, double factor, const void *array,
                       size_t i)
{
    for (size_t d = 0; d < s->D; d++)
        row[d] += factor * tg_element_load(array, s->dtype, i + d);
}

static void store_row(const tg_attention_shape *s, void *out, size_t i, double *row, double factor)
{
    for (size_t d = 0; d < s->D; d++) {
        tg_element_store(out, s->dtype, i + d, factor * row[d]);
        row[d] = 0;
    }
}

static tg_status scratch_new(const tg_attention_shape *s, double **out)
{
    size_t count;
    double *scratch = NULL;
    if (tg_add_size(s->T, 2 * s->D, &count))
        scratch = calloc(count ? count : 1, sizeof *scratch);
    if (!scratch)
        return tg_fail(TG_ERROR_MACHINE, "attention of %zu tokens: no memory for scratch rows",
                       s->T);
    *out = scratch;
    return TG_OK;
}

/* Query row (b,h,t): p[T] is scratch, acc[D] is zero before and after. Returns lse. */
static double forward_row(const tg_attention_shape *s, size_t b, size_t h, size_t t,
                          const void *qkv, double *p, double *acc, void *out_o)
{
    double max = -INFINITY, sum = 0;
    for (size_t k = 0; k < s->T; k++) {
        double product = dot(s, qkv, packed(s, b, t, Q, h), qkv, packed(s, b, k, K, h));
        p[k] = fabs(product) <= FLT_MAX ? s->scale * product : NAN;
        max = fmax(max, p[k]);
    }
    if (!(fabs(max) <= TG_ATTENTION_FARTHEST * M_LN2))
        max = NAN;
    for (size_t k = 0; k < s->T; k++) {
        double e = exp(p[k] - max);
        sum += e;
        add_scaled(s, acc, e, qkv, packed(s, b, k, V, h));
    }
    store_row(s, out_o, row_of_o(s, b, t, h), acc, 1 / sum);
    return max + log(sum);
}

tg_status tg_ref_attention_forward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                   void *out_o, float *out_lse)
{
    (void)stream;
    assert(s->T_q <= s->T);
    double *scratch = NULL;
    TG_TRY(scratch_new(s, &scratch));
    for (size_t b = 0; b < s->B; b++)
        for (size_t h = 0; h < s->H; h++)
            for (size_t t = 0; t < s->T_q; t++) {
                double lse = forward_row(s, b, h, t, qkv, scratch, scratch + s->T, out_o);
                if (out_lse)
                    out_lse[(b * s->H + h) * s->T_q + t] = (float)lse;
            }
    free(scratch);
    return TG_OK;
}

typedef struct backward_args {
    const tg_attention_shape *shape;
    const void *qkv, *d_o;
    const float *lse; /* [T_q] of this head */
    double *delta;    /* [T_q] of this head */
    size_t b, h;
} backward_args;

/* P[t,k] and dS[t,k] of one head. */
static void pair(const backward_args *a, size_t t, size_t k, double *out_p, double *out_ds)
{
    const tg_attention_shape *s = a->shape;
    double score = dot(s, a->qkv, packed(s, a->b, t, Q, a->h), a->qkv, packed(s, a->b, k, K, a->h));
    double dp = dot(s, a->d_o, row_of_o(s, a->b, t, a->h), a->qkv, packed(s, a->b, k, V, a->h));
    *out_p = exp(s->scale * score - a->lse[t]);
    *out_ds = *out_p * (dp - a->delta[t]);
}

static void backward_head(const backward_args *a, double *acc, void *out_dqkv)
{
    const tg_attention_shape *s = a->shape;
    const size_t b = a->b, h = a->h;
    double *acc_v = acc + s->D, p, ds;
    for (size_t t = 0; t < s->T; t++) {
        for (size_t k = 0; t < s->T_q && k < s->T; k++) {
            pair(a, t, k, &p, &ds);
            add_scaled(s, acc, ds, a->qkv, packed(s, b, k, K, h));
        }
        store_row(s, out_dqkv, packed(s, b, t, Q, h), acc, s->scale);
    }
    for (size_t k = 0; k < s->T; k++) {
        for (size_t t = 0; t < s->T_q; t++) {
            pair(a, t, k, &p, &ds);
            add_scaled(s, acc, ds, a->qkv, packed(s, b, t, Q, h));
            add_scaled(s, acc_v, p, a->d_o, row_of_o(s, b, t, h));
        }
        store_row(s, out_dqkv, packed(s, b, k, K, h), acc, s->scale);
        store_row(s, out_dqkv, packed(s, b, k, V, h), acc_v, 1);
    }
}

tg_status tg_ref_attention_backward(tg_stream *stream, const tg_attention_shape *s, const void *qkv,
                                    const void *o, const float *lse, const void *d_o,
                                    void *out_dqkv)
{
    (void)stream;
    assert(s->T_q <= s->T);
    double *scratch = NULL;
    TG_TRY(scratch_new(s, &scratch));
    for (size_t b = 0; b < s->B; b++)
        for (size_t h = 0; h < s->H; h++) {
            backward_args a = {.shape = s,
                               .qkv = qkv,
                               .d_o = d_o,
                               .delta = scratch,
                               .lse = lse + (b * s->H + h) * s->T_q,
                               .b = b,
                               .h = h};
            for (size_t t = 0; t < s->T_q; t++)
                a.delta[t] = dot(s, o, row_of_o(s, b, t, h), d_o, row_of_o(s, b, t, h));
            backward_head(&a, scratch + s->T, out_dqkv);
        }
    free(scratch);
    return TG_OK;
}
