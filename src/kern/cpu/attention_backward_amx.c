/* Backward of a head whose width is 32 or 64, as attention_backward_avx512bf16.c does it: keys are
 * the rows. What differs is that scores and their gradients never form a matrix: a block of 32 keys x
 * 32 queries is raised to weights on the vector units while the tiles multiply the next. */
#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"
#include "kern/cpu/tiles.h"

#include <string.h>

enum {
    BLOCK = 32,
    BLOCK_FLOATS = BLOCK * BLOCK,
    GROUP_BYTES = 1 << 19 /* of paired dS^T: half of a small second-level cache */
};

typedef struct buffers {
    size_t Qp, Tp; /* T_q and T rounded up to 32 */
    size_t ldp, ldk;
    size_t group;         /* keys per group, a multiple of BLOCK */
    size_t panel;         /* elements of a panel of ds_p: 16 x keys of the present group */
    uint16_t *q_t, *do_t; /* paired, K = D, N = queries */
    uint16_t *q_p, *do_p; /* paired, K = queries, N = D */
    uint16_t *k_t;        /* [D][ldk], transposed keys */
    uint16_t *k, *v;      /* [BLOCK][D], the last block's rows */
    float *lse, *delta;   /* [Qp]; lse in units of log 2, huge beyond T_q so that P is 0 */
    float *s, *dp;        /* [2][BLOCK][BLOCK] */
    uint16_t *p, *ds;     /* [BLOCK][ldp] */
    uint16_t *ds_p;       /* paired, K = keys of the group, N = queries */
    float *dkv;           /* [BLOCK][D] */
    float *dq_t;          /* [D][ldp] */
} buffers;

bool tg_attention_fused_fits(size_t D)
{
    return D == 32 || D == 64;
}

static size_t layout(size_t T, size_t T_q, size_t D, void *base, buffers *out)
{
    size_t used = 0;
    buffers x = {.Qp = tg_attention_round(T_q, 32), .Tp = tg_attention_round(T, 32)};
    size_t blocks = GROUP_BYTES / (2 * x.Qp * BLOCK), keys = (blocks ? blocks : 1) * BLOCK;
    x.ldp = tg_attention_ld(x.Qp);
    x.ldk = tg_attention_ld(x.Tp);
    x.group = keys < x.Tp ? keys : x.Tp;
    x.q_t = tg_attention_take(base, &used, x.Qp * D * 2);
    x.do_t = tg_attention_take(base, &used, x.Qp * D * 2);
    x.q_p = tg_attention_take(base, &used, x.Qp * D * 2);
    x.do_p = tg_attention_take(base, &used, x.Qp * D * 2);
    x.k_t = tg_attention_take(base, &used, D * x.ldk * 2);
    x.k = tg_attention_take(base, &used, BLOCK * D * 2);
    x.v = tg_attention_take(base, &used, BLOCK * D * 2);
    x.lse = tg_attention_take(base, &used, x.Qp * 4);
    x.delta = tg_attention_take(base, &used, x.Qp * 4);
    x.s = tg_attention_take(base, &used, 2 * BLOCK_FLOATS * 4);
    x.dp = tg_attention_take(base, &used, 2 * BLOCK_FLOATS * 4);
    x.p = tg_attention_take(base, &used, BLOCK * x.ldp * 2);
    x.ds = tg_attention_take(base, &used, BLOCK * x.ldp * 2);
    x.ds_p = tg_attention_take(base, &used, x.group * x.Qp * 2);
    x.dkv = tg_attention_take(base, &used, BLOCK * D * 4);
    x.dq_t = tg_attention_take(base, &used, D * x.ldp * 4);
    *out = x;
    return used;
}

size_t tg_attention_fused_backward_bytes(size_t T, size_t T_q, size_t D)
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
        for (size_t d = 0; d < head->D; d += 32)
            sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512(o + d),
                                   (__m512bh)_mm512_loadu_si512(d_o + d));
        x->delta[t] = _mm512_reduce_add_ps(sum);
    }
}

static void pack_head(const buffers *x, const tg_attention_head *head,
                      const tg_attention_backward_args *args)
{
    const size_t D = head->D;
    const tg_attention_rows q = {head->q, head->packed_stride, head->T_q, D};
    const tg_attention_rows k = {head->k, head->packed_stride, head->T, D};
    const tg_attention_rows d_o = {args->d_o, head->o_stride, head->T_q, D};
    tg_attention_pack_transposed(&q, D, x->Qp, x->q_t);
    tg_attention_pack_transposed(&d_o, D, x->Qp, x->do_t);
    tg_attention_pack_pairs(&q, D, x->Qp, x->q_p);
    tg_attention_pack_pairs(&d_o, D, x->Qp, x->do_p);
    tg_attention_pack_columns(&k, D, x->Tp, x->k_t, x->ldk);
}

