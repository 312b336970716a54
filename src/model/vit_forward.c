/* One function per stage, in the order in which a batch of photos passes through them. */
#include "model/vit_state.h"

#include "base/rng.h"
#include "trace/trace.h"

#include <math.h>

/* Keep masks of stochastic depth: per sample and branch, 0 or 1/keep, the rate rising linearly from
 * 0 at the first block to drop_path at the last. */
static void draw_sample_scales(const tg_vit_config *config, const tg_vit_input *input, float *scale)
{
    for (size_t b = 0; b < input->B; b++) {
        tg_rng rng =
            tg_rng_init(input->seed, input->epoch, input->sample_index[b], TG_RNG_DROP_PATH);
        for (size_t l = 0; l < config->depth; l++) {
            float rate = config->depth > 1
                             ? config->drop_path * (float)l / (float)(config->depth - 1)
                             : config->drop_path;
            for (size_t branch = 0; branch < 2; branch++) {
                double u = tg_rng_uniform(&rng);
                scale[(2 * l + branch) * input->B + b] = u < rate ? 0.0f : 1.0f / (1.0f - rate);
            }
        }
    }
}

/* image [B,3,S,S] -> patches -> tokens [B,T,C] */
static tg_status embed(tg_vit *vit, const tg_vit_input *input, float *out_x)
{
    const tg_vit_config *c = &vit->config;
    tg_vit_tape *tape = &vit->tape;
    const tg_patch_shape patch = {tape->B, c->img_h, c->img_w, c->patch, vit->dtype};
    const tg_tokens_shape tokens = {tape->B, tape->N, c->embed_dim, tg_vit_prefix_tokens(c),
                                    vit->dtype};
    size_t pos_prefix = (tg_vit_pos_rows(c) - tape->N) * c->embed_dim;
    vit->kern->patch.forward(vit->stream, &patch, input->image, tape->patches);
    TG_TRY(vit->kern->linear.forward(vit->stream, vit->patch, tape->B * tape->N, tape->patches,
                                     tg_vit_param(vit, vit->patch_b), tape->branch, vit->dtype));
    vit->kern->tokens.assemble(vit->stream, &tokens, tape->branch, vit->prefix,
                               vit->params + vit->pos + pos_prefix, out_x);
    return TG_OK;
}

/* A branch of one span: kept for every row where LayerScale needs it, else scratch. */
static void *branch_of(const tg_vit *vit, void *branch, const tg_vit_span *span)
{
    const bool kept = vit->config.layer_scale && vit->tape.mode == TG_VIT_TRAIN;
    return tg_vit_row(vit, branch, kept ? span->first : span->scratch, vit->config.embed_dim);
}

/* What the norms of a span write and its products read. */
static void *y_of(const tg_vit *vit, const tg_vit_span *span)
{
    return tg_vit_row(vit, vit->tape.y, span->scratch, vit->config.embed_dim);
}

/* Adds the feed-forward branch of the block before (if any) and normalises: y = norm1(x). */
static void norm1(tg_vit *vit, size_t l, const tg_vit_span *span)
{
    tg_vit_tape *tape = &vit->tape;
    tg_block_tape *block = &vit->blocks[l];
    const tg_block_offsets *at = &vit->offsets[l];
    const size_t C = vit->config.embed_dim, first = span->first * C;
    tg_norm_forward args = {.R = span->rows,
                            .C = C,
                            .row0 = span->first,
                            .rows_per_sample = tape->T,
                            .dtype = vit->dtype,
                            .ldx = C,
                            .ldb = C,
                            .ldy = C,
                            .eps = vit->config.norm_eps,
                            .x = block->x_in + first,
                            .w = tg_vit_param(vit, at->norm1_w),
                            .b = tg_vit_param(vit, at->norm1_b),
                            .out_y = y_of(vit, span),
                            .out_mean = block->mean1 ? block->mean1 + span->first : NULL,
                            .out_rstd = block->rstd1 ? block->rstd1 + span->first : NULL};
    if (l > 0) {
        args.x = vit->blocks[l - 1].x_mid + first;
        args.branch = branch_of(vit, vit->blocks[l - 1].branch2, span);
        args.ls = tg_vit_param(vit, vit->offsets[l - 1].ls2);
        args.sample_scale = tg_vit_sample_scale(tape, l - 1, 1);
        args.out_x = block->x_in + first;
    }
    vit->kern->norm.forward(span->stream, &args);
}

