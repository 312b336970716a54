#include "kern/cpu/gelu.h"

#include "kern/cpu/rows.h"

void tg_gelu_forward_rows(tg_cpu_level level, tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                          void *out_g)
{
    tg_rows_select(level)->gelu_forward(kind, dtype, n, h, out_g);
}

void tg_gelu_backward(tg_cpu_level level, tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                      const void *dg, void *out_g, void *out_dh)
{
    tg_rows_select(level)->gelu_backward(kind, dtype, n, h, dg, out_g, out_dh);
}
