#include "kern/cpu/gradient_amx.h"

#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/panels.h"
#include "kern/cpu/tiles.h"

#include <string.h>

enum { BLOCK = TG_PANEL, STEP = 32, CHUNK = TG_PANEL_CHUNK };
enum { LARGEST_M = 384, LARGEST_SUMS = 225 << 10 };
enum { TILE_FLOATS = 256, BLOCK_FLOATS = 4 * TILE_FLOATS, PAIR = 2 * TG_TILE_ELEMENTS };

static size_t divided(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Time of the busiest thread in eighths of a block's: its blocks, and the packing for each unit. */
static size_t cost(size_t blocks_m, size_t blocks_n, size_t m_units, size_t n_units, size_t threads)
{
    size_t m = divided(blocks_m, m_units), n = divided(blocks_n, n_units);
    return divided(m_units * n_units, threads) * (8 * m * n + 8 * m + 4 * n);
}

void tg_amx_gradient_divide(tg_amx_gradient *g, size_t threads)
{
    size_t blocks_m = divided(g->M, BLOCK), blocks_n = divided(g->N, BLOCK);
    size_t best = (size_t)-1;
    for (size_t m_units = divided(g->M, LARGEST_M); m_units <= blocks_m; m_units++)
        for (size_t n_units = 1; n_units <= blocks_n; n_units++) {
            size_t m = divided(blocks_m, m_units), n = divided(blocks_n, n_units);
            size_t time = cost(blocks_m, blocks_n, m_units, n_units, threads);
            if (m * n * BLOCK * BLOCK > LARGEST_SUMS || time >= best)
                continue;
            best = time;
            g->M_unit = m * BLOCK;
            g->N_unit = n * BLOCK;
        }
    g->m_units = divided(g->M, g->M_unit);
    g->n_units = divided(g->N, g->N_unit);
}

typedef struct unit {
    const tg_amx_gradient *g;
    size_t m0, n0, M, N; /* place and size in c */
    float *a_sums;       /* [M][16], parts of each sum; NULL: not this unit's task */
    float *b_sums;       /* [N/32][2][16] in the order of pairs; the same */
    uint16_t *a_tiles;   /* [M/32][CHUNK/32][2 tiles] */
    uint16_t *b_tiles;   /* [N/32][CHUNK/32][2 tiles] */
    uint16_t *copy;      /* [32][32] */
    float *c;            /* [N/32][M/32][4 tiles] */
} unit;

size_t tg_amx_gradient_scratch(const tg_amx_gradient *g)
{
    return 2 * CHUNK * (g->M_unit + (g->b_pairs ? 0 : g->N_unit)) + 2 * PAIR +
           4 * g->M_unit * g->N_unit + 4 * (16 * g->M_unit + g->N_unit);
}

static unit unit_at(const tg_amx_gradient *g, size_t index, void *scratch)
{
    size_t m_unit = index % g->m_units, n_unit = index / g->m_units;
    char *at = scratch;
    unit u = {.g = g, .m0 = m_unit * g->M_unit, .n0 = n_unit * g->N_unit};
    u.M = smaller(g->M - u.m0, g->M_unit);
    u.N = smaller(g->N - u.n0, g->N_unit);
    u.c = (float *)at;
    at += 4 * g->M_unit * g->N_unit;
    u.a_tiles = (uint16_t *)at;
    at += 2 * CHUNK * g->M_unit;
    u.b_tiles = (uint16_t *)at;
    at += g->b_pairs ? 0 : 2 * CHUNK * g->N_unit;
    u.copy = (uint16_t *)at;
    float *sums = (float *)(at + 2 * PAIR);
    memset(sums, 0, 4 * (16 * g->M_unit + g->N_unit));
    u.a_sums = g->a_sums && n_unit == 0 ? sums : NULL;
    u.b_sums = g->b_sums && m_unit == 0 ? sums + 16 * g->M_unit : NULL;
    return u;
}

/* 32 rows x 32 columns as pairs of rows; what lies outside is zero. */
static inline void pack_pairs(const uint16_t *at, size_t ld, size_t rows, size_t columns,
                              uint16_t *out)
{
    const __mmask32 mask = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
    for (size_t w = 0; w < STEP / 2; w++) {
        const uint16_t *row = at + 2 * w * ld;
        __m512i even = _mm512_setzero_si512(), odd = even, first, second;
        if (2 * w < rows)
            even = _mm512_maskz_loadu_epi16(mask, row);
        if (2 * w + 1 < rows)
            odd = _mm512_maskz_loadu_epi16(mask, row + ld);
        tg_pair_rows(even, odd, &first, &second);
        _mm512_store_si512(out + 32 * w, first);
        _mm512_store_si512(out + TG_TILE_ELEMENTS + 32 * w, second);
    }
}

/* sums [2][16] += the columns of one step */
static inline void add_columns(const uint16_t *pairs, float *sums)
{
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3F80);
    for (size_t tile = 0; tile < 2; tile++) {
        __m512 s[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        for (size_t w = 0; w < STEP / 2; w++) {
            __m512i words = _mm512_load_si512(pairs + TG_TILE_ELEMENTS * tile + 32 * w);
            s[w % 2] = _mm512_dpbf16_ps(s[w % 2], (__m512bh)words, ones);
        }
        float *at = sums + 16 * tile;
        _mm512_store_ps(at, _mm512_add_ps(_mm512_load_ps(at), _mm512_add_ps(s[0], s[1])));
    }
}

/* Rows 8 apart, 8 elements of each. */
static inline __m512i eights(const uint16_t *at, size_t ld)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_loadu_si128((const __m128i *)(at + 8 * ld)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_loadu_si128((const __m128i *)(at + 16 * ld)));
    return _mm512_mask_broadcast_i32x4(v, 0xF000, _mm_loadu_si128((const __m128i *)(at + 24 * ld)));
}

