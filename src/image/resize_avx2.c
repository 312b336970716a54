/* The two passes with 16-bit multiply-adds over pairs of taps. */
#include "image/resize_kernel.h"

#if defined(__AVX2__)

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

enum { ROWS = 4 };

/* The two parts of a weighted sum, 8 lanes of 32 bits. */
typedef struct sums {
    __m256i high, low;
} sums;

static inline __m256i join(sums s)
{
    return _mm256_add_epi32(_mm256_slli_epi32(s.high, TG_RESIZE_LOW_BITS), s.low);
}

static inline sums add_products(sums s, __m256i samples, sums weights)
{
    s.high = _mm256_add_epi32(s.high, _mm256_madd_epi16(samples, weights.high));
    s.low = _mm256_add_epi32(s.low, _mm256_madd_epi16(samples, weights.low));
    return s;
}

/* 4 taps of a row: 12 bytes become r0 r1 g0 g1 b0 b1 0 0 in the lower half and the same of taps 2
 * and 3 above, each as 16 bits. */
static inline __m256i four_taps(const uint8_t *p)
{
    const __m256i spread =
        _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                         -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), spread);
}

/* The pair of weights of taps 0 and 1 in the lower half, of taps 2 and 3 above. */
static inline __m256i four_weights(const int16_t *weight)
{
    const __m256i halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    long long four;
    memcpy(&four, weight, sizeof four);
    return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(four), halves);
}

static inline __m128i add_halves(sums s)
{
    __m256i v = join(s);
    __m128i whole = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return _mm_srai_epi32(whole, TG_RESIZE_BITS);
}

static inline void store_pixel(uint8_t *out, int pixel, bool last)
{
    memcpy(out, &pixel, last ? 3 : 4);
}

/* Four rows at a time, so that the weights are fetched once for them. */
static void four_rows(const tg_resize_table *table, const uint8_t *const row[ROWS],
                      uint8_t *const out[ROWS])
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_zextsi128_si256(_mm_set1_epi32(1 << (TG_RESIZE_BITS - 1)));
    const uint8_t *row0 = row[0], *row1 = row[1], *row2 = row[2], *row3 = row[3];
    uint8_t *out0 = out[0], *out1 = out[1], *out2 = out[2], *out3 = out[3];
    const tg_resize_table t = *table; /* a copy that the stores of pixels cannot change */
    const int16_t *high = t.high, *low = t.low;
    for (int x = 0; x < t.count; x++, high += t.taps, low += t.taps) {
        size_t from = (size_t)t.start[x] * 3;
        sums s0 = {zero, half}, s1 = s0, s2 = s0, s3 = s0;
        for (int k = 0; k < t.used[x]; k += 4, from += 12) {
            sums w = {four_weights(high + k), four_weights(low + k)};
            s0 = add_products(s0, four_taps(row0 + from), w);
            s1 = add_products(s1, four_taps(row1 + from), w);
            s2 = add_products(s2, four_taps(row2 + from), w);
            s3 = add_products(s3, four_taps(row3 + from), w);
        }
        __m128i pixels = _mm_packus_epi16(_mm_packs_epi32(add_halves(s0), add_halves(s1)),
                                          _mm_packs_epi32(add_halves(s2), add_halves(s3)));
        bool last = x + 1 == t.count;
        store_pixel(out0 + 3 * x, _mm_extract_epi32(pixels, 0), last);
        store_pixel(out1 + 3 * x, _mm_extract_epi32(pixels, 1), last);
        store_pixel(out2 + 3 * x, _mm_extract_epi32(pixels, 2), last);
        store_pixel(out3 + 3 * x, _mm_extract_epi32(pixels, 3), last);
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

static inline __m256i pair_of_weights(const int16_t *weight)
{
    int pair;
    memcpy(&pair, weight, sizeof pair);
    return _mm256_set1_epi32(pair);
}

/* 16 samples of one target row. */
static inline __m128i sixteen(const int16_t *high, const int16_t *low, int used, const uint8_t *p,
                              size_t stride)
{
    sums s0 = {_mm256_setzero_si256(), _mm256_set1_epi32(1 << (TG_RESIZE_BITS - 1))}, s1 = s0;
    for (int k = 0; k < used; k += 2, p += 2 * stride) {
        sums w = {pair_of_weights(high + k), pair_of_weights(low + k)};
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        __m128i b = k + 1 < used ? _mm_loadu_si128((const __m128i *)(p + stride)) : a;
        s0 = add_products(s0, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), w);
        s1 = add_products(s1, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), w);
    }
    __m256i words = _mm256_packs_epi32(_mm256_srai_epi32(join(s0), TG_RESIZE_BITS),
                                       _mm256_srai_epi32(join(s1), TG_RESIZE_BITS));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

void tg_resize_vertical_avx2(const tg_resize_table *table, int i, const uint8_t *source,
                             size_t source_stride, size_t samples, uint8_t *out)
{
    const uint8_t *first = source + (size_t)table->start[i] * source_stride;
    const int16_t *high = table->high + (size_t)i * (size_t)table->taps;
    const int16_t *low = table->low + (size_t)i * (size_t)table->taps;
    int used = table->used[i];
    size_t x = 0;
    if (samples < 16) {
        tg_resize_vertical_plain(table, i, source, source_stride, samples, out);
        return;
    }
    for (; x + 16 <= samples; x += 16)
        _mm_storeu_si128((__m128i *)(out + x), sixteen(high, low, used, first + x, source_stride));
    if (x < samples) { /* the last 16 again, overlapping */
        x = samples - 16;
        _mm_storeu_si128((__m128i *)(out + x), sixteen(high, low, used, first + x, source_stride));
    }
}

#endif
