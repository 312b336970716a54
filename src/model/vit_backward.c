/* The stages of vit_forward.c in reverse. The gradient of the residual stream travels in tape->dres
 * (fp32); `branch` and `branch_mid` hold the gradients of the feed-forward and attention branches. Between two
 * attentions rows go through span by span (vit_state.h), then the weights' gradients are taken over all
 * rows. */
#include "model/vit_state.h"

#include <assert.h>
#include <math.h>

/* dlogits [B,K] fp32 -> gradient of the head's weight, and of what it read into dy [B,C]. */
static tg_status head_backward(tg_vit *vit, tg_weight *weight, const float *dlogits, const void *y,
                               float *dw, float *db, bool accumulate, void *out_dy)
{
    const tg_linear_ops *linear = &vit->kern->linear;
    tg_vit_tape *tape = &vit->tape;
    const size_t B = tape->B, K = vit->config.num_classes, C = vit->config.embed_dim;
    if (!dlogits) {
        tg_stream_zero(vit->stream, out_dy, B * C * tg_dtype_bytes(vit->dtype));
        if (weight && !accumulate)
            TG_TRY(linear->backward_weight(vit->stream, weight, 0, y, y, dw, db, false));
        return TG_OK;
    }
    vit->kern->tokens.from_f32(vit->stream, B * K, dlogits, vit->dtype, tape->dlogits);
    TG_TRY(linear->backward_weight(vit->stream, weight, B, y, tape->dlogits, dw, db, accumulate));
    return linear->backward_input(vit->stream, weight, B, tape->dlogits, out_dy);
}

/* dy [B,C] += dfeature, through fp32. */
static void add_feature_gradient(tg_vit *vit, const float *dfeature, void *dy)
{
    tg_vit_tape *tape = &vit->tape;
    const size_t n = tape->B * vit->config.embed_dim;
    vit->kern->tokens.to_f32(vit->stream, n, dy, vit->dtype, tape->dfeature);
    tg_vit_add(vit, tape->B, dfeature, tape->dfeature);
    vit->kern->tokens.from_f32(vit->stream, n, tape->dfeature, vit->dtype, dy);
}

/* Head tokens: through the final norm into dres_q and the last feed-forward branch. */
static void norm_tokens_backward(tg_vit *vit, size_t t, const void *dy,
                                 const tg_vit_backward_args *args)
{
    tg_vit_tape *tape = &vit->tape;
    const size_t l = vit->config.depth - 1, C = vit->config.embed_dim, ld = tape->T_q * C;
    const size_t element = tg_dtype_bytes(vit->dtype);
    const tg_norm_backward norm = {.R = tape->B,
                                   .C = C,
                                   .rows_per_sample = 1,
                                   .dtype = vit->dtype,
                                   .ldx = ld,
                                   .ldb = ld,
                                   .ldy = C,
                                   .dy = dy,
                                   .x = tape->x_out + t * C,
                                   .mean = tape->mean + t * tape->B,
                                   .rstd = tape->rstd + t * tape->B,
                                   .w = tg_vit_param(vit, vit->norm_w),
                                   .dres = tape->dres_q + t * C,
                                   .dres_zero = true,
                                   .dw = tg_vit_grad(args->grads, vit->norm_w),
                                   .db = tg_vit_grad(args->grads, vit->norm_b),
                                   .branch = (const char *)vit->blocks[l].branch2 + t * C * element,
                                   .ls = tg_vit_param(vit, vit->offsets[l].ls2),
                                   .sample_scale = tg_vit_sample_scale(tape, l, 1),
                                   .out_dbranch = (char *)tape->branch + t * C * element,
                                   .dls = tg_vit_grad(args->grads, vit->offsets[l].ls2),
                                   .accumulate = args->accumulate || t > 0};
    vit->kern->norm.backward(vit->stream, &norm);
}

