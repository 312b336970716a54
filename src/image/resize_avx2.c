/* The two passes with 16-bit multiply-adds over pairs of taps. */
#include "image/resize_kernel.h"

#if defined(__AVX2__)

#include <immintrin.h>
#include <string.h>

enum { ROWS = 4 };

static inline __m256i finish(__m256i high, __m256i low)
{
    __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, TG_RESIZE_LOW_BITS), low);
    return _mm256_srai_epi32(sum, TG_RESIZE_BITS);
}

/* Four rows at a time, so that the weights are fetched once for them. A step takes 4 taps of a row:
 * 12 bytes become r0 r1 g0 g1 b0 b1 0 0 in the lower half and the same of taps 2 and 3 above. */
static void four_rows(const tg_resize_table *table, const uint8_t *const row[ROWS],
                      uint8_t *const out[ROWS])
{
    const __m256i spread =
        _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                         -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i rounding = _mm_set1_epi32(1 << (TG_RESIZE_BITS - 1));
    for (int x = 0; x < table->count; x++) {
        size_t from = (size_t)table->start[x] * 3, at = (size_t)x * (size_t)table->taps;
        __m256i high[ROWS], low[ROWS];
        for (int r = 0; r < ROWS; r++) {
            high[r] = _mm256_setzero_si256();
            low[r] = _mm256_zextsi128_si256(rounding);
        }
        for (int k = 0; k < table->used[x]; k += 4, from += 12) {
            long long four_high, four_low;
            memcpy(&four_high, table->high + at + k, 8);
            memcpy(&four_low, table->low + at + k, 8);
            __m256i wh = _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(four_high), halves);
            __m256i wl = _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(four_low), halves);
            for (int r = 0; r < ROWS; r++) {
                __m128i bytes = _mm_loadu_si128((const __m128i *)(row[r] + from));
                __m256i p = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), spread);
                high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(p, wh));
                low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(p, wl));
            }
        }
        for (int r = 0; r < ROWS; r++) {
            __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high[r], TG_RESIZE_LOW_BITS), low[r]);
            __m128i whole =
                _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
            whole = _mm_srai_epi32(whole, TG_RESIZE_BITS);
            whole = _mm_packs_epi32(whole, whole);
            int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(whole, whole));
            memcpy(out[r] + (size_t)x * 3, &pixel, 4);
        }
    }
}

void tg_resize_horizontal_avx2(const tg_resize_table *table, const uint8_t *source,
                               size_t source_stride, int rows, uint8_t *out, size_t out_stride)
{
    for (int y = 0; y < rows; y += ROWS) {
        const uint8_t *row[ROWS];
        uint8_t *target[ROWS];
        for (int r = 0; r < ROWS; r++) { /* the last rows are done more than once */
            int at = y + r < rows ? y + r : rows - 1;
            row[r] = source + (size_t)at * source_stride;
            target[r] = out + (size_t)at * out_stride;
        }
        four_rows(table, row, target);
    }
}

/* 16 samples of one target row. */
static inline __m128i sixteen(const int16_t *high, const int16_t *low, int pairs, int used,
                              const uint8_t *p, size_t stride)
{
    const __m256i rounding = _mm256_set1_epi32(1 << (TG_RESIZE_BITS - 1));
    __m256i h0 = _mm256_setzero_si256(), h1 = h0, l0 = rounding, l1 = rounding;
    for (int k = 0; k < pairs; k++, p += 2 * stride) {
        int pair_high, pair_low;
        memcpy(&pair_high, high + 2 * k, 4);
        memcpy(&pair_low, low + 2 * k, 4);
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        __m128i b = 2 * k + 1 < used ? _mm_loadu_si128((const __m128i *)(p + stride)) : a;
        __m256i first = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        __m256i second = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
        __m256i wh = _mm256_set1_epi32(pair_high), wl = _mm256_set1_epi32(pair_low);
        h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(first, wh));
        h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(second, wh));
        l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(first, wl));
        l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(second, wl));
    }
    __m256i words = _mm256_packs_epi32(finish(h0, l0), finish(h1, l1));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

void tg_resize_vertical_avx2(const tg_resize_table *table, int i, const uint8_t *source,
                             size_t source_stride, size_t samples, uint8_t *out)
{
    const uint8_t *first = source + (size_t)table->start[i] * source_stride;
    const int16_t *high = table->high + (size_t)i * (size_t)table->taps;
    const int16_t *low = table->low + (size_t)i * (size_t)table->taps;
    int used = table->used[i], pairs = (used + 1) / 2;
    size_t x = 0;
    if (samples < 16) {
        tg_resize_vertical_plain(table, i, source, source_stride, samples, out);
        return;
    }
    for (; x + 16 <= samples; x += 16)
        _mm_storeu_si128((__m128i *)(out + x),
                         sixteen(high, low, pairs, used, first + x, source_stride));
    if (x < samples) { /* the last 16 again, overlapping */
        x = samples - 16;
        _mm_storeu_si128((__m128i *)(out + x),
                         sixteen(high, low, pairs, used, first + x, source_stride));
    }
}

#endif
