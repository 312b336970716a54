#include <immintrin.h>

#define WIDTH 16
#define ROWS 6
#define VECTORS 4
#define FMA(a, b, c) ((vec)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#include "kern/cpu/attention_f32.inc"

const tg_attention_kernel tg_attention_f32_avx512 = KERNEL;
