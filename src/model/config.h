/* config.h - the shape of a vision transformer, and the presets under timm's names.
 *
 * Source     Dosovitskiy et al., "An image is worth 16x16 words", 2021; DeiT: Touvron et al., 2021;
 *            DeiT-III: Touvron et al., 2022; DINOv2: Oquab et al., 2023; registers: Darcet et al.,
 *            2024. Names, sizes and defaults are timm's.
 */
#ifndef TG_MODEL_CONFIG_H
#define TG_MODEL_CONFIG_H

#include "base/status.h"
#include "kern/mlp.h"
#include "tensor/param.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_pool { TG_POOL_TOKEN, TG_POOL_AVG } tg_pool;

/* How a family resamples its position table to another grid (model/positions.h). */
typedef enum tg_family { TG_FAMILY_VIT, TG_FAMILY_DEIT, TG_FAMILY_DINOV2 } tg_family;

typedef struct tg_vit_config {
    char architecture[64]; /* timm name, e.g. "vit_small_patch16_224" */
    tg_family family;
    size_t img_h, img_w;   /* pixels; multiples of patch */
    size_t patch;          /* P */
    size_t embed_dim;      /* C */
    size_t depth;
    size_t num_heads;      /* H; divides C */
    size_t mlp_hidden;     /* F */
    size_t num_classes;    /* K; 0: no head, output is the pooled feature */
    bool class_token;
    bool dist_token;       /* DeiT distilled: second token and second head */
    size_t reg_tokens;
    bool no_embed_class;   /* position table covers patches only */
    bool layer_scale;
    float layer_scale_init;
    bool qkv_bias;
    tg_pool pool;          /* AVG: mean of patch tokens, then fc_norm (no norm before) */
    tg_gelu gelu;
    float norm_eps;
    float drop_path;       /* rate at the last block; rises linearly from 0 at the first */
} tg_vit_config;

/* Fills `out` from a preset name; num_classes is timm's for the name (1000; 0 for DINOv2).
 * TG_ERROR_USAGE naming the nearest presets when unknown. */
tg_status tg_vit_config_preset(const char *name, tg_vit_config *out) TG_MUST_CHECK;
/* Preset names in order, NULL-terminated. */
const char *const *tg_vit_preset_names(void);

/* Refuses impossible shapes (C not divisible by H, image not by patch, zero sizes, sizes whose
 * products wrap): TG_ERROR_USAGE with the field and the value. */
tg_status tg_vit_config_check(const tg_vit_config *config) TG_MUST_CHECK;

/* Prefix tokens (class + distillation + registers), patches N, tokens T = prefix + N. */
size_t tg_vit_prefix_tokens(const tg_vit_config *config);
size_t tg_vit_patches(const tg_vit_config *config);
size_t tg_vit_tokens(const tg_vit_config *config);
/* Rows of the position table. */
size_t tg_vit_pos_rows(const tg_vit_config *config);

/* Builds the parameter table in forward order, timm's keys:
 * cls_token, dist_token, reg_token, pos_embed, patch_embed.proj.weight/.bias,
 * blocks.i.{norm1.weight, norm1.bias, attn.qkv.weight, attn.qkv.bias, attn.proj.weight,
 * attn.proj.bias, ls1.gamma, norm2.weight, norm2.bias, mlp.fc1.weight, mlp.fc1.bias,
 * mlp.fc2.weight, mlp.fc2.bias, ls2.gamma}, norm.* or fc_norm.*, head.*, head_dist.*.
 * `out` must be zeroed. */
tg_status tg_vit_params(const tg_vit_config *config, tg_param_table *out) TG_MUST_CHECK;

/* Fresh weights as timm: truncated normal, std 0.02 (cut at +-2 in absolute value), for linear
 * weights (heads too), positions and the distillation token; class and register tokens normal 1e-6;
 * patch projection (weight and bias) as PyTorch's Conv2d default, uniform +-1/sqrt(3 P^2); other
 * biases 0; norms 1 and 0; LayerScale its init. A pure function of (seed, index of the tensor in
 * the table). Padding is zeroed. */
void tg_vit_init_weights(const tg_vit_config *config, const tg_param_table *table, uint64_t seed,
                         float *out_params);
/* The same for the table's entry `index` alone (a new head), in place in out_params. */
void tg_vit_init_tensor(const tg_vit_config *config, const tg_param_table *table, size_t index,
                        uint64_t seed, float *out_params);

/* Multiply-adds of one image's forward (matrix products and attention), for FLOP counts:
 * FLOPs = 2 x this. */
double tg_vit_macs(const tg_vit_config *config);

#endif