/* x -> y -> q,k,v of the rows of a span */
static tg_status before_attention(tg_vit *vit, size_t l, const tg_vit_span *span)
{
    tg_trace_set_layer((int)l);
    norm1(vit, l, span);
    void *qkv = tg_vit_row(vit, vit->blocks[l].qkv, span->first, 3 * vit->config.embed_dim);
    return vit->kern->linear.forward(span->stream, vit->weights[l].qkv, span->rows, y_of(vit, span),
                                     tg_vit_param(vit, vit->offsets[l].qkv_b), qkv, vit->dtype);
}

/* q,k,v -> o, for all rows or (last block) only the rows that are used. */
static tg_status attention(tg_vit *vit, size_t l)
{
    const tg_vit_config *c = &vit->config;
    const tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[l];
    const size_t D = c->embed_dim / c->num_heads;
    const tg_attention_shape shape = {.B = tape->B,
                                      .T = tape->T,
                                      .H = c->num_heads,
                                      .D = D,
                                      .T_q = l + 1 == c->depth ? tape->T_q : tape->T,
                                      .scale = 1.0f / sqrtf((float)D),
                                      .dtype = vit->dtype};
    tg_trace_set_layer((int)l);
    return vit->kern->attention.forward(vit->stream, &shape, block->qkv, block->o, block->lse);
}

/* The first T_q rows of each sample, packed. */
static void gather_rows(tg_vit *vit, const float *x, float *out)
{
    const tg_vit_tape *tape = &vit->tape;
    const size_t C = vit->config.embed_dim;
    for (size_t b = 0; b < tape->B; b++)
        tg_stream_copy(vit->stream, out + b * tape->T_q * C, x + b * tape->T * C,
                       tape->T_q * C * sizeof *x);
}

/* x_mid = x_in + branch1; y = norm2(x_mid). `x` is the residual stream that o's rows belong to. */
static void norm2(tg_vit *vit, size_t l, size_t T_q, const float *x, const tg_vit_span *span)
{
    tg_vit_tape *tape = &vit->tape;
    tg_block_tape *block = &vit->blocks[l];
    const tg_block_offsets *at = &vit->offsets[l];
    const size_t C = vit->config.embed_dim, first = span->first * C;
    const tg_norm_forward args = {.R = span->rows,
                                  .C = C,
                                  .row0 = span->first,
                                  .rows_per_sample = T_q,
                                  .dtype = vit->dtype,
                                  .ldx = C,
                                  .ldb = C,
                                  .ldy = C,
                                  .eps = vit->config.norm_eps,
                                  .x = x + first,
                                  .branch = branch_of(vit, block->branch1, span),
                                  .ls = tg_vit_param(vit, at->ls1),
                                  .sample_scale = tg_vit_sample_scale(tape, l, 0),
                                  .w = tg_vit_param(vit, at->norm2_w),
                                  .b = tg_vit_param(vit, at->norm2_b),
                                  .out_x = block->x_mid + first,
                                  .out_y = y_of(vit, span),
                                  .out_mean = block->mean2 ? block->mean2 + span->first : NULL,
                                  .out_rstd = block->rstd2 ? block->rstd2 + span->first : NULL};
    vit->kern->norm.forward(span->stream, &args);
}

/* y -> branch2 */
static tg_status feed_forward(tg_vit *vit, size_t l, const tg_vit_span *span)
{
    const tg_block_offsets *at = &vit->offsets[l];
    const tg_block_tape *block = &vit->blocks[l];
    const tg_mlp_forward args = {.R = span->rows,
                                 .row0 = span->first,
                                 .gelu = vit->config.gelu,
                                 .x = y_of(vit, span),
                                 .b1 = tg_vit_param(vit, at->fc1_b),
                                 .b2 = tg_vit_param(vit, at->fc2_b),
                                 .out_h = block->h,
                                 .out_y = branch_of(vit, block->branch2, span)};
    return vit->kern->mlp.forward(span->stream, vit->weights[l].fc1, vit->weights[l].fc2, &args);
}

