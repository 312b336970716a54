/* Keys are the rows here: S^T = k q^T and dP^T = v do^T come in blocks of 32 keys x all queries, so
 * that P^T and dS^T are left operands as they are computed and dv, dk of the block are final. dS^T
 * is also kept in the paired layout for a group of blocks, and dq^T gathers k^T dS^T group by
 * group. */
#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"

#include <string.h>

enum {
    BLOCK = 32,
    GROUP_BYTES = 1 << 19 /* of paired dS^T: half of a small second-level cache */
};

typedef struct buffers {
    size_t Qp, Tp, Dp; /* T_q, T and D rounded up to 32 */
    size_t lds, ldk;
    size_t group;         /* keys per group, a multiple of BLOCK */
    size_t panel;         /* elements of a panel of ds_p: 16 x keys of the present group */
    uint16_t *q_t, *do_t; /* paired, K = D, N = queries */
    uint16_t *q_p, *do_p; /* paired, K = queries, N = D */
    uint16_t *k_t;        /* [Dp][ldk], transposed keys */
    uint16_t *k, *v;      /* [BLOCK][Dp], the block's rows where they cannot be used in place */
    float *lse, *delta;   /* [Qp] */
    float *s, *dp;        /* [BLOCK][lds] */
    uint16_t *p, *ds;     /* [BLOCK][lds] */
    uint16_t *ds_p;       /* paired, K = keys of the group, N = queries */
    float *dkv;           /* [BLOCK][Dp] */
    float *dq_t;          /* [Dp][lds] */
} buffers;

static size_t group_of(size_t Tp, size_t Qp)
{
    size_t blocks = GROUP_BYTES / (2 * Qp * BLOCK);
    size_t keys = (blocks ? blocks : 1) * BLOCK;
    return keys < Tp ? keys : Tp;
}

static size_t layout(size_t T, size_t T_q, size_t D, void *base, buffers *out)
{
    size_t used = 0;
    buffers x = {.Qp = tg_attention_round(T_q, 32),
                 .Tp = tg_attention_round(T, 32),
                 .Dp = tg_attention_round(D, 32)};
    x.lds = tg_attention_ld(x.Qp);
    x.ldk = tg_attention_ld(x.Tp);
    x.group = group_of(x.Tp, x.Qp);
    x.q_t = tg_attention_take(base, &used, x.Qp * x.Dp * 2);
    x.do_t = tg_attention_take(base, &used, x.Qp * x.Dp * 2);
    x.q_p = tg_attention_take(base, &used, x.Qp * x.Dp * 2);
    x.do_p = tg_attention_take(base, &used, x.Qp * x.Dp * 2);
    x.k_t = tg_attention_take(base, &used, x.Dp * x.ldk * 2);
    x.k = tg_attention_take(base, &used, BLOCK * x.Dp * 2);
    x.v = tg_attention_take(base, &used, BLOCK * x.Dp * 2);
    x.lse = tg_attention_take(base, &used, x.Qp * 4);
    x.delta = tg_attention_take(base, &used, x.Qp * 4);
    x.s = tg_attention_take(base, &used, BLOCK * x.lds * 4);
    x.dp = tg_attention_take(base, &used, BLOCK * x.lds * 4);
    x.p = tg_attention_take(base, &used, BLOCK * x.lds * 2);
    x.ds = tg_attention_take(base, &used, BLOCK * x.lds * 2);
    x.ds_p = tg_attention_take(base, &used, x.group * x.Qp * 2);
    x.dkv = tg_attention_take(base, &used, BLOCK * x.Dp * 4);
    x.dq_t = tg_attention_take(base, &used, x.Dp * x.lds * 4);
    *out = x;
    return used;
}

size_t tg_attention_bf16_backward_bytes(size_t T, size_t T_q, size_t D)
{
    buffers unused;
    return layout(T, T_q, D, NULL, &unused);
}

