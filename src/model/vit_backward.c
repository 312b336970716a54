/* The stages of vit_forward.c in reverse: heads and final norm, blocks (vit_blocks_backward.c), embedding. The
 * gradient of the residual stream travels in tape->dres (fp32); `branch` and `branch_mid` hold the gradients
 * of the feed-forward and attention branches. */
#include "model/vit_state.h"

#include "trace/trace.h"

#include <assert.h>

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
    tg_trace_set_layer(TG_TRACE_NO_LAYER);
    TG_TRY(top_backward(vit, args));
    tg_vit_report(args, vit->norm_w, vit->table.elements);
    TG_TRY(tg_vit_blocks_backward(vit, args));
    tg_trace_set_layer(TG_TRACE_NO_LAYER);
    TG_TRY(embed_backward(vit, args));
    tg_vit_report(args, 0, vit->offsets[0].begin);
    return TG_OK;
}
