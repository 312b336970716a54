#include "model/vit_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static size_t offset_of(const tg_param_table *table, const char *name)
{
    const tg_param *p = tg_param_find(table, name);
    return p ? p->offset : TG_ABSENT;
}

static size_t block_offset(const tg_param_table *table, size_t block, const char *suffix)
{
    char name[TG_PARAM_NAME_BYTES];
    snprintf(name, sizeof name, "blocks.%zu.%s", block, suffix);
    return offset_of(table, name);
}

static void find_block(const tg_param_table *table, size_t l, tg_block_offsets *out)
{
    *out = (tg_block_offsets){
        .norm1_w = block_offset(table, l, "norm1.weight"),
        .norm1_b = block_offset(table, l, "norm1.bias"),
        .qkv_w = block_offset(table, l, "attn.qkv.weight"),
        .qkv_b = block_offset(table, l, "attn.qkv.bias"),
        .proj_w = block_offset(table, l, "attn.proj.weight"),
        .proj_b = block_offset(table, l, "attn.proj.bias"),
        .ls1 = block_offset(table, l, "ls1.gamma"),
        .norm2_w = block_offset(table, l, "norm2.weight"),
        .norm2_b = block_offset(table, l, "norm2.bias"),
        .fc1_w = block_offset(table, l, "mlp.fc1.weight"),
        .fc1_b = block_offset(table, l, "mlp.fc1.bias"),
        .fc2_w = block_offset(table, l, "mlp.fc2.weight"),
        .fc2_b = block_offset(table, l, "mlp.fc2.bias"),
        .ls2 = block_offset(table, l, "ls2.gamma"),
    };
    out->begin = out->norm1_w;
}

static void find_offsets(tg_vit *vit)
{
    const tg_param_table *t = &vit->table;
    const char *norm = vit->config.pool == TG_POOL_AVG ? "fc_norm" : "norm";
    char name[TG_PARAM_NAME_BYTES];
    vit->cls = offset_of(t, "cls_token");
    vit->dist = offset_of(t, "dist_token");
    vit->reg = offset_of(t, "reg_token");
    vit->pos = offset_of(t, "pos_embed");
    vit->patch_w = offset_of(t, "patch_embed.proj.weight");
    vit->patch_b = offset_of(t, "patch_embed.proj.bias");
    snprintf(name, sizeof name, "%s.weight", norm);
    vit->norm_w = offset_of(t, name);
    snprintf(name, sizeof name, "%s.bias", norm);
    vit->norm_b = offset_of(t, name);
    vit->head_w = offset_of(t, "head.weight");
    vit->head_b = offset_of(t, "head.bias");
    vit->head_dist_w = offset_of(t, "head_dist.weight");
    vit->head_dist_b = offset_of(t, "head_dist.bias");
    for (size_t l = 0; l < vit->config.depth; l++)
        find_block(t, l, &vit->offsets[l]);
    for (size_t l = 0; l < vit->config.depth; l++)
        vit->offsets[l].end = l + 1 < vit->config.depth ? vit->offsets[l + 1].begin : vit->norm_w;
}

static tg_status new_weight(tg_vit *vit, size_t out, size_t in, tg_weight **out_weight)
{
    return vit->kern->linear.weight_new(vit->stream, out, in, vit->dtype, vit->trainable,
                                        out_weight);
}

static tg_status new_weights(tg_vit *vit)
{
    const tg_vit_config *c = &vit->config;
    const size_t C = c->embed_dim;
    TG_TRY(new_weight(vit, C, 3 * c->patch * c->patch, &vit->patch));
    for (size_t l = 0; l < c->depth; l++) {
        tg_block_weights *w = &vit->weights[l];
        TG_TRY(new_weight(vit, 3 * C, C, &w->qkv));
        TG_TRY(new_weight(vit, C, C, &w->proj));
        TG_TRY(new_weight(vit, c->mlp_hidden, C, &w->fc1));
        TG_TRY(new_weight(vit, C, c->mlp_hidden, &w->fc2));
    }
    if (c->num_classes)
        TG_TRY(new_weight(vit, c->num_classes, C, &vit->head));
    if (c->num_classes && c->dist_token)
        TG_TRY(new_weight(vit, c->num_classes, C, &vit->head_dist));
    return TG_OK;
}

static tg_status allocate(tg_vit *vit)
{
    const tg_vit_config *c = &vit->config;
    vit->weights = calloc(c->depth, sizeof *vit->weights);
    vit->offsets = calloc(c->depth, sizeof *vit->offsets);
    vit->blocks = calloc(c->depth, sizeof *vit->blocks);
    vit->prefix = aligned_alloc(
        TG_ALIGN, TG_ARENA_ROUND((tg_vit_prefix_tokens(c) + 1) * c->embed_dim * sizeof(float)));
    if (!vit->weights || !vit->offsets || !vit->blocks || !vit->prefix)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for model %s", c->architecture);
    return TG_OK;
}

tg_status tg_vit_new(const tg_vit_config *config, const tg_kern *kern, tg_stream *stream,
                     tg_dtype dtype, bool trainable, const float *params, tg_vit **out)
{
    TG_TRY(tg_vit_config_check(config));
    tg_vit *vit = calloc(1, sizeof *vit);
    if (!vit)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for model %s", config->architecture);
    vit->config = *config;
    vit->kern = kern;
    vit->stream = stream;
    vit->dtype = dtype;
    vit->trainable = trainable;
    vit->params = params;
    tg_status status;
    TG_TRY_GOTO(tg_vit_params(config, &vit->table), free_vit);
    TG_TRY_GOTO(allocate(vit), free_vit);
    find_offsets(vit);
    TG_TRY_GOTO(new_weights(vit), free_vit);
    *out = vit;
    return TG_OK;
free_vit:
    tg_vit_free(vit);
    return status;
}

