/* Blocks from the last down. Between two attentions rows go through span by span (vit_state.h), then the
 * weights' gradients are taken over all rows. */
#include "model/vit_state.h"

#include "trace/trace.h"

#include <math.h>

/* Gradient of what a norm of the span wrote. */
static void *dspan_of(const tg_vit *vit, const tg_vit_span *span)
{
    return tg_vit_row(vit, vit->tape.dspan, span->scratch, vit->config.embed_dim);
}

/* The sums of the span's chunks; spans begin at whole chunks. */
static float *sums_of(const tg_vit *vit, float *sums, const tg_vit_span *span)
{
    return sums + span->first / TG_NORM_CHUNK * 3 * vit->config.embed_dim;
}

/* branch -> g, dh -> dspan */
static tg_status feed_forward_backward(tg_vit *vit, size_t l, const tg_vit_span *span)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_mlp_backward mlp = {
        .R = span->rows,
        .row0 = span->first,
        .gelu = vit->config.gelu,
        .h = vit->blocks[l].h,
        .dy = tg_vit_row(vit, tape->branch, span->first, vit->config.embed_dim),
        .out_g = tape->g,
        .out_dh = tape->dh,
        .out_dx = dspan_of(vit, span)};
    return vit->kern->mlp.backward(span->stream, vit->weights[l].fc1, vit->weights[l].fc2, &mlp);
}

/* What both norms of a block share: rows of the span, dspan -> dres. `w` and `b` are their offsets. */
static tg_norm_backward norm_of_span(const tg_vit *vit, const tg_vit_span *span, size_t T_q,
                                     size_t w, size_t b, const tg_vit_backward_args *args)
{
    const size_t C = vit->config.embed_dim;
    return (tg_norm_backward){.R = span->rows,
                              .C = C,
                              .row0 = span->first,
                              .rows_per_sample = T_q,
                              .dtype = vit->dtype,
                              .ldx = C,
                              .ldb = C,
                              .ldy = C,
                              .dy = dspan_of(vit, span),
                              .w = tg_vit_param(vit, w),
                              .b = tg_vit_param(vit, b),
                              .dw = tg_vit_grad(args->grads, w),
                              .db = tg_vit_grad(args->grads, b)};
}

/* dspan -> dres, branch_mid; y_mid again */
static void norm2_backward(tg_vit *vit, size_t l, size_t T_q, float *dres, const tg_vit_span *span,
                           const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[l];
    const tg_block_offsets *at = &vit->offsets[l];
    const size_t C = vit->config.embed_dim, first = span->first * C;
    tg_norm_backward norm = norm_of_span(vit, span, T_q, at->norm2_w, at->norm2_b, args);
    norm.x = block->x_mid + first;
    norm.mean = block->mean2 + span->first;
    norm.rstd = block->rstd2 + span->first;
    norm.dres = dres + first;
    norm.branch = tg_vit_row(vit, block->branch1, span->first, C);
    norm.ls = tg_vit_param(vit, at->ls1);
    norm.sample_scale = tg_vit_sample_scale(tape, l, 0);
    norm.out_dbranch = tg_vit_row(vit, tape->branch_mid, span->first, C);
    norm.out_y = tg_vit_row(vit, tape->y_mid, span->first, C);
    norm.dls = tg_vit_grad(args->grads, at->ls1);
    norm.out_sums = sums_of(vit, tape->norm2_sums, span);
    vit->kern->norm.backward(span->stream, &norm);
}

/* branch -> dres, branch_mid -> dy, the gradient of o, of the rows of a span; T_q rows a sample. */
static tg_status after_attention_backward(tg_vit *vit, size_t l, size_t T_q, float *dres,
                                          const tg_vit_span *span, const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const size_t C = vit->config.embed_dim;
    tg_trace_set_layer((int)l);
    TG_TRY(feed_forward_backward(vit, l, span));
    norm2_backward(vit, l, T_q, dres, span, args);
    return vit->kern->linear.backward_input(span->stream, vit->weights[l].proj, span->rows,
                                            tg_vit_row(vit, tape->branch_mid, span->first, C),
                                            tg_vit_row(vit, tape->dy, span->first, C));
}

