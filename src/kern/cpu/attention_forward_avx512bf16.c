#include "kern/attention.h"
#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"

#include <math.h>
#include <string.h>

/* Query rows handled together: two rows of tiles. */
enum { BLOCK = 32 };

typedef struct buffers {
    size_t Tp, Dp; /* T and D rounded up to 32 */
    uint16_t *k;   /* transposed, paired */
    uint16_t *v;   /* paired */
    uint16_t *q;   /* [BLOCK][Dp] */
    float *s;      /* [BLOCK][lds] scores */
    uint16_t *p;   /* [BLOCK][lds] exp(scores - max), zero from T to Tp */
    float *o;      /* [BLOCK][Dp] */
    size_t lds;
    float *max, *sum; /* [BLOCK], of the scaled scores in units of log 2 */
} buffers;

static size_t layout(size_t T, size_t D, void *base, buffers *out)
{
    size_t used = 0, Tp = tg_attention_round(T, 32), Dp = tg_attention_round(D, 32);
    out->Tp = Tp;
    out->Dp = Dp;
    out->lds = tg_attention_ld(Tp);
    out->k = tg_attention_take(base, &used, Tp * Dp * 2);
    out->v = tg_attention_take(base, &used, Tp * Dp * 2);
    out->q = tg_attention_take(base, &used, BLOCK * Dp * 2);
    out->s = tg_attention_take(base, &used, BLOCK * out->lds * 4);
    out->p = tg_attention_take(base, &used, BLOCK * out->lds * 2);
    out->o = tg_attention_take(base, &used, BLOCK * Dp * 4);
    out->max = tg_attention_take(base, &used, BLOCK * 4);
    out->sum = tg_attention_take(base, &used, BLOCK * 4);
    return used;
}

size_t tg_attention_bf16_forward_bytes(size_t T, size_t D)
{
    buffers unused;
    return layout(T, D, NULL, &unused);
}

/* Largest score of the row; the columns from T on do not count. NaN when the least is infinite; other
 * scores that are not finite show in the row's sum. */
static float row_max(const float *s, size_t T)
{
    const __m512 none = _mm512_set1_ps(-__builtin_inff());
    __m512 a = none, b = none, least = _mm512_setzero_ps();
    size_t t = 0;
    for (; t + 32 <= T; t += 32) {
        __m512 s0 = _mm512_load_ps(s + t), s1 = _mm512_load_ps(s + t + 16);
        a = _mm512_max_ps(a, s0);
        b = _mm512_max_ps(b, s1);
        least = _mm512_min_ps(least, _mm512_min_ps(s0, s1));
    }
    for (; t < T; t += 16) {
        __mmask16 mask = tg_lanes(T - t);
        a = _mm512_max_ps(a, _mm512_mask_loadu_ps(none, mask, s + t));
        least = _mm512_min_ps(least, _mm512_maskz_loadu_ps(mask, s + t));
    }
    if (isinf(_mm512_reduce_min_ps(least)))
        return NAN;
    return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
}

/* p = exp(scale s - max) rounded to bf16, zero from T to Tp; returns the sum before rounding. */
static float row_exp(const float *s, uint16_t *p, size_t T, float factor, float max)
{
    const __m512 f = _mm512_set1_ps(factor), m = _mm512_set1_ps(max);
    __m512 sum0 = _mm512_setzero_ps(), sum1 = _mm512_setzero_ps();
    size_t t = 0;
    for (; t + 32 <= T; t += 32) {
        __m512 e0 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s + t), f, m));
        __m512 e1 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s + t + 16), f, m));
        sum0 = _mm512_add_ps(sum0, e0);
        sum1 = _mm512_add_ps(sum1, e1);
        _mm512_store_si512(p + t, (__m512i)_mm512_cvtne2ps_pbh(e1, e0));
    }
    if (t < T) {
        __m512 e0 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s + t), f, m));
        __m512 e1 = tg_exp2_ps(_mm512_fmsub_ps(_mm512_load_ps(s + t + 16), f, m));
        e0 = _mm512_maskz_mov_ps(tg_lanes(T - t), e0);
        e1 = _mm512_maskz_mov_ps(tg_lanes(T - t > 16 ? T - t - 16 : 0), e1);
        sum0 = _mm512_add_ps(sum0, e0);
        sum1 = _mm512_add_ps(sum1, e1);
        _mm512_store_si512(p + t, (__m512i)_mm512_cvtne2ps_pbh(e1, e0));
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(sum0, sum1));
}

/* Exponentials of all rows, then their product with v. */
static void weigh(const tg_attention_weights *w, tg_attention_product *product)
{
    for (size_t r = 0; r < w->rows; r++)
        w->sum[r] = row_exp(w->s + r * w->ld, w->p + r * w->ld, w->T, w->factor, w->max[r]);
    product(&(tg_attention_operands){.M = w->rows,
                                     .N = w->N,
                                     .K = w->Tp,
                                     .a = w->p,
                                     .lda = w->ld,
                                     .b = w->v,
                                     .c = w->o,
                                     .ldc = w->ldo});
}

