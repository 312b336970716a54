/* pairs.h - two neighbours along the contracted dimension of a bf16 operand in one 32-bit word, as
 * TDPBF16PS and VDPBF16PS read them. Include only from files compiled for AVX512BW.
 *
 * Order    two rows of 32 elements become two vectors of 16 words by one instruction each, which takes
 *          the columns as it finds them: the first vector holds columns 0-3, 8-11, 16-19, 24-27, the
 *          second the others. Products by such an operand have their columns in that order. */
#ifndef TG_KERN_CPU_PAIRS_H
#define TG_KERN_CPU_PAIRS_H
#if defined(__AVX512BW__)

#include <immintrin.h>
#include <stddef.h>

static inline void tg_pair_rows(__m512i even, __m512i odd, __m512i *out_first, __m512i *out_second)
{
    *out_first = _mm512_unpacklo_epi16(even, odd);
    *out_second = _mm512_unpackhi_epi16(even, odd);
}

/* Column that lane `lane` of the first (half 0) or second vector holds. */
static inline size_t tg_pair_column(size_t half, size_t lane)
{
    return lane / 4 * 8 + lane % 4 + 4 * half;
}

/* 32 bf16 elements, the sixteen columns of the first vector and those of the second, in their order. */
static inline __m512i tg_pair_order(__m512i columns)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), columns);
}

#endif
#endif
