#include "kern/cpu/product_amx.h"

#include "kern/cpu/gelu_rows.h"
#include "kern/cpu/panels.h"
#include "kern/cpu/tiles.h"

#include <string.h>

/* GROUP: columns done for one block of rows before the next, 256 bytes of a row of bf16. */
enum { BLOCK = TG_PANEL, GROUP = 4 * BLOCK };

void tg_amx_enter(void)
{
    tg_tiles_enter();
}

void tg_amx_leave(void)
{
    tg_tiles_leave();
    _mm_sfence(); /* streamed stores are seen by whoever synchronises with this thread */
}

/* What finishing needs, in registers where it fits. */
typedef struct finisher {
    const tg_amx_product *p;
    gelu_registers value, slope;
} finisher;

/* A block of sums that waits to be finished. */
typedef struct pending {
    const float *sums; /* [32][32] */
    size_t m, n, rows; /* its place; rows to write */
    size_t next;       /* first row not finished, even */
} pending;

VF_INLINE __m512i to_bf16(vf x0, vf x1)
{
    return (__m512i)_mm512_cvtne2ps_pbh(x1, x0);
}

/* For what nobody reads soon: whole lines go to memory without being read first. */
VF_INLINE void stream(uint16_t *out, __m512i x)
{
    _mm512_stream_si512((__m512i *)out, x);
}

/* h Phi(h) = h/2 + |h| f(|h|), where the table has f: no sign to carry over. */
VF_INLINE vf gelu_at(const gelu_registers *value, vf h, vf t, __m512i piece)
{
    return vf_fma(vf_abs(h), gelu_offset(value, t, piece), vf_set(0.5f) * h);
}

VF_INLINE vf gelu_of(const gelu_registers *value, vf h)
{
    __m512i piece;
    vf t = gelu_place(h, &piece);
    return gelu_at(value, h, t, piece);
}

VF_INLINE void finish_gelu(const finisher *f, const pending *block, size_t row, vf y0, vf y1)
{
    const tg_amx_product *p = f->p;
    if (p->kept)
        stream(p->kept + tg_block_offset(p->m0 + block->m, block->n, p->N) + BLOCK * row,
               to_bf16(y0, y1));
    uint16_t *out = (uint16_t *)p->out + (block->m + row) * p->ldo + block->n;
    _mm512_storeu_si512(out, to_bf16(gelu_of(&f->value, y0), gelu_of(&f->value, y1)));
}

/* out_g = GELU(h), returns y GELU'(h), of one row */
VF_INLINE __m512i slope_row(const finisher *f, const uint16_t *h, vf y0, vf y1, __m512i *out_g)
{
    vf h0 = vf_load_bf16(h, VF_LANES), h1 = vf_load_bf16(h + VF_LANES, VF_LANES);
    __m512i piece0, piece1;
    vf t0 = gelu_place(h0, &piece0), t1 = gelu_place(h1, &piece1);
    *out_g = to_bf16(gelu_at(&f->value, h0, t0, piece0), gelu_at(&f->value, h1, t1, piece1));
    return to_bf16(y0 * gelu_lookup(&f->slope, h0, t0, piece0),
                   y1 * gelu_lookup(&f->slope, h1, t1, piece1));
}

VF_INLINE void store_pairs(uint16_t *out, __m512i even, __m512i odd)
{
    __m512i first, second;
    tg_pair_rows(even, odd, &first, &second);
    _mm512_store_si512(out, first);
    _mm512_store_si512(out + TG_TILE_ELEMENTS, second);
}

VF_INLINE void finish_slopes(const finisher *f, const pending *block, size_t row, const vf y[4])
{
    const tg_amx_product *p = f->p;
    const uint16_t *h = p->h + tg_block_offset(p->m0 + block->m, block->n, p->N) + BLOCK * row;
    size_t pairs = tg_pairs_offset(p->m0 + block->m, block->n, p->N) + BLOCK * row / 2;
    uint16_t *out = (uint16_t *)p->out + (block->m + row) * p->ldo + block->n;
    __m512i g0, g1;
    __m512i d0 = slope_row(f, h, y[0], y[1], &g0), d1 = slope_row(f, h + BLOCK, y[2], y[3], &g1);
    _mm512_storeu_si512(out, d0);
    _mm512_storeu_si512(out + p->ldo, d1);
    store_pairs(p->pairs_out + pairs, d0, d1);
    store_pairs(p->pairs_g + pairs, g0, g1);
}

