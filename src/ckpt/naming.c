#include "ckpt/naming.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tg_hf_kind tg_naming_hf_kind(const tg_vit_config *config)
{
    if (!config->class_token || config->pool != TG_POOL_TOKEN)
        return TG_HF_NONE;
    if (config->layer_scale && !config->dist_token)
        return config->reg_tokens ? TG_HF_DINOV2_REG : TG_HF_DINOV2;
    if (config->layer_scale)
        return TG_HF_NONE;
    if (config->dist_token)
        return TG_HF_DEIT;
    if (config->reg_tokens == 0)
        return TG_HF_VIT;
    return config->reg_tokens == 1 && !config->no_embed_class ? TG_HF_DEIT : TG_HF_NONE;
}

const char *tg_naming_hf_type(tg_hf_kind kind)
{
    static const char *const types[] = {"vit", "deit", "dinov2", "dinov2_with_registers", ""};
    return types[kind];
}

size_t tg_naming_hf_prefix_rows(tg_hf_kind kind)
{
    return kind == TG_HF_DEIT ? 2 : 1;
}

/* Stem of a timm name -> stems of theirs for ViT and DeiT, and for DINOv2. */
typedef struct stem {
    const char *timm, *vit, *dinov2;
} stem;

static const stem block_stems[] = {
    {"norm1", "layernorm_before", "norm1"},
    {"attn.proj", "attention.output.dense", "attention.output.dense"},
    {"ls1.gamma", NULL, "layer_scale1.lambda1"},
    {"norm2", "layernorm_after", "norm2"},
    {"mlp.fc1", "intermediate.dense", "mlp.fc1"},
    {"mlp.fc2", "output.dense", "mlp.fc2"},
    {"ls2.gamma", NULL, "layer_scale2.lambda1"},
};

static const stem outer_stems[] = {
    {"cls_token", "embeddings.cls_token", "embeddings.cls_token"},
    {"dist_token", "embeddings.distillation_token", NULL},
    {"reg_token", "embeddings.distillation_token", "embeddings.register_tokens"},
    {"pos_embed", "embeddings.position_embeddings", "embeddings.position_embeddings"},
    {"patch_embed.proj", "embeddings.patch_embeddings.projection",
     "embeddings.patch_embeddings.projection"},
    {"norm", "layernorm", "layernorm"},
    {"head_dist", "distillation_classifier", NULL},
};

/* The stem that begins `name` and is followed by its end or a dot. */
static const stem *find_stem(const stem *stems, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(stems[i].timm);
        if (strncmp(stems[i].timm, name, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return &stems[i];
    }
    return NULL;
}

static size_t map_stem(const stem *stems, size_t count, const char *name, bool dinov2,
                       const char *before, char out[TG_NAMING_BYTES])
{
    const stem *found = find_stem(stems, count, name);
    const char *theirs = !found ? NULL : dinov2 ? found->dinov2 : found->vit;
    if (!theirs)
        return 0;
    snprintf(out, TG_NAMING_BYTES, "%s%s%s", before, theirs, name + strlen(found->timm));
    return 1;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

size_t tg_naming_hf(tg_hf_kind kind, const tg_vit_config *config, const char *param,
                    char out[TG_NAMING_PIECES][TG_NAMING_BYTES])
{
    static const char *const parts[] = {"query", "key", "value"};
    bool dinov2 = kind == TG_HF_DINOV2 || kind == TG_HF_DINOV2_REG;
    int used = 0, block;
    if (sscanf(param, "blocks.%d.%n", &block, &used) == 1 && used) {
        char before[64];
        snprintf(before, sizeof before, "encoder.layer.%d.", block);
        const char *rest = param + used;
        if (strncmp(rest, "attn.qkv.", 9) != 0)
            return map_stem(block_stems, COUNT(block_stems), rest, dinov2, before, out[0]);
        for (size_t i = 0; i < TG_NAMING_PIECES; i++)
            snprintf(out[i], TG_NAMING_BYTES, "%sattention.attention.%s.%s", before, parts[i],
                     rest + 9);
        return TG_NAMING_PIECES;
    }
    if (strncmp(param, "head.", 5) == 0) {
        snprintf(out[0], TG_NAMING_BYTES, "%sclassifier.%s", config->dist_token ? "cls_" : "",
                 param + 5);
        return 1;
    }
    return map_stem(outer_stems, COUNT(outer_stems), param, dinov2, "", out[0]);
}

bool tg_naming_is_head(const char *param)
{
    return strncmp(param, "head.", 5) == 0 || strncmp(param, "head_dist.", 10) == 0;
}

/* Steps over one known prefix; false when there is none. */
static bool skip_prefix(const char **name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++) {
        size_t n = strlen(*prefixes);
        if (strncmp(*name, *prefixes, n) == 0) {
            *name += n;
            return true;
        }
    }
    return false;
}

/* DINOv2's training files say blocks.CHUNK.INDEX: the chunk is left out. */
static const char *after_chunk(const char *name)
{
    const char *at = name + 7; /* "blocks." */
    while (isdigit((unsigned char)*at))
        at++;
    return at[0] == '.' && isdigit((unsigned char)at[1]) ? at + 1 : name + 7;
}

static char *renamed(const char *name)
{
    char *out = NULL;
    if (strcmp(name, "register_tokens") == 0)
        return strdup("reg_token");
    if (strncmp(name, "blocks.", 7) != 0)
        return strdup(name);
    const char *rest = after_chunk(name), *gamma = strstr(rest, ".gamma_");
    if (gamma && (gamma[7] == '1' || gamma[7] == '2') && gamma[8] == '\0') {
        int n = asprintf(&out, "blocks.%.*s.ls%c.gamma", (int)(gamma - rest), rest, gamma[7]);
        return n < 0 ? NULL : out;
    }
    return asprintf(&out, "blocks.%s", rest) < 0 ? NULL : out;
}

char *tg_naming_canonical(const char *file_name, tg_naming naming)
{
    static const char *const timm[] = {"module.",   "_orig_mod.", "model.",
                                       "backbone.", "encoder.",   NULL};
    static const char *const hf[] = {
        "module.", "_orig_mod.", "model.", "vit.", "deit.", "dinov2.", "dinov2_with_registers.",
        NULL};
    const char *name = file_name;
    while (skip_prefix(&name, naming == TG_NAMING_TIMM ? timm : hf))
        continue;
    return naming == TG_NAMING_TIMM ? renamed(name) : strdup(name);
}

bool tg_naming_is_ignored(const char *canonical)
{
    static const char *const exact[] = {"mask_token", "embeddings.mask_token", NULL};
    static const char *const begins[] = {"pre_logits.", "pooler.", "decoder_", NULL};
    for (const char *const *p = exact; *p; p++)
        if (strcmp(canonical, *p) == 0)
            return true;
    return skip_prefix(&canonical, begins);
}
