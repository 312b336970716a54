#include "kern/cpu/columns.h"
#include "kern/cpu/tiled.h"
#include "kern/cpu/weight.h"

#include <omp.h>

static void bias_gradient(tg_stream *stream, size_t R, size_t N, tg_dtype dtype, const void *dy,
                          float *dbias, bool accumulate)
{
    enum { COLUMNS = 64 };
    size_t blocks = (N + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for schedule(static) num_threads(stream->threads)
    for (size_t i = 0; i < blocks; i++) {
        size_t first = i * COLUMNS;
        size_t columns = first + COLUMNS <= N ? COLUMNS : N - first;
        tg_column_sums(stream->level, dtype, R, columns, N,
                       (const char *)dy + first * tg_dtype_bytes(dtype), dbias + first, accumulate);
    }
}

tg_status tg_weight_gradient(tg_stream *stream, size_t R, size_t out_features, size_t in_features,
                             tg_dtype dtype, const void *x, const void *dy, float *dw, float *dbias,
                             bool accumulate)
{
    if (R == 0) {
        if (!accumulate) {
            tg_stream_zero(stream, dw, out_features * in_features * sizeof *dw);
            tg_stream_zero(stream, dbias, dbias ? out_features * sizeof *dbias : 0);
        }
        return TG_OK;
    }
    tg_stream_enter(stream);
    if (stream->level >= TG_CPU_AMX && dtype == TG_BF16) {
        const bool turned = out_features > in_features; /* the narrower operand is a */
        return tg_tiled_gradient(stream,
                                 &(tg_amx_gradient){.R = R,
                                                    .M = turned ? in_features : out_features,
                                                    .N = turned ? out_features : in_features,
                                                    .a = turned ? x : dy,
                                                    .b = turned ? dy : x,
                                                    .turned = turned,
                                                    .accumulate = accumulate,
                                                    .dw = dw,
                                                    .a_sums = turned ? NULL : dbias,
                                                    .b_sums = turned ? dbias : NULL});
    }
    tg_product_shape shape = {.M = out_features,
                              .K = R,
                              .N = in_features,
                              .in = dtype,
                              .out = TG_F32,
                              .a_transposed = true,
                              .whole_team = true,
                              .finish = accumulate ? TG_FINISH_ACCUMULATE : TG_FINISH_NONE};
    tg_product *product;
    TG_TRY(tg_product_get(stream, &shape, &product));
    TG_TRY(tg_product_run(stream, product, 0, dy, x, NULL, dw));
    if (dbias)
        bias_gradient(stream, R, out_features, dtype, dy, dbias, accumulate);
    return TG_OK;
}