/* Adds up what the chunks of a norm left: its weight and bias, and the LayerScale `ls` of the branch
 * added before it. */
static void gather_norm(tg_vit *vit, size_t R, const float *sums, size_t w, size_t b, size_t ls,
                        const tg_vit_backward_args *args)
{
    const tg_norm_gather gather = {.chunks = (R + TG_NORM_CHUNK - 1) / TG_NORM_CHUNK,
                                   .C = vit->config.embed_dim,
                                   .sums = sums,
                                   .dw = tg_vit_grad(args->grads, w),
                                   .db = tg_vit_grad(args->grads, b),
                                   .dls = tg_vit_grad(args->grads, ls),
                                   .accumulate = args->accumulate};
    vit->kern->norm.gather(vit->stream, &gather);
}

/* Weights of the feed-forward, norm2 and proj, from what their rows left. */
static tg_status after_attention_weights(tg_vit *vit, size_t l, size_t rows,
                                         const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_offsets *at = &vit->offsets[l];
    const tg_mlp_weights mlp = {.R = rows,
                                .x = tape->y_mid,
                                .dy = tape->branch,
                                .g = tape->g,
                                .dh = tape->dh,
                                .dw1 = tg_vit_grad(args->grads, at->fc1_w),
                                .db1 = tg_vit_grad(args->grads, at->fc1_b),
                                .dw2 = tg_vit_grad(args->grads, at->fc2_w),
                                .db2 = tg_vit_grad(args->grads, at->fc2_b),
                                .accumulate = args->accumulate};
    tg_trace_set_layer((int)l);
    TG_TRY(vit->kern->mlp.backward_weights(vit->stream, vit->weights[l].fc1, vit->weights[l].fc2,
                                           &mlp));
    gather_norm(vit, rows, tape->norm2_sums, at->norm2_w, at->norm2_b, at->ls1, args);
    return vit->kern->linear.backward_weight(
        vit->stream, vit->weights[l].proj, rows, vit->blocks[l].o, tape->branch_mid,
        tg_vit_grad(args->grads, at->proj_w), tg_vit_grad(args->grads, at->proj_b),
        args->accumulate);
}

/* dy -> dqkv */
static tg_status attention_backward(tg_vit *vit, size_t l, size_t T_q)
{
    const tg_vit_config *c = &vit->config;
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[l];
    const size_t D = c->embed_dim / c->num_heads;
    const tg_attention_shape shape = {
        tape->B, tape->T, c->num_heads, D, T_q, 1.0f / sqrtf((float)D), vit->dtype};
    tg_trace_set_layer((int)l);
    return vit->kern->attention.backward(vit->stream, &shape, block->qkv, block->o, block->lse,
                                         tape->dy, tape->dqkv);
}

/* dres = 0 but for the first T_q rows of each sample, which come from dres_q. */
static void scatter_rows(tg_vit *vit)
{
    tg_vit_tape *tape = &vit->tape;
    const size_t C = vit->config.embed_dim;
    tg_stream_zero(vit->stream, tape->dres, tape->R * C * sizeof(float));
    for (size_t b = 0; b < tape->B; b++)
        tg_stream_copy(vit->stream, tape->dres + b * tape->T * C, tape->dres_q + b * tape->T_q * C,
                       tape->T_q * C * sizeof(float));
}