static void softmax_and_product(const buffers *x, const tg_attention_head *head, size_t rows,
                                const tg_attention_bf16 *level)
{
    const float factor = head->scale * TG_LOG2E;
    for (size_t r = 0; r < rows; r++) {
        float max = factor * row_max(x->s + r * x->lds, head->T);
        x->max[r] = fabsf(max) <= TG_ATTENTION_FARTHEST ? max : NAN;
    }
    for (size_t r = rows; r % 16; r++)
        x->max[r] = 0;
    const tg_attention_weights w = {.rows = rows,
                                    .T = head->T,
                                    .Tp = x->Tp,
                                    .N = x->Dp,
                                    .factor = factor,
                                    .s = x->s,
                                    .max = x->max,
                                    .ld = x->lds,
                                    .p = x->p,
                                    .v = x->v,
                                    .sum = x->sum,
                                    .o = x->o,
                                    .ldo = x->Dp};
    if (!level->weigh || !level->weigh(&w))
        weigh(&w, level->product);
}

/* The same from q on, without a maximum; false when a score is too large for that. */
static bool near_weights(const buffers *x, const tg_attention_head *head, const uint16_t *q,
                         size_t rows, const tg_attention_bf16 *level)
{
    const bool whole = rows == BLOCK && head->D == x->Dp; /* in place */
    if (!level->near_block)
        return false;
    if (!whole) {
        const tg_attention_rows part = {q, head->packed_stride, rows, head->D};
        tg_attention_pack_rows(&part, x->Dp, BLOCK, x->q);
    }
    if (!level->near_block(&(tg_attention_block){.rows = rows,
                                                 .T = head->T,
                                                 .Tp = x->Tp,
                                                 .D = x->Dp,
                                                 .factor = head->scale * TG_LOG2E,
                                                 .q = whole ? q : x->q,
                                                 .q_stride = whole ? head->packed_stride : x->Dp,
                                                 .k = x->k,
                                                 .s = x->s,
                                                 .p = x->p,
                                                 .ld = x->lds,
                                                 .sum = x->sum,
                                                 .ahead = head->ahead}))
        return false;
    memset(x->max, 0, BLOCK * sizeof *x->max);
    level->product(&(tg_attention_operands){.M = rows,
                                            .N = x->Dp,
                                            .K = x->Tp,
                                            .a = x->p,
                                            .lda = x->lds,
                                            .b = x->v,
                                            .c = x->o,
                                            .ldc = x->Dp});
    return true;
}

static void far_weights(const buffers *x, const tg_attention_head *head, const uint16_t *q,
                        size_t rows, const tg_attention_bf16 *level)
{
    const tg_attention_rows part = {q, head->packed_stride, rows, head->D};
    tg_attention_pack_rows(&part, x->Dp, BLOCK, x->q);
    level->product(&(tg_attention_operands){.M = rows,
                                            .N = x->Tp,
                                            .K = x->Dp,
                                            .a = x->q,
                                            .lda = x->Dp,
                                            .b = x->k,
                                            .c = x->s,
                                            .ldc = x->lds});
    softmax_and_product(x, head, rows, level);
}

static void store_o(const buffers *x, const tg_attention_head *head, size_t rows, uint16_t *out_o)
{
    for (size_t r = 0; r < rows; r++) {
        const __m512 inverse = _mm512_set1_ps(1 / x->sum[r]);
        for (size_t d = 0; d < head->D; d += 32)
            _mm512_mask_storeu_epi16(out_o + r * head->o_stride + d, tg_lanes32(head->D - d),
                                     tg_row_of_product(x->o + r * x->Dp + d, inverse));
    }
}

static void store_lse(const buffers *x, size_t rows, float *out_lse)
{
    for (size_t r = 0; r < rows; r += 16) {
        __mmask16 mask = tg_lanes(rows - r);
        __m512 sum = _mm512_mask_loadu_ps(_mm512_set1_ps(1), mask, x->sum + r);
        __m512 max = _mm512_maskz_loadu_ps(mask, x->max + r);
        __m512 lse = _mm512_fmadd_ps(max, _mm512_set1_ps(TG_LN2), tg_log_ps(sum));
        _mm512_mask_storeu_ps(out_lse + r, mask, lse);
    }
}

void tg_attention_bf16_forward(const tg_attention_head *head, const tg_attention_forward_out *out,
                               void *scratch, const tg_attention_bf16 *level)
{
    buffers x;
    layout(head->T, head->D, scratch, &x);
    const tg_attention_rows k = {head->k, head->packed_stride, head->T, head->D};
    const tg_attention_rows v = {head->v, head->packed_stride, head->T, head->D};
    tg_attention_pack_transposed(&k, x.Dp, x.Tp, x.k);
    tg_attention_pack_pairs(&v, x.Dp, x.Tp, x.v);
    for (size_t t = out->begin; t < out->end; t += BLOCK) {
        size_t rows = out->end - t < BLOCK ? out->end - t : BLOCK;
        const uint16_t *q = (const uint16_t *)head->q + t * head->packed_stride;
        if (!near_weights(&x, head, q, rows, level))
            far_weights(&x, head, q, rows, level);
        store_o(&x, head, rows, (uint16_t *)out->o + t * head->o_stride);
        if (out->lse)
            store_lse(&x, rows, out->lse + t);
    }
}