VF_INLINE void finish_plain(const finisher *f, const pending *block, size_t row, vf y0, vf y1,
                            tg_amx_finish finish)
{
    size_t at = (block->m + row) * f->p->ldo + block->n;
    if (finish == TG_AMX_BF16) {
        uint16_t *out = (uint16_t *)f->p->out + at;
        if (f->p->past_caches)
            stream(out, to_bf16(y0, y1));
        else
            _mm512_storeu_si512(out, to_bf16(y0, y1));
    } else {
        vf_store((float *)f->p->out + at, VF_LANES, y0);
        vf_store((float *)f->p->out + at + VF_LANES, VF_LANES, y1);
    }
}

VF_INLINE void finish_pair(const finisher *f, const pending *block, size_t row,
                           tg_amx_finish finish)
{
    vf y[4];
    for (size_t i = 0; i < 4; i++)
        y[i] = vf_load(block->sums + BLOCK * row + VF_LANES * i, VF_LANES);
    if (f->p->bias) {
        vf b0 = vf_load(f->p->bias + block->n, VF_LANES);
        vf b1 = vf_load(f->p->bias + block->n + VF_LANES, VF_LANES);
        y[0] += b0;
        y[1] += b1;
        y[2] += b0;
        y[3] += b1;
    }
    if (finish == TG_AMX_GELU_SLOPE) {
        finish_slopes(f, block, row, y);
    } else if (finish == TG_AMX_GELU) {
        finish_gelu(f, block, row, y[0], y[1]);
        finish_gelu(f, block, row + 1, y[2], y[3]);
    } else {
        finish_plain(f, block, row, y[0], y[1], finish);
        if (row + 1 < block->rows)
            finish_plain(f, block, row + 1, y[2], y[3], finish);
    }
}

VF_INLINE void finish_pairs(const finisher *f, pending *block, size_t pairs, tg_amx_finish finish)
{
    for (; pairs > 0 && block->next < block->rows; pairs--, block->next += 2)
        finish_pair(f, block, block->next, finish);
}

/* Memory that the next row of blocks reads first, fetched while this one is multiplied: tiles and blocks
 * are read in an order that the hardware does not foresee. */
typedef struct ahead {
    const char *a, *h;       /* next lines */
    size_t a_lines, h_lines; /* for each step; 0: nothing (more) to fetch */
} ahead;

VF_INLINE void fetch_lines(const char **at, size_t lines)
{
    for (size_t i = 0; i < lines; i++, *at += 64)
        __builtin_prefetch(*at, 0, 2);
}

static ahead ahead_of(const tg_amx_product *p, size_t m, size_t first, size_t end, bool slope)
{
    const size_t steps = (end - first) / BLOCK * (p->K / 32);
    ahead next = {0};
    if (m + 2 * BLOCK > p->M)
        return next;
    if (first == 0) {
        next.a = (const char *)(p->a + (m + BLOCK) * p->K);
        next.a_lines = (2 * BLOCK * p->K / 64 + steps - 1) / steps;
    }
    if (slope) {
        next.h = (const char *)(p->h + tg_block_offset(p->m0 + m + BLOCK, first, p->N));
        next.h_lines = (2 * BLOCK * (end - first) / 64 + steps - 1) / steps;
    }
    return next;
}

/* Sums of one block over K; after every step `share` pairs of rows of the block before are finished. */
VF_INLINE void multiply(const tg_amx_product *p, size_t m, const uint16_t *b, bool tall,
                        const finisher *f, pending *before, size_t share, ahead *next,
                        tg_amx_finish finish)
{
    const uint16_t *a0 = p->a + m * p->K, *a1 = a0 + 16 * p->K;
    size_t stride = 2 * p->K;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t k = 0; k < p->K; k += 32, b += 2 * TG_TILE_ELEMENTS) {
        _tile_loadd(4, a0 + k, stride);
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + TG_TILE_ELEMENTS, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (tall) {
            _tile_loadd(5, a1 + k, stride);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        finish_pairs(f, before, share, finish);
        fetch_lines(&next->a, next->a_lines);
        if (finish == TG_AMX_GELU_SLOPE)
            fetch_lines(&next->h, next->h_lines);
    }
}

