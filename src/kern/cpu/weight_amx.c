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

void tg_amx_pack_transposed(size_t out_features, size_t in_features, const float *w, size_t n,
                            uint16_t *out_b)
{
    (void)out_features;
    uint16_t *out = out_b + n * in_features;
    for (size_t k = 0; k < in_features; k += 32)
        for (size_t half = 0; half < TG_PANEL; half += 16, out += TG_TILE_ELEMENTS)
            turn_tile(w + (n + half) * in_features + k, in_features, out);
}

/* 16 elements of two rows as words */
static __m512i pair_of(const float *even, const float *odd)
{
    __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(even)));
    __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(odd)));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

void tg_amx_pack_plain(size_t out_features, size_t in_features, const float *w, size_t n,
                       uint16_t *out_b)
{
    uint16_t *out = out_b + n * out_features;
    for (size_t k = 0; k < out_features; k += 32, out += 2 * TG_TILE_ELEMENTS)
        for (size_t i = 0; i < 16; i++) {
            const float *row = w + (k + 2 * i) * in_features + n;
            _mm512_store_si512(out + 32 * i, pair_of(row, row + in_features));
            _mm512_store_si512(out + TG_TILE_ELEMENTS + 32 * i,
                               pair_of(row + 16, row + in_features + 16));
        }
}
