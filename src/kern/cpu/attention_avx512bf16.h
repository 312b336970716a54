/* attention_avx512bf16.h - vector pieces shared by the bf16 attention files: exponential,
 * logarithm, sums of lanes, conversions. Include only from files compiled for AVX512_BF16. */
#ifndef TG_KERN_CPU_ATTENTION_AVX512BF16_H
#define TG_KERN_CPU_ATTENTION_AVX512BF16_H
#if defined(__AVX512BF16__)

#include "kern/cpu/attention.h"
#include "kern/cpu/attention_exp2.h"
#include "kern/cpu/pairs.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define TG_LOG2E 1.4426950408889634f
#define TG_LN2 0.6931471805599453f

/* 2^t, relative error below 3e-6 (bf16 keeps 4e-3): a minimax polynomial of the fraction in [0,1),
 * scaled by 2^floor(t). Underflows to 0. */
static inline __m512 tg_exp2_ps(__m512 t)
{
    __m512 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    __m512 p = _mm512_set1_ps(1.353416724e-02f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.201146191e-02f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.414427561e-01f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.930038346e-01f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.000002593f));
    return _mm512_scalef_ps(p, t);
}

/* 2^(i/32) for the index i of a lane, less i in the bits where an integer added to the exponent leaves
 * the fraction's. */
typedef struct tg_exp2_table {
    __m512i low, high;
} tg_exp2_table;

static inline tg_exp2_table tg_exp2_table_load(void)
{
    return (tg_exp2_table){_mm512_loadu_si512(tg_exp2_table_words),
                           _mm512_loadu_si512(tg_exp2_table_words + 16)};
}

/* 2^(x factor) for |x factor| up to 100, relative error below 3e-5: the nearest multiple of 1/32 from
 * the table, a line for the rest. Eight instructions, of which four multiply: those are what a core
 * has least of while its tiles are busy. */
static inline __m512 tg_exp2_near_ps(__m512 x, __m512 factor, const tg_exp2_table *table)
{
    const __m512 shift = _mm512_set1_ps(0x1.8p18f); /* a sum with it ends at 1/32 */
    __m512 y = _mm512_fmadd_ps(x, factor, shift);
    __m512 rest = _mm512_fmsub_ps(x, factor, _mm512_sub_ps(y, shift));
    __m512i n = _mm512_castps_si512(y);
    __m512i whole = _mm512_add_epi32(_mm512_permutex2var_epi32(table->low, n, table->high),
                                     _mm512_slli_epi32(n, 18));
    /* minimax on [-1/64, 1/64] */
    __m512 line = _mm512_fmadd_ps(rest, _mm512_set1_ps(0.69314040f), _mm512_set1_ps(1.00002932f));
    return _mm512_mul_ps(_mm512_castsi512_ps(whole), line);
}

/* The larger absolute value; b where a is no number and the other way about. */
static inline __m512 tg_max_abs_ps(__m512 a, __m512 b)
{
    return _mm512_range_ps(a, b, 0xB);
}

/* Natural logarithm of positive x: x = 2^e m with m in [0.75, 1.5), log m = 2 artanh of
 * (m-1)/(m+1), whose series to s^9 leaves less than 1e-8. */
static inline __m512 tg_log_ps(__m512 x)
{
    __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    __m512 e = _mm512_getexp_ps(_mm512_div_ps(x, m));
    __m512 one = _mm512_set1_ps(1);
    __m512 s = _mm512_div_ps(_mm512_sub_ps(m, one), _mm512_add_ps(m, one));
    __m512 q = _mm512_mul_ps(s, s), p = _mm512_set1_ps(2.0f / 9);
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 7));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 5));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f / 3));
    p = _mm512_fmadd_ps(p, q, _mm512_set1_ps(2.0f));
    return _mm512_fmadd_ps(e, _mm512_set1_ps(TG_LN2), _mm512_mul_ps(p, s));
}

/* One step of a head's work: see tg_attention_ahead. */
static inline void tg_attention_fetch(tg_attention_ahead *ahead)
{
    for (size_t i = 0; i < TG_ATTENTION_RANGES; i++) {
        const char *at = ahead->range[i].at;
        for (size_t n = ahead->range[i].lines; n > 0 && at < ahead->range[i].end; n--, at += 64)
            _mm_prefetch(at, _MM_HINT_T1);
        ahead->range[i].at = at;
    }
}