/* Products of o and do lane by lane; rows ahead are asked for, nothing else follows their stride. */
static __m512 delta_lanes(const tg_attention_head *head, const tg_attention_backward_args *args,
                          size_t t)
{
    enum { AHEAD = 24 };
    const uint16_t *o = (const uint16_t *)args->o + t * head->o_stride;
    const uint16_t *d_o = (const uint16_t *)args->d_o + t * head->o_stride;
    const size_t ahead = t + AHEAD < head->T_q ? AHEAD * head->o_stride : 0;
    __m512 sum = _mm512_setzero_ps();
    for (size_t d = 0; d < head->D; d += 32) {
        const __mmask32 mask = tg_lanes32(head->D - d);
        _mm_prefetch((const char *)(o + ahead + d), _MM_HINT_T0);
        _mm_prefetch((const char *)(d_o + ahead + d), _MM_HINT_T0);
        sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_maskz_loadu_epi16(mask, o + d),
                               (__m512bh)_mm512_maskz_loadu_epi16(mask, d_o + d));
    }
    return sum;
}

static void load_statistics(const buffers *x, const tg_attention_head *head,
                            const tg_attention_backward_args *args)
{
    const __m512 none = _mm512_set1_ps(1e30f), unit = _mm512_set1_ps(TG_LOG2E);
    for (size_t t = 0; t < x->Qp; t += 16) {
        const size_t count = t < head->T_q ? head->T_q - t : 0;
        const __mmask16 mask = tg_lanes(count);
        __m512 lse = _mm512_maskz_loadu_ps(mask, args->lse + t), sum[16];
        _mm512_store_ps(x->lse + t, _mm512_mask_mul_ps(none, mask, lse, unit));
        for (size_t i = 0; i < 16; i++)
            sum[i] = i < count ? delta_lanes(head, args, t + i) : _mm512_setzero_ps();
        _mm512_store_ps(x->delta + t, tg_sum_lanes(sum));
    }
}

static void pack_head(const buffers *x, const tg_attention_head *head,
                      const tg_attention_backward_args *args)
{
    const tg_attention_rows q = {head->q, head->packed_stride, head->T_q, head->D};
    const tg_attention_rows k = {head->k, head->packed_stride, head->T, head->D};
    const tg_attention_rows d_o = {args->d_o, head->o_stride, head->T_q, head->D};
    tg_attention_pack_transposed(&q, x->Dp, x->Qp, x->q_t);
    tg_attention_pack_transposed(&d_o, x->Dp, x->Qp, x->do_t);
    tg_attention_pack_pairs(&q, x->Dp, x->Qp, x->q_p);
    tg_attention_pack_pairs(&d_o, x->Dp, x->Qp, x->do_p);
    tg_attention_pack_columns(&k, x->Dp, x->Tp, x->k_t, x->ldk);
}

/* P and dS = P (dP - delta) of 32 scores in a row, at `at` of s and dp, at query t. */
static inline void weights(const tg_attention_keys *x, size_t at, size_t t, __m512 factor,
                           __m512i *out_p, __m512i *out_ds)
{
    __m512 p[2], ds[2];
    for (size_t i = 0; i < 2; i++, at += 16, t += 16) {
        __m512 s = _mm512_load_ps(x->s + at), dp = _mm512_load_ps(x->dp + at);
        p[i] = tg_exp2_ps(_mm512_fmsub_ps(s, factor, _mm512_load_ps(x->lse + t)));
        ds[i] = _mm512_mul_ps(p[i], _mm512_sub_ps(dp, _mm512_load_ps(x->delta + t)));
    }
    *out_p = (__m512i)_mm512_cvtne2ps_pbh(p[1], p[0]);
    *out_ds = (__m512i)_mm512_cvtne2ps_pbh(ds[1], ds[0]);
}

