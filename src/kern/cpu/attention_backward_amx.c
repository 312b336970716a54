/* A block of keys in backward, for heads of width 32 or 64. Scores and their gradients never form a
 * matrix: a block of 32 keys x 32 queries is raised to weights on the vector units while the tiles
 * multiply the next. */
#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"
#include "kern/cpu/tiles.h"

enum { BLOCK = 32, BLOCK_FLOATS = BLOCK * BLOCK };

/* A block of scores that waits to be raised. */
typedef struct raising {
    const float *s, *dp; /* [32][32]; NULL: none waits */
    size_t t, next;      /* its first query; its next row */
    size_t rows;         /* 16 or 32: no keys in the others */
    bool narrow;         /* no queries in its upper 16 columns */
    __m512 factor;
} raising;

/* P and dS = P (dP - delta) of 16 scores. */
static inline __m512 weights(__m512 s, __m512 dp, __m512 factor, const float *lse,
                             const float *delta, __m512 *out_ds)
{
    __m512 p = tg_exp2_ps(_mm512_fmsub_ps(s, factor, _mm512_load_ps(lse)));
    *out_ds = _mm512_mul_ps(p, _mm512_sub_ps(dp, _mm512_load_ps(delta)));
    return p;
}

/* One row of the waiting block. */
static inline void raise_row(const tg_attention_keys *x, const raising *w, size_t row,
                             __m512i *out_ds)
{
    const float *s = w->s + BLOCK * row, *dp = w->dp + BLOCK * row;
    const float *lse = x->lse + w->t, *delta = x->delta + w->t;
    __m512 p1 = _mm512_setzero_ps(), ds0, ds1 = p1;
    __m512 p0 = weights(_mm512_load_ps(s), _mm512_load_ps(dp), w->factor, lse, delta, &ds0);
    if (!w->narrow)
        p1 = weights(_mm512_load_ps(s + 16), _mm512_load_ps(dp + 16), w->factor, lse + 16,
                     delta + 16, &ds1);
    *out_ds = (__m512i)_mm512_cvtne2ps_pbh(ds1, ds0);
    _mm512_store_si512(x->p + row * x->ld + w->t, (__m512i)_mm512_cvtne2ps_pbh(p1, p0));
    _mm512_store_si512(x->ds + row * x->ld + w->t, *out_ds);
}

static inline void raise_rows(const tg_attention_keys *x, raising *w, size_t rows)
{
    size_t end = w->next + rows < w->rows ? w->next + rows : w->rows;
    for (; w->s && w->next < end; w->next += 2) {
        uint16_t *paired = x->ds_p + w->t / 16 * x->panel + 16 * w->next;
        __m512i even, odd, words[2];
        tg_attention_fetch(x->ahead);
        raise_row(x, w, w->next, &even);
        raise_row(x, w, w->next + 1, &odd);
        tg_pair_rows(even, odd, &words[0], &words[1]);
        _mm512_store_si512(paired, words[0]);
        _mm512_store_si512(paired + x->panel, words[1]);
    }
}

/* out [rows][32] = rows of a [32][D] times 32 columns of b from t on; meanwhile a share of the waiting
 * block's rows. */
static inline void score_block(const tg_attention_keys *x, const uint16_t *a, const uint16_t *b,
                               size_t t, float *out, raising *waiting)
{
    const size_t D = x->D, stride = 2 * x->stride;
    const uint16_t *panel = b + t * D;
    const bool tall = x->rows > 16, wide = x->T_q - t > 16;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t d = 0; d < D; d += 32) {
        _tile_loadd(4, a + d, stride);
        _tile_loadd(6, panel + 16 * d, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (wide) {
            _tile_loadd(7, panel + 16 * (D + d), 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (tall) {
            _tile_loadd(5, a + 16 * x->stride + d, stride);
            _tile_dpbf16ps(2, 5, 6);
            if (wide)
                _tile_dpbf16ps(3, 5, 7);
        }
        raise_rows(x, waiting, BLOCK * 16 / D);
    }
    _tile_stored(0, out, 4 * BLOCK);
    _tile_stored(1, out + 16, 4 * BLOCK);
    if (tall) {
        _tile_stored(2, out + 16 * BLOCK, 4 * BLOCK);
        _tile_stored(3, out + 16 * BLOCK + 16, 4 * BLOCK);
    }
    tg_tiles_fence();
}

/* Rows beyond T would have P = exp(-lse), which may overflow; with such scores P is 0. */
static void exclude_rows(float *s, size_t rows)
{
    for (size_t at = rows * BLOCK; at < BLOCK_FLOATS; at += 16)
        _mm512_store_ps(s + at, _mm512_set1_ps(-1e30f));
}

/* Half a block of keys: the other half of their pairs. */
static void clear_upper_pairs(const tg_attention_keys *x)
{
    for (size_t t = 0; t < x->Qp; t += 16)
        for (size_t row = 16; row < BLOCK; row += 2)
            _mm512_store_si512(x->ds_p + t / 16 * x->panel + 16 * row, _mm512_setzero_si512());
}

bool tg_attention_amx_weigh_keys(const tg_attention_keys *x)
{
    if (x->D != 32 && x->D != 64)
        return false;
    raising waiting = {.rows = x->rows > 16 ? 32 : 16, .factor = _mm512_set1_ps(x->factor)};
    size_t slot = 0;
    tg_tiles_fence();
    for (size_t t = 0; t < x->Qp; t += BLOCK, slot ^= 1) {
        float *s = x->s + slot * BLOCK_FLOATS, *dp = x->dp + slot * BLOCK_FLOATS;
        score_block(x, x->k, x->q_t, t, s, &waiting);
        score_block(x, x->v, x->do_t, t, dp, &waiting);
        raise_rows(x, &waiting, BLOCK);
        exclude_rows(s, x->rows);
        waiting.s = s;
        waiting.dp = dp;
        waiting.t = t;
        waiting.next = 0;
        waiting.narrow = x->T_q - t <= 16;
    }
    raise_rows(x, &waiting, BLOCK);
    if (x->rows <= 16)
        clear_upper_pairs(x);
    tg_tiles_fence();
    return true;
}
