#define WIDTH 4
#define ROWS 4
#define VECTORS 2
#define FMA(a, b, c) ((a) * (b) + (c))
#include "kern/cpu/attention_f32.inc"

const tg_attention_kernel tg_attention_f32_portable = KERNEL;