void tg_vit_free(tg_vit *vit)
{
    if (!vit)
        return;
    void (*free_weight)(tg_weight *) = vit->kern->linear.weight_free;
    for (size_t l = 0; vit->weights && l < vit->config.depth; l++) {
        free_weight(vit->weights[l].qkv);
        free_weight(vit->weights[l].proj);
        free_weight(vit->weights[l].fc1);
        free_weight(vit->weights[l].fc2);
    }
    free_weight(vit->patch);
    free_weight(vit->head);
    free_weight(vit->head_dist);
    free(vit->weights);
    free(vit->offsets);
    free(vit->blocks);
    free(vit->prefix);
    tg_param_table_done(&vit->table);
    free(vit);
}

const tg_vit_config *tg_vit_get_config(const tg_vit *vit)
{
    return &vit->config;
}

const tg_param_table *tg_vit_get_params(const tg_vit *vit)
{
    return &vit->table;
}

/* Class, distillation and register tokens in order, plus the positions of those that have one. */
static void refresh_prefix(tg_vit *vit)
{
    const tg_vit_config *c = &vit->config;
    const size_t C = c->embed_dim, positions = tg_vit_pos_rows(c) - tg_vit_patches(c);
    const struct {
        size_t offset, rows;
    } parts[] = {{vit->cls, c->class_token}, {vit->dist, c->dist_token}, {vit->reg, c->reg_tokens}};
    size_t row = 0;
    for (int i = 0; i < 3; i++) {
        if (parts[i].rows)
            tg_stream_copy(vit->stream, vit->prefix + row * C, vit->params + parts[i].offset,
                           parts[i].rows * C * sizeof(float));
        row += parts[i].rows;
    }
    assert(positions <= row);
    if (positions)
        tg_vit_add(vit, positions, vit->params + vit->pos, vit->prefix);
}

/* Every tensor lies wholly in [begin, end) or wholly outside. */
static bool cuts_no_tensor(const tg_param_table *table, size_t begin, size_t end)
{
    for (size_t i = 0; i < table->count; i++) {
        const size_t first = table->items[i].offset, last = first + table->items[i].count;
        if (first < end && last > begin && (first < begin || last > end))
            return false;
    }
    return true;
}

/* A weight of the range [begin, end) anew; one outside stays as it is, and so does an absent one. */
static tg_status refresh_weight(tg_vit *vit, tg_weight *weight, size_t at, size_t begin, size_t end)
{
    if (!weight || at < begin || at >= end)
        return TG_OK;
    return vit->kern->linear.weight_refresh(vit->stream, weight, vit->params + at);
}

tg_status tg_vit_refresh_range(tg_vit *vit, size_t offset, size_t count)
{
    const size_t end = offset + count;
    assert(end <= vit->table.elements && cuts_no_tensor(&vit->table, offset, end));
    TG_TRY(refresh_weight(vit, vit->patch, vit->patch_w, offset, end));
    for (size_t l = 0; l < vit->config.depth; l++) {
        const tg_block_weights *w = &vit->weights[l];
        const tg_block_offsets *o = &vit->offsets[l];
        TG_TRY(refresh_weight(vit, w->qkv, o->qkv_w, offset, end));
        TG_TRY(refresh_weight(vit, w->proj, o->proj_w, offset, end));
        TG_TRY(refresh_weight(vit, w->fc1, o->fc1_w, offset, end));
        TG_TRY(refresh_weight(vit, w->fc2, o->fc2_w, offset, end));
    }
    TG_TRY(refresh_weight(vit, vit->head, vit->head_w, offset, end));
    TG_TRY(refresh_weight(vit, vit->head_dist, vit->head_dist_w, offset, end));
    if (count && offset < vit->patch_w) /* tokens and positions lie first */
        refresh_prefix(vit);
    return TG_OK;
}

tg_status tg_vit_refresh(tg_vit *vit)
{
    return tg_vit_refresh_range(vit, 0, vit->table.elements);
}

bool tg_vit_reads_bf16(const tg_vit *vit, size_t offset)
{
    bool weight = offset == vit->patch_w || offset == vit->head_w || offset == vit->head_dist_w;
    for (size_t l = 0; l < vit->config.depth && !weight; l++) {
        const tg_block_offsets *o = &vit->offsets[l];
        weight =
            offset == o->qkv_w || offset == o->proj_w || offset == o->fc1_w || offset == o->fc2_w;
    }
    return weight && vit->dtype == TG_BF16;
}

size_t tg_vit_weight_bytes(const tg_vit_config *config, const tg_kern *kern, tg_dtype dtype,
                           bool trainable)
{
    const size_t C = config->embed_dim, F = config->mlp_hidden, K = config->num_classes;
    size_t (*bytes)(size_t, size_t, tg_dtype, bool) = kern->linear.weight_bytes;
    size_t block = bytes(3 * C, C, dtype, trainable) + bytes(C, C, dtype, trainable) +
                   bytes(F, C, dtype, trainable) + bytes(C, F, dtype, trainable);
    size_t heads = K ? tg_vit_head_tokens(config) * bytes(K, C, dtype, trainable) : 0;
    return bytes(C, 3 * config->patch * config->patch, dtype, trainable) + config->depth * block +
           heads;
}
