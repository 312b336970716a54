#include "kern/cpu/entries.h"
#include "kern/cpu/tiled.h"
#include "kern/cpu/weight.h"

#include <assert.h>
#include <omp.h>
#include <stdlib.h>

/* oneDNN's tiles are 16 rows, and 32 keep both accumulators busy: 243 rows ran 1.5 times slower than
 * 256 for each row. */
enum { LARGEST_PIECE_ROWS = 256, TILE_ROWS = 32 };

/* Rows of the busiest thread when pieces of `rows` are dealt out in contiguous runs. */
static size_t busiest_rows(size_t R, size_t rows, size_t threads)
{
    size_t count = (R + rows - 1) / rows, mine = (count + threads - 1) / threads * rows;
    return mine < R ? mine : R;
}

/* The largest piece of whole tiles that leaves the threads within 2 % of an equal share. */
tg_row_pieces tg_row_pieces_for(const tg_stream *stream, size_t R)
{
    size_t threads = (size_t)stream->threads, share = (R + threads - 1) / threads;
    size_t rows = share, best = (size_t)-1;
    if (share > LARGEST_PIECE_ROWS || threads > 1) {
        for (size_t r = LARGEST_PIECE_ROWS; r >= TILE_ROWS; r -= TILE_ROWS) {
            size_t busiest = busiest_rows(R, r, threads);
            if (busiest < best) {
                best = busiest;
                rows = r;
            }
            if (busiest * 50 <= share * 51)
                break;
        }
    }
    rows = rows < R ? rows : R;
    return (tg_row_pieces){.R = R, .rows = rows, .count = rows ? (R + rows - 1) / rows : 0};
}

tg_status tg_piece_products_get(tg_stream *stream, const tg_row_pieces *pieces,
                                tg_product_shape shape, tg_piece_products *out)
{
    tg_piece_products products = {0};
    shape.M = pieces->rows;
    TG_TRY(tg_product_get(stream, &shape, &products.full));
    shape.M = tg_row_piece_rows(pieces, pieces->count - 1);
    if (shape.M != pieces->rows)
        TG_TRY(tg_product_get(stream, &shape, &products.last));
    *out = products;
    return TG_OK;
}

/* out[R,N] = a[R,K] b, piece by piece on the team. */
static tg_status run_pieces(tg_stream *stream, size_t R, tg_product_shape shape, const void *a,
                            const void *b, const float *bias, void *out_c)
{
    tg_stream_enter(stream);
    tg_row_pieces pieces = tg_row_pieces_for(stream, R);
    tg_piece_products products;
    TG_TRY(tg_piece_products_get(stream, &pieces, shape, &products));
    size_t a_row = shape.K * tg_dtype_bytes(shape.in), c_row = shape.N * tg_dtype_bytes(shape.out);
    int failed = 0;
#pragma omp parallel num_threads(stream->threads) reduction(| : failed)
    {
        int thread = omp_get_thread_num();
        omp_set_num_threads(1); /* inside a piece oneDNN works alone */
#pragma omp for schedule(static)
        for (size_t i = 0; i < pieces.count; i++) {
            size_t first = i * pieces.rows;
            failed |= tg_product_run(stream, tg_piece_product(&products, &pieces, i), thread,
                                     (const char *)a + first * a_row, b, bias,
                                     (char *)out_c + first * c_row) != TG_OK;
        }
    }
    return failed ? tg_fail(TG_ERROR_MACHINE, "oneDNN: matrix product failed on a worker thread")
                  : TG_OK;
}

tg_status tg_cpu_linear_forward(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                const float *bias, void *out_y, tg_dtype y_dtype)
{
    assert(weight->ready);
    if (R == 0)
        return TG_OK;
    if (weight->panels) {
        tg_tiled_linear(stream, R, weight->in_features, weight->out_features, x, weight->forward,
                        bias, out_y, y_dtype);
        return TG_OK;
    }
    tg_product_shape shape = {.K = weight->in_features,
                              .N = weight->out_features,
                              .in = weight->compute,
                              .out = y_dtype,
                              .bias = bias != NULL,
                              .b_layout = &weight->forward_layout};
    return run_pieces(stream, R, shape, x, weight->forward, bias, out_y);
}

tg_status tg_cpu_linear_backward_input(tg_stream *stream, tg_weight *weight, size_t R,
                                       const void *dy, void *out_dx)
{
    assert(weight->ready && weight->backward);
    if (R == 0)
        return TG_OK;
    if (weight->panels) {
        tg_tiled_linear(stream, R, weight->out_features, weight->in_features, dy, weight->backward,
                        NULL, out_dx, TG_BF16);
        return TG_OK;
    }
    tg_product_shape shape = {.K = weight->out_features,
                              .N = weight->in_features,
                              .in = weight->compute,
                              .out = weight->compute,
                              .b_layout = &weight->backward_layout};
    return run_pieces(stream, R, shape, dy, weight->backward, NULL, out_dx);
}

tg_status tg_cpu_linear_backward_weight(tg_stream *stream, tg_weight *weight, size_t R,
                                        const void *x, const void *dy, float *dw, float *dbias,
                                        bool accumulate)
{
    return tg_weight_gradient(stream, R, weight->out_features, weight->in_features, weight->compute,
                              x, dy, dw, dbias, accumulate);
}