VF_INLINE void store_block(float *sums, bool tall)
{
    _tile_stored(0, sums, 4 * BLOCK);
    _tile_stored(1, sums + 16, 4 * BLOCK);
    if (tall) {
        _tile_stored(2, sums + 16 * BLOCK, 4 * BLOCK);
        _tile_stored(3, sums + 16 * BLOCK + 16, 4 * BLOCK);
    }
    tg_tiles_fence();
}

/* Columns [first, end) of the whole blocks of rows. */
VF_INLINE void run_group(const finisher *f, size_t first, size_t end, tg_amx_finish finish)
{
    _Alignas(64) float sums[2][BLOCK * BLOCK];
    const tg_amx_product *p = f->p;
    const size_t steps = p->K / 32, share = (BLOCK / 2 + steps - 1) / steps;
    size_t slot = 0;
    pending block = {0};
    for (size_t m = 0; m + BLOCK <= p->M; m += BLOCK) {
        ahead next = ahead_of(p, m, first, end, finish == TG_AMX_GELU_SLOPE);
        for (size_t n = first; n < end; n += BLOCK) {
            multiply(p, m, p->b + n * p->K, true, f, &block, share, &next, finish);
            store_block(sums[slot], true);
            block = (pending){.sums = sums[slot], .m = m, .n = n, .rows = BLOCK};
            slot ^= 1;
        }
    }
    finish_pairs(f, &block, BLOCK, finish);
}

/* The last rows, fewer than a block. */
VF_INLINE void run_rest(const finisher *f, tg_amx_finish finish)
{
    _Alignas(64) float sums[BLOCK * BLOCK] = {0};
    const tg_amx_product *p = f->p;
    const size_t m = p->M / BLOCK * BLOCK, rows = p->M - m;
    const bool tall = rows > 16, padded = finish == TG_AMX_GELU || finish == TG_AMX_GELU_SLOPE;
    if (rows == 0)
        return;
    tg_tiles_shape(tall ? 16 : rows, tall ? rows - 16 : 16);
    for (size_t n = 0; n < p->N; n += BLOCK) {
        pending block = {0};
        ahead next = {0};
        if (tall)
            multiply(p, m, p->b + n * p->K, true, f, &block, 0, &next, finish);
        else
            multiply(p, m, p->b + n * p->K, false, f, &block, 0, &next, finish);
        store_block(sums, tall);
        block = (pending){.sums = sums, .m = m, .n = n, .rows = padded ? BLOCK : rows};
        finish_pairs(f, &block, BLOCK, finish);
    }
    tg_tiles_enter();
}

VF_INLINE void run(const tg_amx_product *p, tg_amx_finish finish)
{
    const bool exact = p->gelu == TG_GELU_EXACT;
    finisher f = {.p = p};
    if (finish == TG_AMX_GELU || finish == TG_AMX_GELU_SLOPE)
        f.value = gelu_registers_load(exact ? &gelu_exact_value : &gelu_tanh_value);
    if (finish == TG_AMX_GELU_SLOPE)
        f.slope = gelu_registers_load(exact ? &gelu_exact_slope : &gelu_tanh_slope);
    for (size_t n = 0; n < p->N; n += GROUP)
        run_group(&f, n, n + GROUP < p->N ? n + GROUP : p->N, finish);
    run_rest(&f, finish);
}

void tg_amx_product_run(const tg_amx_product *p)
{
    switch (p->finish) {
    case TG_AMX_BF16:
        run(p, TG_AMX_BF16);
        break;
    case TG_AMX_F32:
        run(p, TG_AMX_F32);
        break;
    case TG_AMX_GELU:
        run(p, TG_AMX_GELU);
        break;
    case TG_AMX_GELU_SLOPE:
        run(p, TG_AMX_GELU_SLOPE);
        break;
    }
}