/* out[8][32] = 32 rows x 8 columns transposed: 8 x 8 within each quarter. */
static inline void turn_columns(const uint16_t *at, size_t ld, uint16_t *out)
{
    __m512i v[8], w[8];
    for (size_t i = 0; i < 8; i++)
        v[i] = eights(at + i * ld, ld);
    for (size_t i = 0; i < 8; i += 2) {
        w[i] = _mm512_unpacklo_epi16(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi16(v[i], v[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4)
        for (size_t high = 0; high < 2; high++) {
            v[i + 2 * high] = _mm512_unpacklo_epi32(w[i + high], w[i + 2 + high]);
            v[i + 2 * high + 1] = _mm512_unpackhi_epi32(w[i + high], w[i + 2 + high]);
        }
    for (size_t i = 0; i < 4; i++) {
        _mm512_store_si512(out + 64 * i, _mm512_unpacklo_epi64(v[i], v[i + 4]));
        _mm512_store_si512(out + 64 * i + 32, _mm512_unpackhi_epi64(v[i], v[i + 4]));
    }
}

/* copy[32][32] = what there is of a block, zero elsewhere */
static void copy_block(const uint16_t *at, size_t ld, size_t rows, size_t columns, uint16_t *copy)
{
    const __mmask32 mask = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
    for (size_t r = 0; r < STEP; r++) {
        __m512i row = _mm512_setzero_si512();
        if (r < rows)
            row = _mm512_maskz_loadu_epi16(mask, at + r * ld);
        _mm512_store_si512(copy + 32 * r, row);
    }
}

/* sums [32][16] += two by two the rows of a turned block */
static inline void add_rows(const uint16_t *turned, float *sums)
{
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3F80);
    for (size_t i = 0; i < BLOCK; i++, turned += 32, sums += 16) {
        __m512bh row = (__m512bh)_mm512_load_si512(turned);
        _mm512_store_ps(sums, _mm512_dpbf16_ps(_mm512_load_ps(sums), row, ones));
    }
}

/* Both packings go along the rows, as memory likes it. */
static void pack_a(const unit *u, size_t r, size_t rows)
{
    const size_t ld = u->g->M;
    for (size_t k = 0; k < rows; k += STEP)
        for (size_t m = 0; m < u->M; m += BLOCK) {
            uint16_t *out = u->a_tiles + m * CHUNK + k * BLOCK;
            const uint16_t *at = u->g->a + (r + k) * ld + u->m0 + m;
            size_t stride = ld;
            if (rows - k < STEP || u->M - m < BLOCK) {
                copy_block(at, ld, rows - k, u->M - m, u->copy);
                at = u->copy;
                stride = BLOCK;
            }
            for (size_t i = 0; i < BLOCK; i += 8)
                turn_columns(at + i, stride, out + BLOCK * i);
            if (u->a_sums)
                add_rows(out, u->a_sums + 16 * m);
        }
}

static void pack_b(const unit *u, size_t r, size_t rows)
{
    const size_t ld = u->g->N;
    for (size_t k = 0; k < rows; k += STEP)
        for (size_t n = 0; n < u->N; n += BLOCK)
            pack_pairs(u->g->b + (r + k) * ld + u->n0 + n, ld, rows - k, u->N - n,
                       u->b_tiles + n * CHUNK + k * BLOCK);
}

/* What is read after this chunk's products, fetched into the second cache step by step meanwhile: the
 * panel of pairs after this one, or the rows of the next chunk. */
typedef struct ahead {
    const char *panel, *a, *b;     /* next line, next rows */
    size_t panel_lines;            /* for each step */
    size_t a_lines, b_lines, rows; /* lines of a row; rows left */
    size_t a_bytes, b_bytes;       /* between rows */
} ahead;

static inline void fetch(ahead *x)
{
    for (size_t i = 0; i < x->panel_lines; i++, x->panel += 64)
        _mm_prefetch(x->panel, _MM_HINT_T1);
    if (x->rows == 0)
        return;
    for (size_t i = 0; i < x->a_lines; i++)
        _mm_prefetch(x->a + 64 * i, _MM_HINT_T1);
    for (size_t i = 0; i < x->b_lines; i++)
        _mm_prefetch(x->b + 64 * i, _MM_HINT_T1);
    x->a += x->a_bytes;
    x->b += x->b_bytes;
    x->rows--;
}

static inline void multiply(const uint16_t *a, const uint16_t *b, size_t steps, bool first,
                            float *c, ahead *next)
{
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    } else {
        _tile_loadd(0, c, 64);
        _tile_loadd(1, c + TILE_FLOATS, 64);
        _tile_loadd(2, c + 2 * TILE_FLOATS, 64);
        _tile_loadd(3, c + 3 * TILE_FLOATS, 64);
    }
    for (size_t k = 0; k < steps; k++, a += PAIR, b += PAIR) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_loadd(7, b + TG_TILE_ELEMENTS, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + TG_TILE_ELEMENTS, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        fetch(next);
    }
    _tile_stored(0, c, 64);
    _tile_stored(1, c + TILE_FLOATS, 64);
    _tile_stored(2, c + 2 * TILE_FLOATS, 64);
    _tile_stored(3, c + 3 * TILE_FLOATS, 64);
}

static ahead ahead_of(const unit *u, size_t r)
{
    const tg_amx_gradient *g = u->g;
    ahead next = {.rows = smaller(g->R - r, CHUNK),
                  .a = (const char *)(g->a + r * g->M + u->m0),
                  .a_lines = divided(2 * u->M, 64),
                  .a_bytes = 2 * g->M};
    if (!g->b_pairs) {
        next.b = (const char *)(g->b + r * g->N + u->n0);
        next.b_lines = divided(2 * u->N, 64);
        next.b_bytes = 2 * g->N;
    }
    return next;
}

static void do_chunk(const unit *u, size_t r)
{
    const tg_amx_gradient *g = u->g;
    size_t rows = smaller(g->R - r, CHUNK), steps = divided(rows, STEP);
    size_t blocks_m = divided(u->M, BLOCK);
    const uint16_t *b = u->b_tiles;
    pack_a(u, r, rows);
    if (g->b_pairs)
        b = g->b + tg_pairs_offset(r, u->n0, g->N);
    else
        pack_b(u, r, rows);
    tg_tiles_fence();
    ahead next = ahead_of(u, r + rows);
    if (g->b_pairs)
        next.panel_lines = divided(2 * BLOCK * CHUNK / 64, blocks_m * steps);
    for (size_t n = 0; n < u->N; n += BLOCK, b += BLOCK * CHUNK) {
        for (size_t k = 0; u->b_sums && k < steps; k++)
            add_columns(b + k * PAIR, u->b_sums + n);
        float *c = u->c + n / BLOCK * blocks_m * BLOCK_FLOATS;
        next.panel = (const char *)(b + BLOCK * CHUNK);
        for (size_t m = 0; m < blocks_m; m++)
            multiply(u->a_tiles + m * BLOCK * CHUNK, b, steps, r == 0, c + m * BLOCK_FLOATS, &next);
    }
    tg_tiles_fence();
}

static inline void put(float *out, __mmask16 mask, __m512 x, bool accumulate)
{
    if (accumulate)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, out));
    _mm512_mask_storeu_ps(out, mask, x);
}

