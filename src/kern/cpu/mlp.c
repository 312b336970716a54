#include "kern/cpu/entries.h"
#include "kern/cpu/gelu.h"
#include "kern/cpu/tiled.h"
#include "kern/cpu/weight.h"

#include <assert.h>
#include <omp.h>

/* One piece of rows of h (or g) for every thread: it stays in that core's cache. */
static char *hidden_scratch(tg_stream *stream, const tg_row_pieces *pieces, size_t row_bytes,
                            size_t *out_stride)
{
    *out_stride = (pieces->rows * row_bytes + 63) & ~(size_t)63;
    return tg_stream_scratch(stream, TG_SLOT_HIDDEN, *out_stride * (size_t)stream->threads);
}

static tg_status no_scratch(void)
{
    return tg_fail(TG_ERROR_MACHINE, "out of memory for the scratch of the feed-forward");
}

static tg_status team_status(int failed)
{
    return failed ? tg_fail(TG_ERROR_MACHINE, "oneDNN: matrix product failed on a worker thread")
                  : TG_OK;
}

typedef struct forward_plan {
    tg_row_pieces pieces;
    tg_piece_products first, second;
    size_t C_in, F, C_out, element;
    char *scratch;
    size_t scratch_stride;
} forward_plan;

static tg_status plan_forward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                              const tg_mlp_forward *args, forward_plan *out)
{
    forward_plan plan = {.pieces = tg_row_pieces_for(stream, args->R),
                         .C_in = w1->in_features,
                         .F = w1->out_features,
                         .C_out = w2->out_features,
                         .element = tg_dtype_bytes(w1->compute)};
    tg_product_finish fused =
        args->gelu == TG_GELU_EXACT ? TG_FINISH_GELU_EXACT : TG_FINISH_GELU_TANH;
    tg_product_shape first = {.K = plan.C_in,
                              .N = plan.F,
                              .in = w1->compute,
                              .out = w1->compute,
                              .bias = args->b1 != NULL,
                              .finish = args->out_h ? TG_FINISH_NONE : fused,
                              .b_layout = &w1->forward_layout};
    tg_product_shape second = {.K = plan.F,
                               .N = plan.C_out,
                               .in = w2->compute,
                               .out = w2->compute,
                               .bias = args->b2 != NULL,
                               .b_layout = &w2->forward_layout};
    TG_TRY(tg_piece_products_get(stream, &plan.pieces, first, &plan.first));
    TG_TRY(tg_piece_products_get(stream, &plan.pieces, second, &plan.second));
    plan.scratch =
        hidden_scratch(stream, &plan.pieces, plan.F * plan.element, &plan.scratch_stride);
    if (!plan.scratch)
        return no_scratch();
    *out = plan;
    return TG_OK;
}

/* x -> h -> g -> y for one piece of rows; with out_h NULL the product itself applies GELU. */
static int forward_piece(tg_stream *stream, const forward_plan *plan, const tg_weight *w1,
                         const tg_weight *w2, const tg_mlp_forward *args, size_t i, int thread)
{
    size_t first = i * plan->pieces.rows, rows = tg_row_piece_rows(&plan->pieces, i);
    char *g = plan->scratch + (size_t)thread * plan->scratch_stride;
    char *h =
        args->out_h ? (char *)args->out_h + (args->row0 + first) * plan->F * plan->element : g;
    const char *x = (const char *)args->x + first * plan->C_in * plan->element;
    char *y = (char *)args->out_y + first * plan->C_out * plan->element;
    if (tg_product_run(stream, tg_piece_product(&plan->first, &plan->pieces, i), thread, x,
                       w1->forward, args->b1, h) != TG_OK)
        return 1;
    if (args->out_h)
        tg_gelu_forward_rows(stream->level, args->gelu, w1->compute, rows * plan->F, h, g);
    return tg_product_run(stream, tg_piece_product(&plan->second, &plan->pieces, i), thread, g,
                          w2->forward, args->b2, y) != TG_OK;
}

tg_status tg_cpu_mlp_forward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                             const tg_mlp_forward *args)
{
    assert(w1->ready && w2->ready && w1->out_features == w2->in_features);
    if (args->R == 0)
        return TG_OK;
    tg_stream_enter(stream);
    if (w1->panels && w2->panels)
        return tg_tiled_mlp_forward(stream, w1, w2, args);
    forward_plan plan;
    TG_TRY(plan_forward(stream, w1, w2, args, &plan));
    int failed = 0;
#pragma omp parallel num_threads(stream->threads) reduction(| : failed)
    {
        int thread = omp_get_thread_num();
        omp_set_num_threads(1);
#pragma omp for schedule(static)
        for (size_t i = 0; i < plan.pieces.count; i++)
            failed |= forward_piece(stream, &plan, w1, w2, args, i, thread);
    }
    return team_status(failed);
}

