#include "model/vit_state.h"

#include "base/checked.h"

#include <stdlib.h>

/* The last block's rows that anyone reads: class-token pooling needs only the head tokens. */
static size_t needed_tokens(const tg_vit_config *config)
{
    return config->pool == TG_POOL_TOKEN ? tg_vit_head_tokens(config) : tg_vit_tokens(config);
}

/* An arena, and whether everything fitted so far. */
typedef struct placer {
    tg_arena *arena;
    bool fits;
} placer;

static void *take(placer *place, size_t count, size_t element)
{
    size_t bytes;
    void *block = NULL;
    if (tg_mul_size(count, element, &bytes))
        block = tg_arena_alloc(place->arena, bytes);
    if (!block)
        place->fits = false;
    return block;
}

static void layout_block(const tg_vit_config *config, const tg_vit_tape *tape, tg_dtype dtype,
                         bool last, placer *place, tg_block_tape *block)
{
    const size_t element = tg_dtype_bytes(dtype);
    const size_t C = config->embed_dim, F = config->mlp_hidden, R = tape->R;
    const size_t rows = last ? tape->R_q : R, T_q = last ? tape->T_q : tape->T;
    block->x_in = take(place, R * C, 4);
    block->mean1 = take(place, R, 4);
    block->rstd1 = take(place, R, 4);
    block->qkv = take(place, R * 3 * C, element);
    block->o = take(place, rows * C, element);
    block->lse = take(place, tape->B * config->num_heads * T_q, 4);
    block->x_mid = take(place, rows * C, 4);
    block->mean2 = take(place, rows, 4);
    block->rstd2 = take(place, rows, 4);
    block->h = take(place, tg_mlp_kept_bytes(rows, F, dtype), 1);
    block->branch1 = config->layer_scale ? take(place, rows * C, element) : tape->branch;
    block->branch2 = config->layer_scale ? take(place, rows * C, element) : tape->branch;
}

static void layout_train(const tg_vit_config *config, tg_dtype dtype, placer *place,
                         tg_vit_tape *tape, tg_block_tape *blocks)
{
    for (size_t l = 0; l < config->depth; l++)
        layout_block(config, tape, dtype, l + 1 == config->depth, place, &blocks[l]);
    tape->x_out = take(place, tape->R_q * config->embed_dim, 4);
}

/* Inference keeps nothing: one set of buffers, the residual stream updated in place. */
static void layout_infer(const tg_vit_config *config, size_t element, placer *place,
                         tg_vit_tape *tape, tg_block_tape *blocks)
{
    const size_t C = config->embed_dim, R = tape->R;
    tg_block_tape shared = {.branch1 = tape->branch, .branch2 = tape->branch};
    shared.x_in = shared.x_mid = take(place, R * C, 4);
    shared.qkv = take(place, R * 3 * C, element);
    shared.o = take(place, R * C, element);
    for (size_t l = 0; l < config->depth; l++)
        blocks[l] = shared;
    if (tape->x_gathered)
        blocks[config->depth - 1].x_mid = tape->x_gathered;
    tape->x_out = blocks[config->depth - 1].x_mid;
}

static void layout_backward(const tg_vit_config *config, tg_dtype dtype, placer *place,
                            tg_vit_tape *tape)
{
    const size_t C = config->embed_dim, R = tape->R, element = tg_dtype_bytes(dtype);
    const size_t hidden = tg_mlp_gradient_bytes(R, config->mlp_hidden, dtype);
    tape->dres = take(place, R * C, 4);
    tape->dres_q = tape->T_q < tape->T ? take(place, tape->R_q * C, 4) : tape->dres;
    tape->y_mid = take(place, R * C, element);
    tape->branch_mid = take(place, R * C, element);
    tape->dspan = take(place, R * C, element);
    tape->dy = take(place, R * C, element);
    tape->g = take(place, hidden, 1);
    tape->dh = take(place, hidden, 1);
    tape->dqkv = take(place, R * 3 * C, element);
    const size_t chunks = (R + TG_NORM_CHUNK - 1) / TG_NORM_CHUNK;
    tape->norm1_sums = take(place, chunks * 3 * C, 4);
    tape->norm2_sums = take(place, chunks * 3 * C, 4);
    tape->dpooled = take(place, tape->B * C, 4);
    tape->dfeature = take(place, tape->B * C, 4);
    tape->dlogits = take(place, tape->B * config->num_classes, element);
    tape->dprefix = take(place, (tg_vit_prefix_tokens(config) + 1) * C, 4);
}