/* The rows of a block with its columns back in order: out [32][32]. */
static void order_block(const float *c, float *out)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    for (size_t row = 0; row < BLOCK; row++) {
        const float *at = c + row / 16 * 2 * TILE_FLOATS + row % 16 * 16;
        __m512d t0 = _mm512_load_pd(at), t1 = _mm512_load_pd(at + TILE_FLOATS);
        _mm512_store_pd(out + BLOCK * row, _mm512_permutex2var_pd(t0, first, t1));
        _mm512_store_pd(out + BLOCK * row + 16, _mm512_permutex2var_pd(t0, second, t1));
    }
}

static void turn_block(const float *in, float *out)
{
    _Alignas(64) float part[TILE_FLOATS];
    for (size_t i = 0; i < BLOCK; i += 16)
        for (size_t j = 0; j < BLOCK; j += 16) {
            tg_transpose_16x16(in + BLOCK * i + j, BLOCK, part);
            for (size_t row = 0; row < 16; row++)
                _mm512_store_ps(out + BLOCK * (j + row) + i, _mm512_load_ps(part + 16 * row));
        }
}

static void write_block(const float *block, size_t rows, size_t columns, float *out, size_t ld,
                        bool accumulate)
{
    for (size_t row = 0; row < smaller(rows, BLOCK); row++) {
        const float *at = block + BLOCK * row;
        put(out + row * ld, tg_lanes(columns), _mm512_load_ps(at), accumulate);
        if (columns > 16)
            put(out + row * ld + 16, tg_lanes(columns - 16), _mm512_load_ps(at + 16), accumulate);
    }
}

