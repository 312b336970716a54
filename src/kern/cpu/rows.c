#include "kern/cpu/rows.h"

const tg_rows *tg_rows_select(tg_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= TG_CPU_AVX512_BF16)
        return &tg_rows_avx512bf16;
    if (level >= TG_CPU_AVX512)
        return &tg_rows_avx512;
    if (level >= TG_CPU_AVX2)
        return &tg_rows_avx2;
#else
    (void)level;
#endif
    return &tg_rows_portable;
}
