#include "kern/cpu/weight_amx.h"

#include "kern/cpu/attention_avx512bf16.h"
#include "kern/cpu/panels.h"
#include "kern/cpu/tiles.h"

/* One tile of W^T: 16 rows of W, 32 elements of each, as words turned. */
static void turn_tile(const float *w, size_t ld, uint16_t *out)
{
    _Alignas(64) float words[16 * 16], turned[16 * 16];
    for (size_t i = 0; i < 16; i++) {
        __m512 low = _mm512_loadu_ps(w + i * ld), high = _mm512_loadu_ps(w + i * ld + 16);
        _mm512_store_si512(words + 16 * i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    tg_transpose_16x16(words, 16, turned);
    for (size_t i = 0; i < 16; i++)
        _mm512_store_si512(out + 32 * i, _mm512_load_si512(turned + 16 * i));
}

/* 16 elements of two rows as words */
static __m512i pair_of(const float *even, const float *odd)
{
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(even)));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(odd)));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* The two tiles of 32 rows x 32 columns of W. */
static void pair_block(const float *w, size_t ld, uint16_t *out)
{
    for (size_t i = 0; i < 16; i++) {
        const float *row = w + 2 * i * ld;
        _mm512_store_si512(out + 32 * i, pair_of(row, row + ld));
        _mm512_store_si512(out + TG_TILE_ELEMENTS + 32 * i, pair_of(row + 16, row + ld + 16));
    }
}

void tg_amx_pack_rows(size_t out_features, size_t in_features, const float *w, size_t n,
                      uint16_t *out_transposed, uint16_t *out_plain)
{
    uint16_t *forward = out_transposed + n * in_features;
    w += n * in_features;
    for (size_t k = 0; k < in_features; k += TG_PANEL) {
        for (size_t half = 0; half < TG_PANEL; half += 16, forward += TG_TILE_ELEMENTS)
            turn_tile(w + half * in_features + k, in_features, forward);
        if (out_plain)
            pair_block(w + k, in_features, out_plain + k * out_features + n * TG_PANEL);
    }
}
