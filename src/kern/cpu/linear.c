#include "kern/cpu/entries.h"
#include "kern/cpu/weight.h"

#include "kern/cpu/columns.h"

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

size_t tg_cpu_weight_bytes(size_t out_features, size_t in_features, tg_dtype compute,
                           bool trainable)
{
    /* blocks of oneDNN's layouts are at most 64 columns by 64 rows */
    size_t padded = ((out_features + 63) & ~(size_t)63) * ((in_features + 63) & ~(size_t)63);
    return sizeof(tg_weight) + padded * tg_dtype_bytes(compute) * (trainable ? 2 : 1);
}

void tg_cpu_weight_free(tg_weight *weight)
{
    if (!weight)
        return;
    dnnl_memory_t memories[] = {weight->source, weight->forward_memory, weight->backward_memory};
    for (int i = 0; i < 3; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (weight->forward_reorder)
        dnnl_primitive_destroy(weight->forward_reorder);
    if (weight->backward_reorder)
        dnnl_primitive_destroy(weight->backward_reorder);
    free(weight->forward);
    free(weight->backward);
    free(weight);
}

/* Prepares one copy: its memory and the conversion from fp32 rows read with `tag`. */
static tg_status prepare_copy(tg_stream *stream, const dnnl_dims_t dims, dnnl_format_tag_t tag,
                              const dnnl_memory_desc_t *layout, void **out_bytes,
                              dnnl_memory_t *out_memory, dnnl_primitive_t *out_reorder)
{
    size_t bytes = dnnl_memory_desc_get_size(layout);
    *out_bytes = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!*out_bytes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a prepared weight of %zu bytes", bytes);
    dnnl_memory_desc_t from;
    TG_TRY(tg_dnnl_status(dnnl_memory_desc_init_by_tag(&from, 2, dims, dnnl_f32, tag), "weight"));
    dnnl_primitive_desc_t pd;
    TG_TRY(tg_dnnl_status(dnnl_reorder_primitive_desc_create(&pd, &from, stream->engine, layout,
                                                             stream->engine, NULL),
                          "prepare a weight's reorder"));
    dnnl_status_t s = dnnl_primitive_create(out_reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    TG_TRY(tg_dnnl_status(s, "prepare a weight's reorder"));
    return tg_dnnl_status(dnnl_memory_create(out_memory, layout, stream->engine, *out_bytes),
                          "weight memory");
}

tg_status tg_cpu_weight_new(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out)
{
    tg_weight *w = calloc(1, sizeof *w);
    if (!w)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a weight");
    w->out_features = out_features;
    w->in_features = in_features;
    w->compute = compute;
    tg_status status;
    const dnnl_dims_t forward_dims = {(dnnl_dim_t)in_features, (dnnl_dim_t)out_features};
    const dnnl_dims_t backward_dims = {(dnnl_dim_t)out_features, (dnnl_dim_t)in_features};
    dnnl_memory_desc_t rows;
    (void)dnnl_memory_desc_init_by_tag(&rows, 2, backward_dims, dnnl_f32, dnnl_ab);
    TG_TRY_GOTO(tg_dnnl_status(dnnl_memory_create(&w->source, &rows, stream->engine,
                                                  DNNL_MEMORY_NONE),
                               "weight memory"),
                free_weight);
    TG_TRY_GOTO(
        tg_product_layout(stream, in_features, out_features, compute, &w->forward_layout),
        free_weight);
    TG_TRY_GOTO(prepare_copy(stream, forward_dims, dnnl_ba, &w->forward_layout, &w->forward,
                             &w->forward_memory, &w->forward_reorder),
                free_weight);
    if (trainable) {
        TG_TRY_GOTO(
            tg_product_layout(stream, out_features, in_features, compute, &w->backward_layout),
            free_weight);
        TG_TRY_GOTO(prepare_copy(stream, backward_dims, dnnl_ab, &w->backward_layout, &w->backward,
                                 &w->backward_memory, &w->backward_reorder),
                    free_weight);
    }
    *out = w;
    return TG_OK;
free_weight:
    tg_cpu_weight_free(w);
    return status;
}

static tg_status reorder(tg_stream *stream, dnnl_primitive_t primitive, dnnl_memory_t from,
                         dnnl_memory_t to)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return tg_dnnl_status(dnnl_primitive_execute(primitive, stream->dnnl, 2, args),
                          "refresh a weight");
}

tg_status tg_cpu_weight_refresh(tg_stream *stream, tg_weight *weight, const float *w)
{
    tg_stream_enter(stream);
    (void)dnnl_memory_set_data_handle(weight->source, (void *)(uintptr_t)w);
    TG_TRY(reorder(stream, weight->forward_reorder, weight->source, weight->forward_memory));
    if (weight->backward)
        TG_TRY(reorder(stream, weight->backward_reorder, weight->source, weight->backward_memory));
    weight->ready = true;
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
    tg_product_shape shape = {.K = weight->in_features,
                              .N = weight->out_features,
                              .in = weight->compute,
                              .out = y_dtype,
                              .bias = bias != NULL,
                              .b_layout = &weight->forward_layout};
    return run_pieces(stream, R, shape, x, weight->forward, bias, out_y);
}

tg_status tg_cpu_linear_backward_input(tg_stream *stream, tg_weight *weight, size_t R, const void *dy,
                                void *out_dx)
{
    assert(weight->ready && weight->backward);
    if (R == 0)
        return TG_OK;
    tg_product_shape shape = {.K = weight->out_features,
                              .N = weight->in_features,
                              .in = weight->compute,
                              .out = weight->compute,
                              .b_layout = &weight->backward_layout};
    return run_pieces(stream, R, shape, dy, weight->backward, NULL, out_dx);
}

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
                             tg_dtype dtype, const void *x, const void *dy, float *dw,
                             float *dbias, bool accumulate)
{
    if (R == 0) {
        if (!accumulate) {
            tg_stream_zero(stream, dw, out_features * in_features * sizeof *dw);
            tg_stream_zero(stream, dbias, dbias ? out_features * sizeof *dbias : 0);
        }
        return TG_OK;
    }
    tg_stream_enter(stream);
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

tg_status tg_cpu_linear_backward_weight(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                 const void *dy, float *dw, float *dbias, bool accumulate)
{
    return tg_weight_gradient(stream, R, weight->out_features, weight->in_features,
                              weight->compute, x, dy, dw, dbias, accumulate);
}