/* o -> branch1 -> x_mid, y -> branch2 of the rows of a span; T_q rows a sample. */
static tg_status after_attention(tg_vit *vit, size_t l, size_t T_q, const float *x,
                                 const tg_vit_span *span)
{
    const tg_block_tape *block = &vit->blocks[l];
    tg_trace_set_layer((int)l);
    TG_TRY(vit->kern->linear.forward(span->stream, vit->weights[l].proj, span->rows,
                                     tg_vit_row(vit, block->o, span->first, vit->config.embed_dim),
                                     tg_vit_param(vit, vit->offsets[l].proj_b),
                                     branch_of(vit, block->branch1, span), vit->dtype));
    norm2(vit, l, T_q, x, span);
    return feed_forward(vit, l, span);
}

/* Between one attention and the next: the end of block l - 1 (if any) and the beginning of block l. */
static tg_status between_attentions(tg_vit *vit, const tg_vit_span *span, void *user)
{
    const size_t l = *(const size_t *)user;
    if (l > 0)
        TG_TRY(after_attention(vit, l - 1, vit->tape.T, vit->blocks[l - 1].x_in, span));
    return before_attention(vit, l, span);
}

/* Has the caller bring parameters [begin, end), which the next stages use. */
static tg_status need(const tg_vit_input *input, size_t begin, size_t end)
{
    return input->needed ? input->needed(input->needed_user, begin, end - begin) : TG_OK;
}

/* All blocks up to the last attention, then what follows it. */
static tg_status blocks(tg_vit *vit, const tg_vit_input *input)
{
    const tg_vit_tape *tape = &vit->tape;
    const size_t last = vit->config.depth - 1;
    for (size_t l = 0; l <= last; l++) {
        TG_TRY(need(input, vit->offsets[l].begin, vit->offsets[l].end));
        TG_TRY(tg_vit_row_wise(vit, tape->R, between_attentions, &l));
        TG_TRY(attention(vit, l));
    }
    const float *x = vit->blocks[last].x_in;
    if (tape->T_q < tape->T) {
        gather_rows(vit, x, tape->x_gathered);
        x = tape->x_gathered;
    }
    const tg_vit_span all = {.stream = vit->stream, .rows = tape->R_q};
    return after_attention(vit, last, tape->T_q, x, &all);
}

/* Final norm of the head tokens: x_out = x_mid + branch2, y_final[t] = norm(x_out of token t). */
static void norm_tokens(tg_vit *vit)
{
    tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[vit->config.depth - 1];
    const size_t l = vit->config.depth - 1, C = vit->config.embed_dim, ld = tape->T_q * C;
    for (size_t t = 0; t < tg_vit_head_tokens(&vit->config); t++) {
        const tg_norm_forward args = {.R = tape->B,
                                      .C = C,
                                      .rows_per_sample = 1,
                                      .dtype = vit->dtype,
                                      .ldx = ld,
                                      .ldb = ld,
                                      .ldy = C,
                                      .eps = vit->config.norm_eps,
                                      .x = block->x_mid + t * C,
                                      .branch = (const char *)block->branch2 +
                                                t * C * tg_dtype_bytes(vit->dtype),
                                      .ls = tg_vit_param(vit, vit->offsets[l].ls2),
                                      .sample_scale = tg_vit_sample_scale(tape, l, 1),
                                      .w = tg_vit_param(vit, vit->norm_w),
                                      .b = tg_vit_param(vit, vit->norm_b),
                                      .out_x = tape->x_out + t * C,
                                      .out_y = tape->y_final[t],
                                      .out_mean = tape->mean + t * tape->B,
                                      .out_rstd = tape->rstd + t * tape->B};
        vit->kern->norm.forward(vit->stream, &args);
    }
}

