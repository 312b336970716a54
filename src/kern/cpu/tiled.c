#include "kern/cpu/tiled.h"

#include "kern/cpu/panels.h"
#include "kern/cpu/product_amx.h"

#include <omp.h>

/* Columns of one piece of work: all N, or a part of them when there are fewer pieces of rows than
 * threads. */
static size_t slice_columns(const tg_stream *stream, size_t pieces, size_t N)
{
    size_t threads = (size_t)stream->threads, slices = pieces >= threads ? 1 : threads / pieces;
    size_t panels = N / TG_PANEL;
    return (panels + slices - 1) / slices * TG_PANEL;
}

void tg_tiled_linear(tg_stream *stream, size_t R, size_t K, size_t N, const void *x, const void *b,
                     const float *bias, void *out_y, tg_dtype y_dtype)
{
    const tg_row_pieces pieces = tg_row_pieces_for(stream, R);
    const size_t columns = slice_columns(stream, pieces.count, N);
    const size_t slices = (N + columns - 1) / columns, width = tg_dtype_bytes(y_dtype);
    /* q, k and v of many rows: attention reads them when all rows are there, not this thread next */
    const bool past_caches = N > 2 * K && (uintptr_t)out_y % 64 == 0;
#pragma omp parallel num_threads(stream->threads)
    {
        tg_amx_enter();
#pragma omp for schedule(static)
        for (size_t i = 0; i < pieces.count * slices; i++) {
            size_t first = i / slices * pieces.rows, n = i % slices * columns;
            const tg_amx_product product = {.M = tg_row_piece_rows(&pieces, i / slices),
                                            .K = K,
                                            .N = n + columns < N ? columns : N - n,
                                            .a = (const uint16_t *)x + first * K,
                                            .b = (const uint16_t *)b + n * K,
                                            .bias = bias ? bias + n : NULL,
                                            .finish = y_dtype == TG_BF16 ? TG_AMX_BF16 : TG_AMX_F32,
                                            .out = (char *)out_y + (first * N + n) * width,
                                            .ldo = N,
                                            .past_caches = past_caches};
            tg_amx_product_run(&product);
        }
        tg_amx_leave();
    }
}

/* A feed-forward's rows [first, first + rows); `hidden` keeps g or dh of them. */
typedef struct mlp_piece {
    const tg_weight *w1, *w2;
    const void *args; /* tg_mlp_forward or tg_mlp_backward */
    size_t first, rows;
    uint16_t *hidden;
} mlp_piece;

typedef void mlp_body(const mlp_piece *piece);

/* Every thread has room for g or dh of one piece, which stays in that core's cache. */
static tg_status for_pieces(tg_stream *stream, size_t R, const mlp_piece *common, mlp_body *body)
{
    const tg_row_pieces pieces = tg_row_pieces_for(stream, R);
    const size_t stride =
        (pieces.rows + TG_PANEL - 1) / TG_PANEL * TG_PANEL * common->w1->out_features;
    uint16_t *scratch =
        tg_stream_scratch(stream, TG_SLOT_HIDDEN, 2 * stride * (size_t)stream->threads);
    if (!scratch)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the scratch of the feed-forward");
#pragma omp parallel num_threads(stream->threads)
    {
        mlp_piece piece = *common;
        piece.hidden = scratch + (size_t)omp_get_thread_num() * stride;
        tg_amx_enter();
#pragma omp for schedule(static)
        for (size_t i = 0; i < pieces.count; i++) {
            piece.first = i * pieces.rows;
            piece.rows = tg_row_piece_rows(&pieces, i);
            body(&piece);
        }
        tg_amx_leave();
    }
    return TG_OK;
}