/* dspan -> dres and branch, the gradient of the feed-forward branch below; y again */
static void norm1_backward(tg_vit *vit, size_t l, const tg_vit_span *span,
                           const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[l];
    const tg_block_offsets *at = &vit->offsets[l];
    const size_t C = vit->config.embed_dim, first = span->first * C;
    tg_norm_backward norm = norm_of_span(vit, span, tape->T, at->norm1_w, at->norm1_b, args);
    norm.x = block->x_in + first;
    norm.mean = block->mean1 + span->first;
    norm.rstd = block->rstd1 + span->first;
    norm.dres = tape->dres + first;
    norm.out_y = tg_vit_row(vit, tape->y, span->first, C);
    norm.out_sums = sums_of(vit, tape->norm1_sums, span);
    if (l > 0) {
        norm.branch = tg_vit_row(vit, vit->blocks[l - 1].branch2, span->first, C);
        norm.ls = tg_vit_param(vit, vit->offsets[l - 1].ls2);
        norm.sample_scale = tg_vit_sample_scale(tape, l - 1, 1);
        norm.out_dbranch = tg_vit_row(vit, tape->branch, span->first, C);
        norm.dls = tg_vit_grad(args->grads, vit->offsets[l - 1].ls2);
    }
    vit->kern->norm.backward(span->stream, &norm);
}

/* dqkv -> dspan -> dres, branch of the rows of a span */
static tg_status before_attention_backward(tg_vit *vit, size_t l, const tg_vit_span *span,
                                           const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    tg_trace_set_layer((int)l);
    TG_TRY(vit->kern->linear.backward_input(
        span->stream, vit->weights[l].qkv, span->rows,
        tg_vit_row(vit, tape->dqkv, span->first, 3 * vit->config.embed_dim), dspan_of(vit, span)));
    norm1_backward(vit, l, span, args);
    return TG_OK;
}

typedef struct stage {
    size_t l;
    const tg_vit_backward_args *args;
} stage;

/* From the attention of block l down to that of the block below. */
static tg_status between_attentions_backward(tg_vit *vit, const tg_vit_span *span, void *user)
{
    const stage *s = user;
    TG_TRY(before_attention_backward(vit, s->l, span, s->args));
    if (s->l == 0)
        return TG_OK;
    return after_attention_backward(vit, s->l - 1, vit->tape.T, vit->tape.dres, span, s->args);
}

/* Weights of qkv and norm1, and the LayerScale of the block below. */
static tg_status before_attention_weights(tg_vit *vit, size_t l, const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_offsets *at = &vit->offsets[l];
    tg_trace_set_layer((int)l);
    gather_norm(vit, tape->R, tape->norm1_sums, at->norm1_w, at->norm1_b,
                l > 0 ? vit->offsets[l - 1].ls2 : TG_ABSENT, args);
    return vit->kern->linear.backward_weight(vit->stream, vit->weights[l].qkv, tape->R, tape->y,
                                             tape->dqkv, tg_vit_grad(args->grads, at->qkv_w),
                                             tg_vit_grad(args->grads, at->qkv_b), args->accumulate);
}

/* The last block after its attention, where only R_q rows are used. */
static tg_status last_rows_backward(tg_vit *vit, const tg_vit_span *span, void *user)
{
    const stage *s = user;
    return after_attention_backward(vit, s->l, vit->tape.T_q, vit->tape.dres_q, span, s->args);
}

void tg_vit_report(const tg_vit_backward_args *args, size_t begin, size_t end)
{
    if (args->ready && end > begin)
        args->ready(args->ready_user, begin, end - begin);
}

tg_status tg_vit_blocks_backward(tg_vit *vit, const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const size_t last = vit->config.depth - 1;
    stage s = {.l = last, .args = args};
    TG_TRY(tg_vit_row_wise(vit, tape->R_q, last_rows_backward, &s));
    TG_TRY(after_attention_weights(vit, last, tape->R_q, args));
    for (size_t l = last + 1; l-- > 0;) {
        TG_TRY(attention_backward(vit, l, l == last ? tape->T_q : tape->T));
        if (l == last && tape->T_q < tape->T)
            scatter_rows(vit);
        s.l = l;
        TG_TRY(tg_vit_row_wise(vit, tape->R, between_attentions_backward, &s));
        TG_TRY(before_attention_weights(vit, l, args));
        tg_vit_report(args, vit->offsets[l].begin, vit->offsets[l].end);
        if (l > 0)
            TG_TRY(after_attention_weights(vit, l - 1, tape->R, args));
    }
    return TG_OK;
}
