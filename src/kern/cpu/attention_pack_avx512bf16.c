#include "kern/cpu/attention_bf16.h"
#include "kern/cpu/attention_avx512bf16.h"

#include <immintrin.h>
#include <string.h>

/* 32 elements of row r from column d on, zero outside the array. */
static __m512i load_row(const tg_attention_rows *in, size_t r, size_t d)
{
    if (r >= in->count || d >= in->D)
        return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(tg_lanes32(in->D - d), in->at + r * in->stride + d);
}

/* Rows lie a page or so apart, where no hardware prefetcher follows; so each row is asked for while
 * the one AHEAD before it is used. */
static void prefetch_row(const tg_attention_rows *in, size_t r)
{
    enum { AHEAD = 32 };
    if (r + AHEAD < in->count)
        for (size_t d = 0; d < in->D; d += 32)
            _mm_prefetch((const char *)(in->at + (r + AHEAD) * in->stride + d), _MM_HINT_T0);
}

void tg_attention_pack_rows(const tg_attention_rows *in, size_t D_padded, size_t padded,
                            uint16_t *out)
{
    for (size_t r = 0; r < padded; r++) {
        prefetch_row(in, r);
        for (size_t d = 0; d < D_padded; d += 32)
            _mm512_store_si512(out + r * D_padded + d, load_row(in, r, d));
    }
}

/* Four rows 4 apart, their c-th quarter each: lane i of the result is row[r + 4 i]. */
static __m512i quarters(const uint16_t *at, size_t stride)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_loadu_si128((const __m128i *)(at + 4 * stride)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_loadu_si128((const __m128i *)(at + 8 * stride)));
    return _mm512_mask_broadcast_i32x4(v, 0xF000,
                                       _mm_loadu_si128((const __m128i *)(at + 12 * stride)));
}

/* Transposes 16 rows of 16 words (32 bf16): out[w] holds word w of rows 0..15. */
static void transpose_words(const uint16_t *at, size_t stride, __m512i out[16])
{
    for (size_t c = 0; c < 4; c++) {
        __m512i r0 = quarters(at + 8 * c, stride), r1 = quarters(at + stride + 8 * c, stride);
        __m512i r2 = quarters(at + 2 * stride + 8 * c, stride);
        __m512i r3 = quarters(at + 3 * stride + 8 * c, stride);
        __m512i lo01 = _mm512_unpacklo_epi32(r0, r1), hi01 = _mm512_unpackhi_epi32(r0, r1);
        __m512i lo23 = _mm512_unpacklo_epi32(r2, r3), hi23 = _mm512_unpackhi_epi32(r2, r3);
        out[4 * c] = _mm512_unpacklo_epi64(lo01, lo23);
        out[4 * c + 1] = _mm512_unpackhi_epi64(lo01, lo23);
        out[4 * c + 2] = _mm512_unpacklo_epi64(hi01, hi23);
        out[4 * c + 3] = _mm512_unpackhi_epi64(hi01, hi23);
    }
}

/* The block of 16 rows x 32 columns at (r, d): in place when whole, else copied and padded. */
static const uint16_t *whole_block(const tg_attention_rows *in, size_t r, size_t d,
                                   uint16_t copy[16 * 32], size_t *out_stride)
{
    if (r + 16 <= in->count && d + 32 <= in->D) {
        *out_stride = in->stride;
        return in->at + r * in->stride + d;
    }
    for (size_t i = 0; i < 16; i++)
        _mm512_storeu_si512(copy + 32 * i, load_row(in, r + i, d));
    *out_stride = 32;
    return copy;
}

void tg_attention_pack_transposed(const tg_attention_rows *in, size_t D_padded, size_t padded,
                                  uint16_t *out)
{
    uint16_t copy[16 * 32];
    __m512i words[16];
    for (size_t r = 0; r < padded; r += 16) {
        for (size_t i = 0; i < 16; i++)
            prefetch_row(in, r + i);
        for (size_t d = 0; d < D_padded; d += 32) {
            size_t stride;
            const uint16_t *at = whole_block(in, r, d, copy, &stride);
            transpose_words(at, stride, words);
            for (size_t w = 0; w < 16; w++)
                _mm512_store_si512(out + r * D_padded + (d / 2 + w) * 32, words[w]);
        }
    }
}

void tg_attention_pack_columns(const tg_attention_rows *in, size_t D_padded, size_t padded,
                               uint16_t *out, size_t ld)
{
    uint16_t copy[16 * 32];
    __m512i words[16];
    for (size_t r = 0; r < padded; r += 16) {
        for (size_t i = 0; i < 16; i++)
            prefetch_row(in, r + i);
        for (size_t d = 0; d < D_padded; d += 32) {
            size_t stride;
            const uint16_t *at = whole_block(in, r, d, copy, &stride);
            transpose_words(at, stride, words);
            for (size_t w = 0; w < 16; w++) {
                __m256i *even = (__m256i *)(out + (d + 2 * w) * ld + r);
                __m256i *odd = (__m256i *)(out + (d + 2 * w + 1) * ld + r);
                _mm256_store_si256(even, _mm512_cvtepi32_epi16(words[w]));
                _mm256_store_si256(odd, _mm512_cvtepi32_epi16(_mm512_srli_epi32(words[w], 16)));
            }
        }
    }
}

void tg_attention_pack_pairs(const tg_attention_rows *in, size_t D_padded, size_t padded,
                             uint16_t *out)
{
    for (size_t d = 0; d < D_padded; d += 32) {
        uint16_t *first = out + d * padded, *second = first + 16 * padded;
        for (size_t r = 0; r < padded; r += 2) {
            if (d == 0) {
                prefetch_row(in, r);
                prefetch_row(in, r + 1);
            }
            __m512i words[2];
            tg_pair_rows(load_row(in, r, d), load_row(in, r + 1, d), &words[0], &words[1]);
            _mm512_store_si512(first + 16 * r, words[0]);
            _mm512_store_si512(second + 16 * r, words[1]);
        }
    }
}