/* x -> g (and h kept) -> y */
static void forward_piece(const mlp_piece *piece)
{
    const tg_weight *w1 = piece->w1, *w2 = piece->w2;
    const tg_mlp_forward *args = piece->args;
    const size_t C = w1->in_features, F = w1->out_features, C_out = w2->out_features;
    const tg_amx_product up = {.M = piece->rows,
                               .K = C,
                               .N = F,
                               .a = (const uint16_t *)args->x + piece->first * C,
                               .b = w1->forward,
                               .bias = args->b1,
                               .finish = TG_AMX_GELU,
                               .out = piece->hidden,
                               .ldo = F,
                               .gelu = args->gelu,
                               .m0 = args->row0 + piece->first,
                               .kept = args->out_h};
    const tg_amx_product down = {.M = piece->rows,
                                 .K = F,
                                 .N = C_out,
                                 .a = piece->hidden,
                                 .b = w2->forward,
                                 .bias = args->b2,
                                 .finish = TG_AMX_BF16,
                                 .out = (uint16_t *)args->out_y + piece->first * C_out,
                                 .ldo = C_out};
    tg_amx_product_run(&up);
    tg_amx_product_run(&down);
}

tg_status tg_tiled_mlp_forward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                               const tg_mlp_forward *args)
{
    return for_pieces(stream, args->R, &(mlp_piece){.w1 = w1, .w2 = w2, .args = args},
                      forward_piece);
}

/* dy -> (g again) dh -> dx */
static void backward_piece(const mlp_piece *piece)
{
    const tg_weight *w1 = piece->w1, *w2 = piece->w2;
    const tg_mlp_backward *args = piece->args;
    const size_t C = w1->in_features, F = w1->out_features, C_out = w2->out_features;
    const tg_amx_product through2 = {.M = piece->rows,
                                     .K = C_out,
                                     .N = F,
                                     .a = (const uint16_t *)args->dy + piece->first * C_out,
                                     .b = w2->backward,
                                     .finish = TG_AMX_GELU_SLOPE,
                                     .out = piece->hidden,
                                     .ldo = F,
                                     .gelu = args->gelu,
                                     .m0 = args->row0 + piece->first,
                                     .h = args->h,
                                     .pairs_out = args->out_dh,
                                     .pairs_g = args->out_g};
    const tg_amx_product through1 = {.M = piece->rows,
                                     .K = F,
                                     .N = C,
                                     .a = piece->hidden,
                                     .b = w1->backward,
                                     .finish = TG_AMX_BF16,
                                     .out = (uint16_t *)args->out_dx + piece->first * C,
                                     .ldo = C};
    tg_amx_product_run(&through2);
    tg_amx_product_run(&through1);
}

tg_status tg_tiled_mlp_backward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                                const tg_mlp_backward *args)
{
    return for_pieces(stream, args->R, &(mlp_piece){.w1 = w1, .w2 = w2, .args = args},
                      backward_piece);
}

tg_status tg_tiled_mlp_weights(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                               const tg_mlp_weights *args)
{
    const size_t F = w1->out_features;
    tg_amx_gradient second = {.R = args->R,
                              .M = w2->out_features,
                              .N = F,
                              .a = args->dy,
                              .b = args->g,
                              .b_pairs = true,
                              .accumulate = args->accumulate,
                              .dw = args->dw2,
                              .a_sums = args->db2};
    tg_amx_gradient first = {.R = args->R,
                             .M = w1->in_features,
                             .N = F,
                             .a = args->x,
                             .b = args->dh,
                             .b_pairs = true,
                             .turned = true,
                             .accumulate = args->accumulate,
                             .dw = args->dw1,
                             .b_sums = args->db1};
    TG_TRY(tg_tiled_gradient(stream, &second));
    return tg_tiled_gradient(stream, &first);
}

tg_status tg_tiled_gradient(tg_stream *stream, tg_amx_gradient *gradient)
{
    tg_amx_gradient_divide(gradient, (size_t)stream->threads);
    const size_t bytes = (tg_amx_gradient_scratch(gradient) + 63) & ~(size_t)63;
    char *scratch = tg_stream_scratch(stream, TG_SLOT_GRADIENT, bytes * (size_t)stream->threads);
    if (!scratch)
        return tg_fail(TG_ERROR_MACHINE,
                       "out of memory for %zu bytes of scratch of a weight gradient",
                       bytes * (size_t)stream->threads);
#pragma omp parallel num_threads(stream->threads)
    {
        char *mine = scratch + (size_t)omp_get_thread_num() * bytes;
#pragma omp for schedule(static)
        for (size_t i = 0; i < gradient->m_units * gradient->n_units; i++)
            tg_amx_gradient_unit(gradient, i, mine);
    }
    return TG_OK;
}
