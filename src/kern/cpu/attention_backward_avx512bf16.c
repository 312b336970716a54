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
    size_t T, D;           /* of the head */
    size_t Qp, Tp, Dp, Dn; /* T_q, T and D rounded up to 32; D rounded up to 16 */
    size_t lds, ldk;
    size_t group;         /* keys per group, a multiple of BLOCK */
    size_t panel;         /* elements of a panel of ds_p: 16 x keys of the present group */
    uint16_t *q_t, *do_t; /* paired, K = D, N = queries */
    uint16_t *q_p, *do_p; /* paired, K = queries, N = D */
    uint16_t *k_t;        /* [Dp][ldk], transposed keys */
    uint16_t *k, *v;      /* [BLOCK][Dp], the block's rows */
    float *lse, *delta;   /* [Qp]; lse in units of log 2, huge beyond T_q so that P is 0 */
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
    buffers x = {.T = T, .D = D};
    x.Qp = tg_attention_round(T_q, 32);
    x.Tp = tg_attention_round(T, 32);
    x.Dp = tg_attention_round(D, 32);
    x.Dn = tg_attention_round(D, 16);
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

static void load_statistics(const buffers *x, const tg_attention_head *head,
                            const tg_attention_backward_args *args)
{
    for (size_t t = 0; t < x->Qp; t++)
        x->lse[t] = t < head->T_q ? args->lse[t] * TG_LOG2E : 1e30f;
    memset(x->delta, 0, x->Qp * sizeof *x->delta);
    for (size_t t = 0; t < head->T_q; t++) {
        const uint16_t *o = (const uint16_t *)args->o + t * head->o_stride;
        const uint16_t *d_o = (const uint16_t *)args->d_o + t * head->o_stride;
        __m512 sum = _mm512_setzero_ps();
        for (size_t d = 0; d < head->D; d += 16) {
            __mmask16 mask = tg_lanes(head->D - d);
            sum = _mm512_fmadd_ps(tg_load_bf16(o + d, mask), tg_load_bf16(d_o + d, mask), sum);
        }
        x->delta[t] = _mm512_reduce_add_ps(sum);
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

/* P and dS = P (dP - delta) of 16 scores. */
static inline void weights(const buffers *x, size_t at, size_t t, __m512 factor, __m512 *out_p,
                           __m512 *out_ds)
{
    __m512 s = _mm512_load_ps(x->s + at), dp = _mm512_load_ps(x->dp + at);
    *out_p = tg_exp2_ps(_mm512_fmsub_ps(s, factor, _mm512_load_ps(x->lse + t)));
    *out_ds = _mm512_mul_ps(*out_p, _mm512_sub_ps(dp, _mm512_load_ps(x->delta + t)));
}

/* Rows i and i+1 of the block: fills p, ds and, at `paired`, ds_p. */
static void pair_of_rows(const buffers *x, size_t i, __m512 factor, uint16_t *paired,
                         __m512i interleave)
{
    for (size_t t = 0; t < x->Qp; t += 32, paired += 2 * x->panel) {
        size_t at = i * x->lds + t;
        __m512 p[4], ds[4];
        weights(x, at, t, factor, &p[0], &ds[0]);
        weights(x, at + 16, t + 16, factor, &p[1], &ds[1]);
        weights(x, at + x->lds, t, factor, &p[2], &ds[2]);
        weights(x, at + x->lds + 16, t + 16, factor, &p[3], &ds[3]);
        _mm512_store_si512(x->p + at, (__m512i)_mm512_cvtne2ps_pbh(p[1], p[0]));
        _mm512_store_si512(x->p + at + x->lds, (__m512i)_mm512_cvtne2ps_pbh(p[3], p[2]));
        _mm512_store_si512(x->ds + at, (__m512i)_mm512_cvtne2ps_pbh(ds[1], ds[0]));
        _mm512_store_si512(x->ds + at + x->lds, (__m512i)_mm512_cvtne2ps_pbh(ds[3], ds[2]));
        __m512i low = (__m512i)_mm512_cvtne2ps_pbh(ds[2], ds[0]);
        __m512i high = (__m512i)_mm512_cvtne2ps_pbh(ds[3], ds[1]);
        _mm512_store_si512(paired, _mm512_permutexvar_epi16(interleave, low));
        _mm512_store_si512(paired + x->panel, _mm512_permutexvar_epi16(interleave, high));
    }
}

/* Rows beyond T would have P = exp(-lse), which may overflow; with such scores P is 0. */
static void exclude_rows(const buffers *x, size_t rows)
{
    for (size_t at = rows * x->lds; at < BLOCK * x->lds; at += 16)
        _mm512_store_ps(x->s + at, _mm512_set1_ps(-1e30f));
}

static void block_weights(const buffers *x, size_t key_of_group, float scale)
{
    uint16_t order[32];
    for (uint16_t i = 0; i < 32; i++)
        order[i] = (uint16_t)(i / 2 + 16 * (i % 2));
    const __m512i interleave = _mm512_loadu_si512(order);
    const __m512 factor = _mm512_set1_ps(scale * TG_LOG2E);
    for (size_t i = 0; i < BLOCK; i += 2)
        pair_of_rows(x, i, factor, x->ds_p + (key_of_group + i) * 16, interleave);
}

static void store_rows(const float *in, size_t ld, size_t rows, size_t D, float scale,
                       uint16_t *out, size_t stride)
{
    const __m512 factor = _mm512_set1_ps(scale);
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < D; d += 16)
            tg_store_bf16(out + r * stride + d, tg_lanes(D - d),
                          _mm512_mul_ps(factor, _mm512_load_ps(in + r * ld + d)));
}

/* Keys [t, t+rows): scores, weights, dv and dk. */
static void key_block(const buffers *x, const tg_attention_head *head,
                      const tg_attention_backward_args *args, size_t t, size_t key_of_group,
                      tg_attention_product *product)
{
    size_t rows = x->T - t < BLOCK ? x->T - t : BLOCK, packed = t * head->packed_stride;
    const tg_attention_rows k = {(const uint16_t *)head->k + packed, head->packed_stride, x->T - t,
                                 x->D};
    const tg_attention_rows v = {(const uint16_t *)head->v + packed, head->packed_stride, x->T - t,
                                 x->D};
    tg_attention_pack_rows(&k, x->Dp, BLOCK, x->k);
    tg_attention_pack_rows(&v, x->Dp, BLOCK, x->v);
    tg_attention_operands by_d = {.M = BLOCK, .N = x->Qp, .K = x->Dp, .lda = x->Dp, .ldc = x->lds};
    by_d.a = x->k, by_d.b = x->q_t, by_d.c = x->s;
    product(&by_d);
    by_d.a = x->v, by_d.b = x->do_t, by_d.c = x->dp;
    product(&by_d);
    exclude_rows(x, rows);
    block_weights(x, key_of_group, head->scale);
    tg_attention_operands by_q = {
        .M = rows, .N = x->Dn, .K = x->Qp, .lda = x->lds, .ldc = x->Dp, .c = x->dkv};
    by_q.a = x->p, by_q.b = x->do_p;
    product(&by_q);
    store_rows(x->dkv, x->Dp, rows, x->D, 1, (uint16_t *)args->dv + packed, head->packed_stride);
    by_q.a = x->ds, by_q.b = x->q_p;
    product(&by_q);
    store_rows(x->dkv, x->Dp, rows, x->D, head->scale, (uint16_t *)args->dk + packed,
               head->packed_stride);
}

/* dq = scale * transposed dq_t */
static void store_dq(const buffers *x, const tg_attention_head *head, uint16_t *out_dq)
{
    float rows[16 * 16] __attribute__((aligned(64)));
    for (size_t t = 0; t < head->T_q; t += 16)
        for (size_t d = 0; d < x->D; d += 16) {
            tg_transpose_16x16(x->dq_t + d * x->lds + t, x->lds, rows);
            size_t count = head->T_q - t < 16 ? head->T_q - t : 16;
            store_rows(rows, 16, count, x->D - d < 16 ? x->D - d : 16, head->scale,
                       out_dq + t * head->packed_stride + d, head->packed_stride);
        }
}

void tg_attention_bf16_backward(const tg_attention_head *head,
                                const tg_attention_backward_args *args, void *scratch,
                                tg_attention_product *product)
{
    buffers x;
    layout(head->T, head->T_q, head->D, scratch, &x);
    load_statistics(&x, head, args);
    pack_head(&x, head, args);
    for (size_t first = 0; first < x.Tp; first += x.group) {
        size_t keys = x.Tp - first < x.group ? x.Tp - first : x.group;
        x.panel = 16 * keys;
        for (size_t t = 0; t < keys; t += BLOCK)
            key_block(&x, head, args, first + t, t, product);
        product(&(tg_attention_operands){.M = x.Dn,
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