static void layout_ends(const tg_vit_config *config, size_t element, placer *place,
                        tg_vit_tape *tape)
{
    const size_t B = tape->B, C = config->embed_dim, K = config->num_classes;
    tape->patches = take(place, B * tape->N * 3 * config->patch * config->patch, element);
    tape->pooled = config->pool == TG_POOL_AVG ? take(place, B * C, 4) : NULL;
    tape->mean = take(place, 2 * B, 4);
    tape->rstd = take(place, 2 * B, 4);
    for (size_t t = 0; t < tg_vit_head_tokens(config); t++)
        tape->y_final[t] = take(place, B * C, element);
    tape->feature = take(place, B * C, 4);
    tape->logits = K ? take(place, B * K, 4) : NULL;
    tape->logits_dist = K && config->dist_token ? take(place, B * K, 4) : NULL;
    tape->y = take(place, tape->R * C, element);
    tape->branch = take(place, tape->R * C, element);
    tape->x_gathered = tape->T_q < tape->T ? take(place, tape->R_q * C, 4) : NULL;
}

/* Whether rows times their widest width, of all images and as bytes, can be counted: the products
 * below then cannot wrap. */
static bool countable(const tg_vit_config *config, size_t B)
{
    size_t widest = 3 * config->embed_dim, patch = 3 * config->patch * config->patch, n;
    const size_t others[] = {config->mlp_hidden, config->num_classes, patch, config->num_heads,
                             2 * config->depth};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        widest = others[i] > widest ? others[i] : widest;
    return tg_mul_size(B, tg_vit_tokens(config), &n) && tg_mul_size(n, widest, &n) &&
           tg_mul_size(n, 16, &n);
}

bool tg_vit_layout(const tg_vit_config *config, size_t B, tg_dtype dtype, tg_vit_mode mode,
                   tg_arena *arena, tg_vit_tape *out_tape, tg_block_tape *out_blocks)
{
    if (!countable(config, B))
        return false;
    placer place = {arena, true};
    size_t element = tg_dtype_bytes(dtype);
    tg_vit_tape tape = {.B = B,
                        .T = tg_vit_tokens(config),
                        .N = tg_vit_patches(config),
                        .T_q = needed_tokens(config),
                        .mode = mode};
    tape.R = B * tape.T;
    tape.R_q = B * tape.T_q;
    if (mode == TG_VIT_TRAIN && config->drop_path > 0)
        tape.sample_scale = take(&place, 2 * config->depth * B, 4);
    layout_ends(config, element, &place, &tape);
    if (mode == TG_VIT_TRAIN) {
        layout_train(config, dtype, &place, &tape, out_blocks);
        layout_backward(config, dtype, &place, &tape);
    } else {
        layout_infer(config, element, &place, &tape, out_blocks);
    }
    *out_tape = tape;
    return place.fits;
}

size_t tg_vit_step_bytes(const tg_vit_config *config, size_t B, tg_dtype dtype, tg_vit_mode mode)
{
    /* a counting arena: its addresses are never followed */
    tg_arena counting = {.base = (unsigned char *)TG_ALIGN, .size = (size_t)-1 / 4};
    tg_vit_tape tape;
    tg_block_tape *blocks = calloc(config->depth, sizeof *blocks);
    if (!blocks)
        return (size_t)-1;
    bool fits = tg_vit_layout(config, B, dtype, mode, &counting, &tape, blocks);
    free(blocks);
    return fits ? counting.used : (size_t)-1;
}
