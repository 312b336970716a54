/* Forward of a block of query rows whose scores are near 0: exp2 of them needs no maximum subtracted, so
 * a score becomes a weight as soon as it is there. Blocks of 32 rows x 32 keys are raised to weights on
 * the vector units while the tiles multiply the next. */
#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/attention_bf16.h"
#include "kern/cpu/tiles.h"

#include <math.h>

enum { BLOCK = 32, BLOCK_FLOATS = BLOCK * BLOCK };

/* Scores up to here, in units of log 2: sums of 2^64 and weights of 2^-64 leave room on both sides. */
static const float NEAR = 64;

typedef struct raising {
    const float *s; /* [32][32]; NULL: no block waits */
    size_t t, next; /* its first key; its next row */
    size_t rows;    /* even */
    __m512 factor;
    tg_exp2_table table;
    __m512 *sum;     /* [32] of the rows, lane by lane */
    __m512 farthest; /* score, absolute */
} raising;

/* 32 scores become weights; their sums are added to `sum`. */
static inline __m512i weights(raising *w, const float *s, __mmask16 low, __mmask16 high,
                              __m512 *sum)
{
    __m512 s0 = _mm512_load_ps(s), s1 = _mm512_load_ps(s + 16);
    w->farthest = tg_max_abs_ps(tg_max_abs_ps(w->farthest, s0), s1);
    __m512 e0 = _mm512_maskz_mov_ps(low, tg_exp2_near_ps(s0, w->factor, &w->table));
    __m512 e1 = _mm512_maskz_mov_ps(high, tg_exp2_near_ps(s1, w->factor, &w->table));
    *sum = _mm512_add_ps(*sum, _mm512_add_ps(e0, e1));
    return (__m512i)_mm512_cvtne2ps_pbh(e1, e0);
}

/* The next `rows` rows of the waiting block, two at a time. */
static inline void raise_rows(const tg_attention_block *x, raising *w, size_t rows)
{
    if (!w->s)
        return;
    const size_t keys = x->T - w->t, end = w->next + rows < w->rows ? w->next + rows : w->rows;
    const __mmask16 low = tg_lanes(keys), high = tg_lanes(keys > 16 ? keys - 16 : 0);
    for (; w->next < end; w->next += 2) {
        const float *s = w->s + BLOCK * w->next;
        uint16_t *p = x->p + w->next * x->ld + w->t;
        tg_attention_fetch(x->ahead);
        _mm512_store_si512(p, weights(w, s, low, high, w->sum + w->next));
        _mm512_store_si512(p + x->ld, weights(w, s + BLOCK, low, high, w->sum + w->next + 1));
    }
}

/* out [rows][32] = q times the keys from t on; meanwhile the waiting block is raised. */
static inline void score_block(const tg_attention_block *x, size_t t, float *out, raising *waiting)
{
    const size_t D = x->D, stride = 2 * x->q_stride;
    const uint16_t *k = x->k + t * D;
    const bool tall = x->rows > 16;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t d = 0; d < D; d += 32) {
        _tile_loadd(4, x->q + d, stride);
        _tile_loadd(6, k + 16 * d, 64);
        _tile_loadd(7, k + 16 * (D + d), 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (tall) {
            _tile_loadd(5, x->q + 16 * x->q_stride + d, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        raise_rows(x, waiting, BLOCK * 32 / D);
    }
    _tile_stored(0, out, 4 * BLOCK);
    _tile_stored(1, out + 16, 4 * BLOCK);
    if (tall) {
        _tile_stored(2, out + 16 * BLOCK, 4 * BLOCK);
        _tile_stored(3, out + 16 * BLOCK + 16, 4 * BLOCK);
    }
    tg_tiles_fence();
}

bool tg_attention_amx_near_block(const tg_attention_block *x)
{
    if (x->D != 32 && x->D != 64)
        return false;
    __m512 sum[BLOCK];
    for (size_t r = 0; r < BLOCK; r++)
        sum[r] = _mm512_setzero_ps();
    raising waiting = {.sum = sum,
                       .rows = (x->rows + 1) & ~(size_t)1,
                       .factor = _mm512_set1_ps(x->factor),
                       .table = tg_exp2_table_load(),
                       .farthest = _mm512_setzero_ps()};
    size_t slot = 0;
    tg_tiles_fence();
    for (size_t t = 0; t < x->Tp; t += BLOCK, slot ^= 1) {
        float *s = x->s + slot * BLOCK_FLOATS;
        score_block(x, t, s, &waiting);
        raise_rows(x, &waiting, BLOCK);
        waiting.s = s;
        waiting.t = t;
        waiting.next = 0;
    }
    raise_rows(x, &waiting, BLOCK);
    tg_tiles_fence();
    if (!(_mm512_reduce_max_ps(waiting.farthest) * fabsf(x->factor) <= NEAR))
        return false;
    _mm512_store_ps(x->sum, tg_sum_lanes(sum));
    _mm512_store_ps(x->sum + 16, tg_sum_lanes(sum + 16));
    return true;
}