static void norm_average_backward(tg_vit *vit, const void *dy, const tg_vit_backward_args *args)
{
    tg_vit_tape *tape = &vit->tape;
    const size_t l = vit->config.depth - 1, C = vit->config.embed_dim;
    const tg_norm_backward norm = {.R = tape->B,
                                   .C = C,
                                   .rows_per_sample = 1,
                                   .dtype = vit->dtype,
                                   .ldx = C,
                                   .ldb = C,
                                   .ldy = C,
                                   .dy = dy,
                                   .x = tape->pooled,
                                   .mean = tape->mean,
                                   .rstd = tape->rstd,
                                   .w = tg_vit_param(vit, vit->norm_w),
                                   .dres = tape->dpooled,
                                   .dres_zero = true,
                                   .dw = tg_vit_grad(args->grads, vit->norm_w),
                                   .db = tg_vit_grad(args->grads, vit->norm_b),
                                   .accumulate = args->accumulate};
    vit->kern->norm.backward(vit->stream, &norm);
    vit->kern->tokens.mean_backward(vit->stream, tape->B, tape->T, C,
                                    tg_vit_prefix_tokens(&vit->config), tape->dpooled, tape->dres,
                                    true);
    const tg_norm_backward branch = {.R = tape->R,
                                     .C = C,
                                     .rows_per_sample = tape->T,
                                     .dtype = vit->dtype,
                                     .ldx = C,
                                     .ldb = C,
                                     .ldy = C,
                                     .dres = tape->dres,
                                     .branch = vit->blocks[l].branch2,
                                     .ls = tg_vit_param(vit, vit->offsets[l].ls2),
                                     .sample_scale = tg_vit_sample_scale(tape, l, 1),
                                     .out_dbranch = tape->branch,
                                     .dls = tg_vit_grad(args->grads, vit->offsets[l].ls2),
                                     .accumulate = args->accumulate};
    vit->kern->norm.backward(vit->stream, &branch);
}

/* Heads, pooling and final norm. */
static tg_status top_backward(tg_vit *vit, const tg_vit_backward_args *args)
{
    tg_vit_tape *tape = &vit->tape;
    const struct {
        tg_weight *weight;
        const float *dlogits;
        size_t w, b;
    } heads[2] = {{vit->head, args->dlogits, vit->head_w, vit->head_b},
                  {vit->head_dist, args->dlogits_dist, vit->head_dist_w, vit->head_dist_b}};
    for (size_t t = 0; t < tg_vit_head_tokens(&vit->config); t++) {
        TG_TRY(head_backward(vit, heads[t].weight, heads[t].dlogits, tape->y_final[t],
                             tg_vit_grad(args->grads, heads[t].w),
                             tg_vit_grad(args->grads, heads[t].b), args->accumulate, tape->dy));
        if (t == 0 && args->dfeature)
            add_feature_gradient(vit, args->dfeature, tape->dy);
        if (vit->config.pool == TG_POOL_TOKEN)
            norm_tokens_backward(vit, t, tape->dy, args);
        else
            norm_average_backward(vit, tape->dy, args);
    }
    return TG_OK;
}

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

/* dspan -> dres, branch_mid; y_mid again */
static void norm2_backward(tg_vit *vit, size_t l, size_t T_q, float *dres, const tg_vit_span *span,
                           const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[l];
    const tg_block_offsets *at = &vit->offsets[l];
    const size_t C = vit->config.embed_dim, first = span->first * C;
    const tg_norm_backward norm = {.R = span->rows,
                                   .C = C,
                                   .row0 = span->first,
                                   .rows_per_sample = T_q,
                                   .dtype = vit->dtype,
                                   .ldx = C,
                                   .ldb = C,
                                   .ldy = C,
                                   .dy = dspan_of(vit, span),
                                   .x = block->x_mid + first,
                                   .mean = block->mean2 + span->first,
                                   .rstd = block->rstd2 + span->first,
                                   .w = tg_vit_param(vit, at->norm2_w),
                                   .b = tg_vit_param(vit, at->norm2_b),
                                   .dres = dres + first,
                                   .dw = tg_vit_grad(args->grads, at->norm2_w),
                                   .db = tg_vit_grad(args->grads, at->norm2_b),
                                   .branch = tg_vit_row(vit, block->branch1, span->first, C),
                                   .ls = tg_vit_param(vit, at->ls1),
                                   .sample_scale = tg_vit_sample_scale(tape, l, 0),
                                   .out_dbranch = tg_vit_row(vit, tape->branch_mid, span->first, C),
                                   .out_y = tg_vit_row(vit, tape->y_mid, span->first, C),
                                   .dls = tg_vit_grad(args->grads, at->ls1),
                                   .out_sums = sums_of(vit, tape->norm2_sums, span)};
    vit->kern->norm.backward(span->stream, &norm);
}

