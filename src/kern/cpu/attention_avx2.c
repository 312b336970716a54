#include <immintrin.h>

#define WIDTH 8
#define ROWS 6
#define VECTORS 2
#define FMA(a, b, c) ((vec)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#include "kern/cpu/attention_f32.inc"

const tg_attention_kernel tg_attention_f32_avx2 = KERNEL;
