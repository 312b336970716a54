/* simd.h - one vector of floats as wide as the instruction set that the file is compiled for.
 *
 * The row kernels (norm_rows.h, gelu_rows.h, ...) are written once on `vf` and compiled per
 * instruction set by rows_portable.c, rows_avx2.c, rows_avx512.c and rows_avx512bf16.c. Names are
 * short because everything here is private to those files. +, -, * and / are the operators of C on
 * vectors; nothing is contracted, so vf_fma says where a fused multiply-add is wanted (the portable
 * version multiplies and adds).
 *
 * Partial  vf_load(p, n), vf_store(p, n, x), ...: only the first n lanes are read or written, other
 *          lanes load as 0; n >= VF_LANES is the whole vector. A constant n costs nothing.
 * NaN      vf_min(a, b) and vf_max(a, b) give b when either is NaN.
 * bf16     stores round to nearest, ties to even, and keep NaN. With AVX512_BF16 the instruction
 *          does it: it also writes values below the normal range as 0, which the flush-to-zero mode
 *          of streams (dev.h) does to their sources anyway.
 */
#ifndef TG_KERN_CPU_SIMD_H
#define TG_KERN_CPU_SIMD_H

#include "tensor/dtype.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define VF_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)

enum { VF_LANES = 16 };
typedef float vf __attribute__((vector_size(64)));

VF_INLINE __mmask16 vf_lanes(size_t n)
{
    return n >= VF_LANES ? (__mmask16)0xFFFF : (__mmask16)((1u << n) - 1);
}

VF_INLINE vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}

VF_INLINE vf vf_load(const float *p, size_t n)
{
    return n >= VF_LANES ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(vf_lanes(n), p);
}

VF_INLINE void vf_store(float *p, size_t n, vf x)
{
    if (n >= VF_LANES)
        _mm512_storeu_ps(p, x);
    else
        _mm512_mask_storeu_ps(p, vf_lanes(n), x);
}

VF_INLINE vf vf_load_bf16(const uint16_t *p, size_t n)
{
    __m256i half = n >= VF_LANES ? _mm256_loadu_si256((const __m256i *)p)
                                 : _mm256_maskz_loadu_epi16(vf_lanes(n), p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

VF_INLINE __m256i vf_to_bf16(vf x)
{
#if defined(__AVX512BF16__)
    return (__m256i)_mm512_cvtneps_pbh(x);
#else
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_blend_epi32(nan, up, quiet), 16));
#endif
}

VF_INLINE void vf_store_bf16(uint16_t *p, size_t n, vf x)
{
    if (n >= VF_LANES)
        _mm256_storeu_si256((__m256i *)p, vf_to_bf16(x));
    else
        _mm256_mask_storeu_epi16(p, vf_lanes(n), vf_to_bf16(x));
}

VF_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

VF_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

VF_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

VF_INLINE vf vf_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}

VF_INLINE vf vf_abs(vf x)
{
    return _mm512_abs_ps(x);
}

/* a where x < 0, else b */
VF_INLINE vf vf_if_negative(vf x, vf a, vf b)
{
    __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_blend_ps(negative, b, a);
}

/* x 2^n, where n is a whole number and shifted = n + 1.5 2^23 */
VF_INLINE vf vf_scale(vf x, vf n, vf shifted)
{
    (void)shifted;
    return _mm512_scalef_ps(x, n);
}

VF_INLINE float vf_sum(vf x)
{
    return _mm512_reduce_add_ps(x);
}

VF_INLINE float vf_largest(vf x)
{
    return _mm512_reduce_max_ps(x);
}

#elif defined(__AVX2__)

enum { VF_LANES = 8 };
typedef float vf __attribute__((vector_size(32)));

VF_INLINE __m256i vf_lanes(size_t n)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}

VF_INLINE vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}

VF_INLINE vf vf_load(const float *p, size_t n)
{
    return n >= VF_LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vf_lanes(n));
}

VF_INLINE void vf_store(float *p, size_t n, vf x)
{
    if (n >= VF_LANES)
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, vf_lanes(n), x);
}

VF_INLINE vf vf_load_bf16(const uint16_t *p, size_t n)
{
    __m128i half = _mm_setzero_si128();
    if (n >= VF_LANES)
        half = _mm_loadu_si128((const __m128i *)p);
    else
        memcpy(&half, p, 2 * n);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

VF_INLINE __m128i vf_to_bf16(vf x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i rounded = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
    __m256i packed = _mm256_packus_epi32(rounded, rounded);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 8));
}

VF_INLINE void vf_store_bf16(uint16_t *p, size_t n, vf x)
{
    __m128i half = vf_to_bf16(x);
    if (n >= VF_LANES)
        _mm_storeu_si128((__m128i *)p, half);
    else
        memcpy(p, &half, 2 * n);
}

VF_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

VF_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

VF_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

VF_INLINE vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}

VF_INLINE vf vf_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

