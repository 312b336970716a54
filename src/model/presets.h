/* presets.h - the table behind tg_vit_config_preset: shape and usual preprocessing of named models.
 *
 * Source     timm's registered models of the same names: sizes, LayerScale, positions and the
 *            preprocessing of their default weights. Plain ViT rows that timm lacks (another patch
 *            or size) follow their neighbours. A tag after a dot ("vit_base_patch16_224.mae") is
 *            ignored, as the tag names weights, not an architecture.
 * Memory     everything is constant and lives as long as the program. Reentrant.
 */
#ifndef TG_MODEL_PRESETS_H
#define TG_MODEL_PRESETS_H

#include "model/config.h"

/* Mean and std of the pictures' values in [0,1]. */
typedef enum tg_pixel_norm {
    TG_PIXEL_NORM_HALF,    /* 0.5 and 0.5: weights that come from JAX (augreg) */
    TG_PIXEL_NORM_IMAGENET /* 0.485 0.456 0.406 and 0.229 0.224 0.225 */
} tg_pixel_norm;

typedef struct tg_vit_preset {
    const char *name;
    tg_family family;
    size_t embed_dim, depth, num_heads, patch, img_px, num_classes;
    bool dist_token;
    size_t reg_tokens;
    bool no_embed_class;
    float layer_scale_init; /* 0: none */
    tg_pixel_norm pixel_norm;
    double crop_pct;
} tg_vit_preset;

/* NULL when there is no such preset. */
const tg_vit_preset *tg_vit_preset_find(const char *name);

#endif
