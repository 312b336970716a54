#include "kern/level.h"

static tg_cpu_level at_most(tg_cpu_level level, tg_cpu_level most)
{
    return level < most ? level : most;
}

tg_cpu_level tg_kern_rows_level(tg_cpu_level level)
{
    return at_most(level, TG_CPU_AVX512_BF16);
}

tg_cpu_level tg_kern_attention_level(tg_cpu_level level, tg_dtype dtype)
{
    return at_most(level, dtype == TG_BF16 ? TG_CPU_AMX : TG_CPU_AVX512);
}

const char *tg_kern_products(tg_cpu_level level, tg_dtype dtype)
{
    return level >= TG_CPU_AMX && dtype == TG_BF16 ? "own" : "onednn";
}