VF_INLINE vf vf_if_negative(vf x, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

VF_INLINE vf vf_scale(vf x, vf n, vf shifted)
{
    (void)n;
    __m256i power = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    power = _mm256_add_epi32(power, _mm256_set1_epi32(127 << 23));
    return x * _mm256_castsi256_ps(power);
}

VF_INLINE float vf_sum(vf x)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

VF_INLINE float vf_largest(vf x)
{
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

#else /* the compiler's vectors of 16 bytes: SSE2, NEON, or plain code */

enum { VF_LANES = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vf_bits __attribute__((vector_size(16)));
typedef uint32_t vf_words __attribute__((vector_size(16)));
typedef uint16_t vf_halves __attribute__((vector_size(8)));

VF_INLINE vf vf_set(float x)
{
    return (vf){x, x, x, x};
}

VF_INLINE vf vf_load(const float *p, size_t n)
{
    vf x = {0};
    if (n >= VF_LANES)
        memcpy(&x, p, sizeof x);
    else
        memcpy(&x, p, n * sizeof *p);
    return x;
}

VF_INLINE void vf_store(float *p, size_t n, vf x)
{
    if (n >= VF_LANES)
        memcpy(p, &x, sizeof x);
    else
        memcpy(p, &x, n * sizeof *p);
}

VF_INLINE vf vf_load_bf16(const uint16_t *p, size_t n)
{
    vf_halves half = {0};
    if (n >= VF_LANES)
        memcpy(&half, p, sizeof half);
    else
        memcpy(&half, p, n * sizeof *p);
    return (vf)(__builtin_convertvector(half, vf_words) << 16);
}

VF_INLINE vf vf_select(vf_bits mask, vf a, vf b)
{
    return (vf)((mask & (vf_bits)a) | (~mask & (vf_bits)b));
}

VF_INLINE void vf_store_bf16(uint16_t *p, size_t n, vf x)
{
    vf_words bits = (vf_words)x;
    vf_words up = bits + 0x7FFF + ((bits >> 16) & 1);
    vf_words rounded = (vf_words)vf_select(x != x, (vf)(bits | 0x400000), (vf)up) >> 16;
    vf_halves half = __builtin_convertvector(rounded, vf_halves);
    if (n >= VF_LANES)
        memcpy(p, &half, sizeof half);
    else
        memcpy(p, &half, n * sizeof *p);
}

VF_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

VF_INLINE vf vf_min(vf a, vf b)
{
    return vf_select(a < b, a, b);
}

VF_INLINE vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}

VF_INLINE vf vf_sqrt(vf x)
{
    return (vf){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

VF_INLINE vf vf_abs(vf x)
{
    return (vf)((vf_bits)x & 0x7FFFFFFF);
}

VF_INLINE vf vf_if_negative(vf x, vf a, vf b)
{
    return vf_select(x < vf_set(0), a, b);
}

VF_INLINE vf vf_scale(vf x, vf n, vf shifted)
{
    (void)n;
    return x * (vf)(((vf_words)shifted << 23) + (127u << 23));
}

VF_INLINE float vf_sum(vf x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

VF_INLINE float vf_largest(vf x)
{
    return fmaxf(fmaxf(x[0], x[2]), fmaxf(x[1], x[3]));
}

#endif

/* Element i and on of an array of `dtype`; with a constant dtype only one branch remains. */
VF_INLINE vf vf_load_as(const void *array, tg_dtype dtype, size_t i, size_t n)
{
    return dtype == TG_BF16 ? vf_load_bf16((const uint16_t *)array + i, n)
                            : vf_load((const float *)array + i, n);
}

VF_INLINE void vf_store_as(void *array, tg_dtype dtype, size_t i, size_t n, vf x)
{
    if (dtype == TG_BF16)
        vf_store_bf16((uint16_t *)array + i, n, x);
    else
        vf_store((float *)array + i, n, x);
}

/* exp(x): x = n ln 2 + r, |r| <= ln(2)/2, a minimax polynomial in r (2^-28), then 2^n. Within
 * 1 ulp; below -87.3 it is 0 to within the smallest normal, above 88.3 it stays at exp(88.3). */
VF_INLINE vf vf_exp(vf x)
{
    const vf magic = vf_set(0x1.8p23f);
    x = vf_max(vf_set(-87.3f), vf_min(vf_set(88.3f), x));
    vf shifted = vf_fma(x, vf_set(1.44269504f), magic);
    vf n = shifted - magic;
    vf r = vf_fma(n, vf_set(-0x1.62e4p-1f), x);
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_fma(vf_set(0.00138145359f), r, vf_set(0.00836874553f));
    p = vf_fma(p, r, vf_set(0.0416683909f));
    p = vf_fma(p, r, vf_set(0.166665204f));
    p = vf_fma(p, r, vf_set(0.499999934f));
    p = vf_fma(p * r, r, r) + vf_set(1);
    return vf_scale(p, n, shifted);
}

#endif