/* Rows i and i+1 of the block. */
static void raise_pair(const tg_attention_keys *x, size_t i, __m512 factor)
{
    uint16_t *paired = x->ds_p + 16 * i;
    for (size_t t = 0; t < x->Qp; t += 32, paired += 2 * x->panel) {
        const size_t at = i * x->ld + t;
        __m512i p[2], ds[2], words[2];
        weights(x, at, t, factor, &p[0], &ds[0]);
        weights(x, at + x->ld, t, factor, &p[1], &ds[1]);
        tg_pair_rows(ds[0], ds[1], &words[0], &words[1]);
        _mm512_store_si512(x->p + at, p[0]);
        _mm512_store_si512(x->p + at + x->ld, p[1]);
        _mm512_store_si512(x->ds + at, ds[0]);
        _mm512_store_si512(x->ds + at + x->ld, ds[1]);
        _mm512_store_si512(paired, words[0]);
        _mm512_store_si512(paired + x->panel, words[1]);
    }
}

/* Rows beyond T would have P = exp(-lse), which may overflow; with such scores P is 0. */
static void exclude_rows(const tg_attention_keys *x)
{
    for (size_t at = x->rows * x->ld; at < BLOCK * x->ld; at += 16)
        _mm512_store_ps(x->s + at, _mm512_set1_ps(-1e30f));
}

static void weigh_in_steps(const tg_attention_keys *x, tg_attention_product *product)
{
    tg_attention_operands by_d = {.M = BLOCK, .N = x->Qp, .K = x->D, .lda = x->stride};
    by_d.ldc = x->ld;
    by_d.a = x->k, by_d.b = x->q_t, by_d.c = x->s;
    product(&by_d);
    by_d.a = x->v, by_d.b = x->do_t, by_d.c = x->dp;
    product(&by_d);
    exclude_rows(x);
    for (size_t i = 0; i < BLOCK; i += 2)
        raise_pair(x, i, _mm512_set1_ps(x->factor));
}

static void store_row(uint16_t *out, size_t count, bool lines, __m512i row)
{
    if (lines && count >= 32)
        _mm512_stream_si512((__m512i *)out, row);
    else
        _mm512_mask_storeu_epi16(out, tg_lanes32(count), row);
}

/* Others read these rows, later: they go past the caches where they fill lines. */
static bool fills_lines(const uint16_t *out, size_t stride)
{
    return (uintptr_t)out % 64 == 0 && stride % 32 == 0;
}

static void store_dkv(const buffers *x, const tg_attention_head *head, size_t rows, float scale,
                      uint16_t *out)
{
    const bool lines = fills_lines(out, head->packed_stride);
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < head->D; d += 32)
            store_row(out + r * head->packed_stride + d, head->D - d, lines,
                      tg_row_of_product(x->dkv + r * x->Dp + d, _mm512_set1_ps(scale)));
}

/* 32 rows of k or v from row t on: in place, or padded with zeros. */
static const uint16_t *rows_of(const tg_attention_head *head, const void *array, size_t t,
                               uint16_t *copy, size_t *out_stride)
{
    const uint16_t *at = (const uint16_t *)array + t * head->packed_stride;
    *out_stride = head->packed_stride;
    if (t + BLOCK <= head->T && head->D % 32 == 0)
        return at;
    const tg_attention_rows rows = {at, head->packed_stride, head->T - t, head->D};
    *out_stride = tg_attention_round(head->D, 32);
    tg_attention_pack_rows(&rows, *out_stride, BLOCK, copy);
    return copy;
}

static void weigh_keys(const buffers *x, const tg_attention_head *head, size_t t,
                       size_t key_of_group, const tg_attention_bf16 *level)
{
    tg_attention_keys keys = {.rows = head->T - t < BLOCK ? head->T - t : BLOCK,
                              .T_q = head->T_q,
                              .Qp = x->Qp,
                              .D = x->Dp,
                              .factor = head->scale * TG_LOG2E,
                              .q_t = x->q_t,
                              .do_t = x->do_t,
                              .lse = x->lse,
                              .delta = x->delta,
                              .s = x->s,
                              .dp = x->dp,
                              .ld = x->lds,
                              .p = x->p,
                              .ds = x->ds,
                              .ds_p = x->ds_p + 16 * key_of_group,
                              .panel = x->panel,
                              .ahead = head->ahead};
    keys.k = rows_of(head, head->k, t, x->k, &keys.stride);
    keys.v = rows_of(head, head->v, t, x->v, &keys.stride);
    if (!level->weigh_keys || !level->weigh_keys(&keys))
        weigh_in_steps(&keys, level->product);
}