/* n lowest lanes, all sixteen from n = 16 on. */
static inline __mmask16 tg_lanes(size_t n)
{
    return n >= 16 ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1);
}

static inline __mmask32 tg_lanes32(size_t n)
{
    return n >= 32 ? 0xFFFFFFFFu : (1u << n) - 1;
}

static inline void tg_store_bf16(uint16_t *out, __mmask16 mask, __m512 x)
{
    _mm256_mask_storeu_epi16(out, mask, (__m256i)_mm512_cvtneps_pbh(x));
}

static inline __m512 tg_load_bf16(const uint16_t *in, __mmask16 mask)
{
    __m256i half = _mm256_maskz_loadu_epi16(mask, in);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* out[16][16] = the transposed 16 x 16 block at in. */
static inline void tg_transpose_16x16(const float *in, size_t ld, float *out)
{
    for (size_t c = 0; c < 4; c++) {
        __m512 r[4];
        for (size_t i = 0; i < 4; i++) {
            const float *at = in + i * ld + 4 * c;
            r[i] = _mm512_castps128_ps512(_mm_loadu_ps(at));
            r[i] = _mm512_mask_broadcast_f32x4(r[i], 0x00F0, _mm_loadu_ps(at + 4 * ld));
            r[i] = _mm512_mask_broadcast_f32x4(r[i], 0x0F00, _mm_loadu_ps(at + 8 * ld));
            r[i] = _mm512_mask_broadcast_f32x4(r[i], 0xF000, _mm_loadu_ps(at + 12 * ld));
        }
        __m512d lo01 = (__m512d)_mm512_unpacklo_ps(r[0], r[1]);
        __m512d hi01 = (__m512d)_mm512_unpackhi_ps(r[0], r[1]);
        __m512d lo23 = (__m512d)_mm512_unpacklo_ps(r[2], r[3]);
        __m512d hi23 = (__m512d)_mm512_unpackhi_ps(r[2], r[3]);
        _mm512_store_pd(out + 64 * c, _mm512_unpacklo_pd(lo01, lo23));
        _mm512_store_pd(out + 64 * c + 16, _mm512_unpackhi_pd(lo01, lo23));
        _mm512_store_pd(out + 64 * c + 32, _mm512_unpacklo_pd(hi01, hi23));
        _mm512_store_pd(out + 64 * c + 48, _mm512_unpackhi_pd(hi01, hi23));
    }
}

/* Lane i of the result is the sum of the lanes of v[i]. */
static inline __m512 tg_sum_lanes(const __m512 v[16])
{
    __m512 q[4];
    for (size_t i = 0; i < 4; i++) {
        const __m512 *a = v + 4 * i;
        __m512 low = _mm512_add_ps(_mm512_unpacklo_ps(a[0], a[1]), _mm512_unpackhi_ps(a[0], a[1]));
        __m512 high = _mm512_add_ps(_mm512_unpacklo_ps(a[2], a[3]), _mm512_unpackhi_ps(a[2], a[3]));
        __m512d l = _mm512_castps_pd(low), h = _mm512_castps_pd(high);
        q[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(l, h)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(l, h)));
    }
    __m512 low = _mm512_add_ps(_mm512_shuffle_f32x4(q[0], q[1], 0x44),
                               _mm512_shuffle_f32x4(q[0], q[1], 0xEE));
    __m512 high = _mm512_add_ps(_mm512_shuffle_f32x4(q[2], q[3], 0x44),
                                _mm512_shuffle_f32x4(q[2], q[3], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88),
                         _mm512_shuffle_f32x4(low, high, 0xDD));
}

/* 32 columns of a product by pairs (kern/cpu/pairs.h) times `factor`, in their order. */
static inline __m512i tg_row_of_product(const float *in, __m512 factor)
{
    __m512 first = _mm512_mul_ps(factor, _mm512_load_ps(in));
    __m512 second = _mm512_mul_ps(factor, _mm512_load_ps(in + 16));
    return tg_pair_order((__m512i)_mm512_cvtne2ps_pbh(second, first));
}

#endif
#endif