static void write_unit(const unit *u)
{
    _Alignas(64) float block[BLOCK * BLOCK], turned[BLOCK * BLOCK];
    const tg_amx_gradient *g = u->g;
    size_t blocks_m = divided(u->M, BLOCK);
    for (size_t n = 0; n < u->N; n += BLOCK)
        for (size_t m = 0; m < u->M; m += BLOCK) {
            order_block(u->c + (n / BLOCK * blocks_m + m / BLOCK) * BLOCK_FLOATS, block);
            size_t i = u->m0 + m, j = u->n0 + n;
            if (g->turned) {
                turn_block(block, turned);
                write_block(turned, u->N - n, u->M - m, g->dw + j * g->M + i, g->M, g->accumulate);
            } else {
                write_block(block, u->M - m, u->N - n, g->dw + i * g->N + j, g->N, g->accumulate);
            }
        }
}

static void write_a_sums(const unit *u)
{
    float *out = u->g->a_sums + u->m0;
    for (size_t i = 0; i < u->M; i++) {
        float sum = _mm512_reduce_add_ps(_mm512_load_ps(u->a_sums + 16 * i));
        out[i] = u->g->accumulate ? out[i] + sum : sum;
    }
}

static void write_b_sums(const unit *u)
{
    float *out = u->g->b_sums + u->n0;
    for (size_t i = 0; i < u->N; i++) {
        size_t c = i % BLOCK, lane = c / 8 * 4 + c % 4;
        float sum = u->b_sums[i - c + c / 4 % 2 * 16 + lane];
        out[i] = u->g->accumulate ? out[i] + sum : sum;
    }
}

void tg_amx_gradient_unit(const tg_amx_gradient *g, size_t index, void *scratch)
{
    unit u = unit_at(g, index, scratch);
    tg_tiles_enter();
    for (size_t r = 0; r < g->R; r += CHUNK)
        do_chunk(&u, r);
    tg_tiles_leave();
    write_unit(&u);
    if (u.a_sums)
        write_a_sums(&u);
    if (u.b_sums)
        write_b_sums(&u);
}