/* What raising one block of scores to weights needs. */
typedef struct raising {
    const float *s, *dp; /* NULL: no block waits */
    size_t t, next;      /* its first query; its next row */
    size_t key;          /* row of the group that its first key is */
    __m512 factor;
    __m512i interleave;
} raising;

/* P and dS = P (dP - delta) of 16 scores. */
static inline __m512 weights(__m512 s, __m512 dp, __m512 factor, __m512 lse, __m512 delta,
                             __m512 *out_ds)
{
    __m512 p = tg_exp2_ps(_mm512_fmsub_ps(s, factor, lse));
    *out_ds = _mm512_mul_ps(p, _mm512_sub_ps(dp, delta));
    return p;
}

/* Two rows of the waiting block: p, ds and, in pairs, ds_p. */
static inline void raise_pair(const buffers *x, const raising *w, size_t row)
{
    const float *s = w->s + BLOCK * row, *dp = w->dp + BLOCK * row;
    const float *lse = x->lse + w->t, *delta = x->delta + w->t;
    __m512 p[4], ds[4];
    for (size_t i = 0; i < 4; i++)
        p[i] =
            weights(_mm512_load_ps(s + 16 * i), _mm512_load_ps(dp + 16 * i), w->factor,
                    _mm512_load_ps(lse + i % 2 * 16), _mm512_load_ps(delta + i % 2 * 16), &ds[i]);
    size_t at = row * x->ldp + w->t;
    uint16_t *paired = x->ds_p + w->t / 16 * x->panel + (w->key + row) * 16;
    _mm512_store_si512(x->p + at, (__m512i)_mm512_cvtne2ps_pbh(p[1], p[0]));
    _mm512_store_si512(x->p + at + x->ldp, (__m512i)_mm512_cvtne2ps_pbh(p[3], p[2]));
    _mm512_store_si512(x->ds + at, (__m512i)_mm512_cvtne2ps_pbh(ds[1], ds[0]));
    _mm512_store_si512(x->ds + at + x->ldp, (__m512i)_mm512_cvtne2ps_pbh(ds[3], ds[2]));
    __m512i low = (__m512i)_mm512_cvtne2ps_pbh(ds[2], ds[0]);
    __m512i high = (__m512i)_mm512_cvtne2ps_pbh(ds[3], ds[1]);
    _mm512_store_si512(paired, _mm512_permutexvar_epi16(w->interleave, low));
    _mm512_store_si512(paired + x->panel, _mm512_permutexvar_epi16(w->interleave, high));
}

static inline void raise_rows(const buffers *x, raising *w, size_t rows)
{
    size_t end = w->next + rows < BLOCK ? w->next + rows : BLOCK;
    for (; w->s && w->next < end; w->next += 2)
        raise_pair(x, w, w->next);
}

/* out [32][32] = rows of a [32][D] times panels t of b; meanwhile a share of the waiting block's rows. */
static inline void score_block(const buffers *x, const uint16_t *a, size_t stride,
                               const uint16_t *b, size_t D, size_t t, float *out, raising *waiting)
{
    const uint16_t *panel = b + t * D;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t d = 0; d < D; d += 32) {
        _tile_loadd(4, a + d, 2 * stride);
        _tile_loadd(6, panel + 16 * d, 64);
        _tile_loadd(7, panel + 16 * (D + d), 64);
        _tile_loadd(5, a + 16 * stride + d, 2 * stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        raise_rows(x, waiting, BLOCK * 16 / D);
    }
    _tile_stored(0, out, 4 * BLOCK);
    _tile_stored(1, out + 16, 4 * BLOCK);
    _tile_stored(2, out + 16 * BLOCK, 4 * BLOCK);
    _tile_stored(3, out + 16 * BLOCK + 16, 4 * BLOCK);
    tg_tiles_fence();
}

/* Rows beyond T would have P = exp(-lse), which may overflow; with such scores P is 0. */
static void exclude_rows(float *s, size_t rows)
{
    for (size_t at = rows * BLOCK; at < BLOCK_FLOATS; at += 16)
        _mm512_store_ps(s + at, _mm512_set1_ps(-1e30f));
}

/* Whole rows of 32 elements go past the caches where they fill lines: others read them, later. */
static void store_rows(const float *in, size_t ld, size_t rows, size_t D, float scale,
                       uint16_t *out, size_t stride)
{
    const __m512 factor = _mm512_set1_ps(scale);
    const bool lines = (uintptr_t)out % 64 == 0 && stride % 32 == 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < D; d += 32) {
            const float *at = in + r * ld + d;
            __m512 low = _mm512_mul_ps(factor, _mm512_load_ps(at));
            __m512 high = _mm512_mul_ps(factor, _mm512_load_ps(at + 16));
            __m512i row = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            if (lines)
                _mm512_stream_si512((__m512i *)(out + r * stride + d), row);
            else
                _mm512_storeu_si512(out + r * stride + d, row);
        }
}