/* branch -> dres, branch_mid -> dy, the gradient of o, of the rows of a span; T_q rows a sample. */
static tg_status after_attention_backward(tg_vit *vit, size_t l, size_t T_q, float *dres,
                                          const tg_vit_span *span, const tg_vit_backward_args *args)
{
    const tg_vit_tape *tape = &vit->tape;
    const size_t C = vit->config.embed_dim;
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
    tg_norm_backward norm = {.R = span->rows,
                             .C = C,
                             .row0 = span->first,
                             .rows_per_sample = tape->T,
                             .dtype = vit->dtype,
                             .ldx = C,
                             .ldb = C,
                             .ldy = C,
                             .dy = dspan_of(vit, span),
                             .x = block->x_in + first,
                             .mean = block->mean1 + span->first,
                             .rstd = block->rstd1 + span->first,
                             .w = tg_vit_param(vit, at->norm1_w),
                             .b = tg_vit_param(vit, at->norm1_b),
                             .dres = tape->dres + first,
                             .dw = tg_vit_grad(args->grads, at->norm1_w),
                             .db = tg_vit_grad(args->grads, at->norm1_b),
                             .out_y = tg_vit_row(vit, tape->y, span->first, C),
                             .out_sums = sums_of(vit, tape->norm1_sums, span)};
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

static void report(const tg_vit_backward_args *args, size_t begin, size_t end)
{
    if (args->ready && end > begin)
        args->ready(args->ready_user, begin, end - begin);
}

/* All blocks from the last down. */
static tg_status blocks_backward(tg_vit *vit, const tg_vit_backward_args *args)
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
        report(args, vit->offsets[l].begin, vit->offsets[l].end);
        if (l > 0)
            TG_TRY(after_attention_weights(vit, l - 1, tape->R, args));
    }
    return TG_OK;
}

/* dprefix rows to the tokens they are made of, and to the positions that were added. */
static void prefix_backward(tg_vit *vit, const tg_vit_backward_args *args)
{
    const tg_vit_config *c = &vit->config;
    const size_t C = c->embed_dim, positions = tg_vit_pos_rows(c) - tg_vit_patches(c);
    const struct {
        size_t offset, row, rows;
    } parts[] = {{vit->pos, 0, positions},
                 {vit->cls, 0, c->class_token},
                 {vit->dist, c->class_token, c->dist_token},
                 {vit->reg, (size_t)c->class_token + c->dist_token, c->reg_tokens}};
    for (int i = 0; i < 4; i++) {
        if (!parts[i].rows)
            continue;
        const float *from = vit->tape.dprefix + parts[i].row * C;
        float *to = args->grads + parts[i].offset;
        if (args->accumulate)
            tg_vit_add(vit, parts[i].rows, from, to);
        else
            tg_stream_copy(vit->stream, to, from, parts[i].rows * C * sizeof(float));
    }
}

static tg_status embed_backward(tg_vit *vit, const tg_vit_backward_args *args)
{
    const tg_vit_config *c = &vit->config;
    tg_vit_tape *tape = &vit->tape;
    const size_t C = c->embed_dim, pos_prefix = (tg_vit_pos_rows(c) - tape->N) * C;
    const tg_tokens_shape tokens = {tape->B, tape->N, C, tg_vit_prefix_tokens(c), vit->dtype};
    float *dpos = args->grads + vit->pos + pos_prefix;
    tg_stream_zero(vit->stream, tape->dprefix, tokens.prefix_count * C * sizeof(float));
    vit->kern->tokens.assemble_backward(vit->stream, &tokens, tape->dres, tape->branch,
                                        tape->dprefix, dpos, args->accumulate);
    prefix_backward(vit, args);
    return vit->kern->linear.backward_weight(
        vit->stream, vit->patch, tape->B * tape->N, tape->patches, tape->branch,
        tg_vit_grad(args->grads, vit->patch_w), tg_vit_grad(args->grads, vit->patch_b),
        args->accumulate);
}

tg_status tg_vit_backward(tg_vit *vit, tg_arena *step, const tg_vit_backward_args *args)
{
    (void)step; /* forward laid out what backward needs */
    assert(vit->trainable && vit->tape.mode == TG_VIT_TRAIN);
    TG_TRY(top_backward(vit, args));
    report(args, vit->norm_w, vit->table.elements);
    TG_TRY(blocks_backward(vit, args));
    TG_TRY(embed_backward(vit, args));
    report(args, 0, vit->offsets[0].begin);
    return TG_OK;
}
