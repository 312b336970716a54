#include "model/config.h"

#include <stdio.h>

/* Everything but vectors and the tables of tokens and positions decays. */
enum { NO_DECAY = 0, DECAY = 1 };

static tg_status add_vector(tg_param_table *table, const char *name, size_t n, int layer)
{
    return tg_param_add(table, name, 1, &n, layer, NO_DECAY);
}

/* name.weight [rows, columns] and, when wanted, name.bias [rows]. */
static tg_status add_linear(tg_param_table *table, const char *name, size_t rows, size_t columns,
                            bool bias, int layer)
{
    char key[TG_PARAM_NAME_BYTES];
    snprintf(key, sizeof key, "%s.weight", name);
    TG_TRY(tg_param_add(table, key, 2, (size_t[]){rows, columns}, layer, DECAY));
    if (!bias)
        return TG_OK;
    snprintf(key, sizeof key, "%s.bias", name);
    return add_vector(table, key, rows, layer);
}

static tg_status add_norm(tg_param_table *table, const char *name, size_t C, int layer)
{
    char key[TG_PARAM_NAME_BYTES];
    snprintf(key, sizeof key, "%s.weight", name);
    TG_TRY(add_vector(table, key, C, layer));
    snprintf(key, sizeof key, "%s.bias", name);
    return add_vector(table, key, C, layer);
}

static tg_status add_tokens(tg_param_table *table, const char *name, size_t rows, size_t C)
{
    return rows ? tg_param_add(table, name, 3, (size_t[]){1, rows, C}, 0, NO_DECAY) : TG_OK;
}

static tg_status add_stem(const tg_vit_config *config, tg_param_table *table)
{
    size_t C = config->embed_dim, P = config->patch;
    TG_TRY(add_tokens(table, "cls_token", config->class_token, C));
    TG_TRY(add_tokens(table, "dist_token", config->dist_token, C));
    TG_TRY(add_tokens(table, "reg_token", config->reg_tokens, C));
    TG_TRY(add_tokens(table, "pos_embed", tg_vit_pos_rows(config), C));
    TG_TRY(tg_param_add(table, "patch_embed.proj.weight", 4, (size_t[]){C, 3, P, P}, 0, DECAY));
    return add_vector(table, "patch_embed.proj.bias", C, 0);
}

static tg_status add_block(const tg_vit_config *config, size_t index, tg_param_table *table)
{
    size_t C = config->embed_dim, F = config->mlp_hidden;
    int layer = (int)index + 1;
    char key[TG_PARAM_NAME_BYTES - 8];
#define KEY(part) (snprintf(key, sizeof key, "blocks.%zu." part, index), key)
    TG_TRY(add_norm(table, KEY("norm1"), C, layer));
    TG_TRY(add_linear(table, KEY("attn.qkv"), 3 * C, C, config->qkv_bias, layer));
    TG_TRY(add_linear(table, KEY("attn.proj"), C, C, true, layer));
    if (config->layer_scale)
        TG_TRY(add_vector(table, KEY("ls1.gamma"), C, layer));
    TG_TRY(add_norm(table, KEY("norm2"), C, layer));
    TG_TRY(add_linear(table, KEY("mlp.fc1"), F, C, true, layer));
    TG_TRY(add_linear(table, KEY("mlp.fc2"), C, F, true, layer));
    if (config->layer_scale)
        TG_TRY(add_vector(table, KEY("ls2.gamma"), C, layer));
#undef KEY
    return TG_OK;
}

/* timm counts the final norm of token pooling to the last block, and fc_norm to the head. */
static tg_status add_end(const tg_vit_config *config, tg_param_table *table)
{
    size_t C = config->embed_dim, K = config->num_classes;
    int last_block = (int)config->depth, head = last_block + 1;
    if (config->pool == TG_POOL_TOKEN)
        TG_TRY(add_norm(table, "norm", C, last_block));
    else
        TG_TRY(add_norm(table, "fc_norm", C, head));
    if (K == 0)
        return TG_OK;
    TG_TRY(add_linear(table, "head", K, C, true, head));
    return config->dist_token ? add_linear(table, "head_dist", K, C, true, head) : TG_OK;
}

tg_status tg_vit_params(const tg_vit_config *config, tg_param_table *out)
{
    TG_TRY(tg_vit_config_check(config));
    tg_param_table table = {0};
    tg_status status;
    TG_TRY_GOTO(add_stem(config, &table), free_table);
    for (size_t i = 0; i < config->depth; i++)
        TG_TRY_GOTO(add_block(config, i, &table), free_table);
    TG_TRY_GOTO(add_end(config, &table), free_table);
    *out = table;
    return TG_OK;
free_table:
    tg_param_table_done(&table);
    return status;
}