typedef struct backward_plan {
    tg_row_pieces pieces;
    tg_piece_products through2, through1; /* dg = dy W2, dx = dh W1 */
    size_t C_in, F, C_out, element;
    char *g, *dh; /* [R,F] for the weight gradients */
} backward_plan;

static tg_status plan_backward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                               const tg_mlp_backward *args, backward_plan *out)
{
    backward_plan plan = {.pieces = tg_row_pieces_for(stream, args->R),
                          .C_in = w1->in_features,
                          .F = w1->out_features,
                          .C_out = w2->out_features,
                          .element = tg_dtype_bytes(w1->compute)};
    tg_product_shape through2 = {.K = plan.C_out,
                                 .N = plan.F,
                                 .in = w2->compute,
                                 .out = w2->compute,
                                 .b_layout = &w2->backward_layout};
    tg_product_shape through1 = {.K = plan.F,
                                 .N = plan.C_in,
                                 .in = w1->compute,
                                 .out = w1->compute,
                                 .b_layout = &w1->backward_layout};
    TG_TRY(tg_piece_products_get(stream, &plan.pieces, through2, &plan.through2));
    TG_TRY(tg_piece_products_get(stream, &plan.pieces, through1, &plan.through1));
    plan.g = args->out_g;
    plan.dh = args->out_dh;
    *out = plan;
    return TG_OK;
}

/* dy -> dg -> (g again, dh) -> dx for one piece of rows. */
static int backward_piece(tg_stream *stream, const backward_plan *plan, const tg_weight *w1,
                          const tg_weight *w2, const tg_mlp_backward *args, size_t i, int thread)
{
    size_t first = i * plan->pieces.rows, rows = tg_row_piece_rows(&plan->pieces, i);
    size_t hidden = (args->row0 + first) * plan->F * plan->element;
    const char *dy = (const char *)args->dy + first * plan->C_out * plan->element;
    char *dx = (char *)args->out_dx + first * plan->C_in * plan->element;
    char *dh = plan->dh + hidden;
    if (tg_product_run(stream, tg_piece_product(&plan->through2, &plan->pieces, i), thread, dy,
                       w2->backward, NULL, dh) != TG_OK)
        return 1;
    tg_gelu_backward(stream->level, args->gelu, w1->compute, rows * plan->F,
                     (const char *)args->h + hidden, dh, plan->g + hidden, dh);
    return tg_product_run(stream, tg_piece_product(&plan->through1, &plan->pieces, i), thread, dh,
                          w1->backward, NULL, dx) != TG_OK;
}

tg_status tg_cpu_mlp_backward(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                              const tg_mlp_backward *args)
{
    assert(w1->ready && w1->backward && w2->ready && w2->backward);
    if (args->R == 0)
        return TG_OK;
    tg_stream_enter(stream);
    if (w1->panels && w2->panels)
        return tg_tiled_mlp_backward(stream, w1, w2, args);
    backward_plan plan;
    TG_TRY(plan_backward(stream, w1, w2, args, &plan));
    int failed = 0;
#pragma omp parallel num_threads(stream->threads) reduction(| : failed)
    {
        int thread = omp_get_thread_num();
        omp_set_num_threads(1);
#pragma omp for schedule(static)
        for (size_t i = 0; i < plan.pieces.count; i++)
            failed |= backward_piece(stream, &plan, w1, w2, args, i, thread);
    }
    return team_status(failed);
}

tg_status tg_cpu_mlp_backward_weights(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                                      const tg_mlp_weights *args)
{
    if (w1->panels && w2->panels && args->R) {
        tg_stream_enter(stream);
        return tg_tiled_mlp_weights(stream, w1, w2, args);
    }
    TG_TRY(tg_weight_gradient(stream, args->R, w2->out_features, w2->in_features, w2->compute,
                              args->g, args->dy, args->dw2, args->db2, args->accumulate));
    return tg_weight_gradient(stream, args->R, w1->out_features, w1->in_features, w1->compute,
                              args->x, args->dh, args->dw1, args->db1, args->accumulate);
}