/* Average pooling: x_out = x_mid + branch2, mean of patch tokens, then fc_norm. */
static void norm_average(tg_vit *vit)
{
    tg_vit_tape *tape = &vit->tape;
    const tg_block_tape *block = &vit->blocks[vit->config.depth - 1];
    const size_t l = vit->config.depth - 1, C = vit->config.embed_dim;
    const tg_norm_forward residual = {.R = tape->R,
                                      .C = C,
                                      .rows_per_sample = tape->T,
                                      .dtype = vit->dtype,
                                      .ldx = C,
                                      .ldb = C,
                                      .ldy = C,
                                      .x = block->x_mid,
                                      .branch = block->branch2,
                                      .ls = tg_vit_param(vit, vit->offsets[l].ls2),
                                      .sample_scale = tg_vit_sample_scale(tape, l, 1),
                                      .out_x = tape->x_out};
    vit->kern->norm.forward(vit->stream, &residual);
    vit->kern->tokens.mean(vit->stream, tape->B, tape->T, C, tg_vit_prefix_tokens(&vit->config),
                           tape->x_out, tape->pooled);
    const tg_norm_forward args = {.R = tape->B,
                                  .C = C,
                                  .rows_per_sample = 1,
                                  .dtype = vit->dtype,
                                  .ldx = C,
                                  .ldb = C,
                                  .ldy = C,
                                  .eps = vit->config.norm_eps,
                                  .x = tape->pooled,
                                  .w = tg_vit_param(vit, vit->norm_w),
                                  .b = tg_vit_param(vit, vit->norm_b),
                                  .out_y = tape->y_final[0],
                                  .out_mean = tape->mean,
                                  .out_rstd = tape->rstd};
    vit->kern->norm.forward(vit->stream, &args);
}

/* Features to logits; inference averages the two heads of a distilled model. */
static tg_status heads(tg_vit *vit)
{
    tg_vit_tape *tape = &vit->tape;
    const size_t B = tape->B, K = vit->config.num_classes;
    vit->kern->tokens.to_f32(vit->stream, B * vit->config.embed_dim, tape->y_final[0], vit->dtype,
                             tape->feature);
    if (vit->head)
        TG_TRY(vit->kern->linear.forward(vit->stream, vit->head, B, tape->y_final[0],
                                         tg_vit_param(vit, vit->head_b), tape->logits, TG_F32));
    if (vit->head_dist)
        TG_TRY(vit->kern->linear.forward(vit->stream, vit->head_dist, B, tape->y_final[1],
                                         tg_vit_param(vit, vit->head_dist_b), tape->logits_dist,
                                         TG_F32));
    if (vit->head_dist && tape->mode == TG_VIT_INFER)
        vit->kern->optim.average(vit->stream, B * K, tape->logits, tape->logits_dist, 0.5f);
    return TG_OK;
}

tg_status tg_vit_forward(tg_vit *vit, tg_arena *step, const tg_vit_input *input, tg_vit_mode mode,
                         tg_vit_output *out)
{
    if (!tg_vit_layout(&vit->config, input->B, vit->dtype, mode, step, &vit->tape, vit->blocks))
        return tg_fail(TG_ERROR_MACHINE,
                       "model %s: a step of %zu images needs %.1f MiB, the arena has %.1f MiB",
                       vit->config.architecture, input->B,
                       (double)tg_vit_step_bytes(&vit->config, input->B, vit->dtype, mode) /
                           1048576,
                       (double)step->size / 1048576);
    tg_vit_tape *tape = &vit->tape;
    if (tape->sample_scale)
        draw_sample_scales(&vit->config, input, tape->sample_scale);
    tg_trace_set_layer(TG_TRACE_NO_LAYER);
    TG_TRY(need(input, 0, vit->offsets[0].begin));
    TG_TRY(embed(vit, input, vit->blocks[0].x_in));
    TG_TRY(blocks(vit, input));
    tg_trace_set_layer(TG_TRACE_NO_LAYER);
    TG_TRY(need(input, vit->norm_w, vit->table.elements));
    if (vit->config.pool == TG_POOL_TOKEN)
        norm_tokens(vit);
    else
        norm_average(vit);
    TG_TRY(heads(vit));
    *out = (tg_vit_output){.logits = tape->logits,
                           .logits_dist = mode == TG_VIT_TRAIN ? tape->logits_dist : NULL,
                           .feature = tape->feature};
    return TG_OK;
}