/* Keys [t, t+rows): weights, dv and dk. */
static void key_block(const buffers *x, const tg_attention_head *head,
                      const tg_attention_backward_args *args, size_t t, size_t key_of_group,
                      const tg_attention_bf16 *level)
{
    size_t rows = head->T - t < BLOCK ? head->T - t : BLOCK, packed = t * head->packed_stride;
    weigh_keys(x, head, t, key_of_group, level);
    tg_attention_operands by_q = {
        .M = rows, .N = x->Dp, .K = x->Qp, .lda = x->lds, .ldc = x->Dp, .c = x->dkv};
    by_q.a = x->p, by_q.b = x->do_p;
    level->product(&by_q);
    store_dkv(x, head, rows, 1, (uint16_t *)args->dv + packed);
    by_q.a = x->ds, by_q.b = x->q_p;
    level->product(&by_q);
    store_dkv(x, head, rows, head->scale, (uint16_t *)args->dk + packed);
}

/* 32 rows of dq_t and 16 of its columns times scale as pairs of rows, turned: out[l] holds the 32
 * elements of column l. */
static void turn_dq(const float *in, size_t ld, float scale, float out[16 * 16])
{
    float words[16 * 16] __attribute__((aligned(64)));
    uint16_t order[32];
    for (uint16_t i = 0; i < 32; i++)
        order[i] = (uint16_t)(i / 2 + 16 * (i % 2));
    const __m512i interleave = _mm512_loadu_si512(order);
    const __m512 factor = _mm512_set1_ps(scale);
    for (size_t w = 0; w < 16; w++) {
        __m512 even = _mm512_mul_ps(factor, _mm512_load_ps(in + 2 * w * ld));
        __m512 odd = _mm512_mul_ps(factor, _mm512_load_ps(in + (2 * w + 1) * ld));
        __m512i rows = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
        _mm512_store_si512(words + 16 * w, _mm512_permutexvar_epi16(interleave, rows));
    }
    tg_transpose_16x16(words, 16, out);
}

/* dq = scale * transposed dq_t */
static void store_dq(const buffers *x, const tg_attention_head *head, uint16_t *out_dq)
{
    float turned[16 * 16] __attribute__((aligned(64)));
    const bool lines = fills_lines(out_dq, head->packed_stride);
    for (size_t t = 0; t < x->Qp; t += 16)
        for (size_t d = 0; d < head->D; d += 32) {
            turn_dq(x->dq_t + d * x->lds + t, x->lds, head->scale, turned);
            for (size_t i = 0; i < 16; i++) {
                size_t query = t / 32 * 32 + tg_pair_column(t / 16 % 2, i);
                if (query < head->T_q)
                    store_row(out_dq + query * head->packed_stride + d, head->D - d, lines,
                              _mm512_load_si512(turned + 16 * i));
            }
        }
}

void tg_attention_bf16_backward(const tg_attention_head *head,
                                const tg_attention_backward_args *args, void *scratch,
                                const tg_attention_bf16 *level)
{
    buffers x;
    layout(head->T, head->T_q, head->D, scratch, &x);
    load_statistics(&x, head, args);
    pack_head(&x, head, args);
    for (size_t first = 0; first < x.Tp; first += x.group) {
        size_t keys = x.Tp - first < x.group ? x.Tp - first : x.group;
        x.panel = 16 * keys;
        for (size_t t = 0; t < keys; t += BLOCK)
            key_block(&x, head, args, first + t, t, level);
        level->product(&(tg_attention_operands){.M = x.Dp,
                                                .N = x.Qp,
                                                .K = keys,
                                                .a = x.k_t + first,
                                                .lda = x.ldk,
                                                .b = x.ds_p,
                                                .c = x.dq_t,
                                                .ldc = x.lds,
                                                .add = first > 0});
    }
    store_dq(&x, head, args->dq);
}