/* 32 rows of k or v from row t on: in place, or padded with zeros. */
static const uint16_t *rows_of(const tg_attention_head *head, const void *array, size_t t,
                               uint16_t *copy, size_t *out_stride)
{
    const uint16_t *at = (const uint16_t *)array + t * head->packed_stride;
    if (t + BLOCK <= head->T) {
        *out_stride = head->packed_stride;
        return at;
    }
    const tg_attention_rows rows = {at, head->packed_stride, head->T - t, head->D};
    tg_attention_pack_rows(&rows, head->D, BLOCK, copy);
    *out_stride = head->D;
    return copy;
}

/* Weights of keys [t, t+32) and all queries. */
static void key_weights(const buffers *x, const tg_attention_head *head, size_t t,
                        size_t key_of_group)
{
    uint16_t order[32];
    for (uint16_t i = 0; i < 32; i++)
        order[i] = (uint16_t)(i / 2 + 16 * (i % 2));
    raising waiting = {.key = key_of_group,
                       .factor = _mm512_set1_ps(head->scale * TG_LOG2E),
                       .interleave = _mm512_loadu_si512(order)};
    const size_t rows = head->T - t < BLOCK ? head->T - t : BLOCK;
    size_t k_stride, v_stride, slot = 0;
    const uint16_t *k = rows_of(head, head->k, t, x->k, &k_stride);
    const uint16_t *v = rows_of(head, head->v, t, x->v, &v_stride);
    tg_tiles_fence();
    for (size_t n = 0; n < x->Qp; n += BLOCK, slot ^= 1) {
        float *s = x->s + slot * BLOCK_FLOATS, *dp = x->dp + slot * BLOCK_FLOATS;
        score_block(x, k, k_stride, x->q_t, head->D, n, s, &waiting);
        score_block(x, v, v_stride, x->do_t, head->D, n, dp, &waiting);
        raise_rows(x, &waiting, BLOCK);
        exclude_rows(s, rows);
        waiting.s = s;
        waiting.dp = dp;
        waiting.t = n;
        waiting.next = 0;
    }
    raise_rows(x, &waiting, BLOCK);
    tg_tiles_fence();
}

/* Keys [t, t+rows): weights, dv and dk. */
static void key_block(const buffers *x, const tg_attention_head *head,
                      const tg_attention_backward_args *args, size_t t, size_t key_of_group,
                      tg_attention_product *product)
{
    size_t rows = head->T - t < BLOCK ? head->T - t : BLOCK, packed = t * head->packed_stride;
    key_weights(x, head, t, key_of_group);
    tg_attention_operands by_q = {
        .M = rows, .N = head->D, .K = x->Qp, .lda = x->ldp, .ldc = head->D, .c = x->dkv};
    by_q.a = x->p, by_q.b = x->do_p;
    product(&by_q);
    store_rows(x->dkv, head->D, rows, head->D, 1, (uint16_t *)args->dv + packed,
               head->packed_stride);
    by_q.a = x->ds, by_q.b = x->q_p;
    product(&by_q);
    store_rows(x->dkv, head->D, rows, head->D, head->scale, (uint16_t *)args->dk + packed,
               head->packed_stride);
}

/* dq = scale * transposed dq_t */
static void store_dq(const buffers *x, const tg_attention_head *head, uint16_t *out_dq)
{
    float part[16 * 16] __attribute__((aligned(64))), rows[16 * 32] __attribute__((aligned(64)));
    for (size_t t = 0; t < head->T_q; t += 16)
        for (size_t d = 0; d < head->D; d += 32) {
            for (size_t half = 0; half < 32; half += 16) {
                tg_transpose_16x16(x->dq_t + (d + half) * x->ldp + t, x->ldp, part);
                for (size_t i = 0; i < 16; i++)
                    _mm512_store_ps(rows + 32 * i + half, _mm512_load_ps(part + 16 * i));
            }
            size_t count = head->T_q - t < 16 ? head->T_q - t : 16;
            store_rows(rows, 32, count, 32, head->scale, out_dq + t * head->packed_stride + d,
                       head->packed_stride);
        }
}

void tg_attention_fused_backward(const tg_attention_head *head,
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
        product(&(tg_attention_operands){.M = head->D,
                                         .N = x.Qp,
                                         .K = keys,
                                         .a = x.k_t + first,
                                         .lda = x.ldk,
                                         .b = x.ds_p,
                                         .c = x.dq_t,
                                         .ldc = x.ldp,
                                         .add = first > 0});
    }
    store_dq(&x, head, args->dq);
}
