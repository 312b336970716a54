#include "model/presets.h"

#include <string.h>

/* embed_dim, depth, num_heads */
#define TINY 192, 12, 3
#define SMALL 384, 12, 6
#define MEDIUM 512, 12, 8
#define BASE 768, 12, 12
#define LARGE 1024, 24, 16

/* name, family, width, patch, image, classes, distillation token, registers, positions without the
 * class token, LayerScale, normalisation, crop. clang-format off keeps one model a line. */
/* clang-format off */
#define PRESETS(X)                                                                                 \
    X("vit_tiny_patch8_224", VIT, TINY, 8, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                     \
    X("vit_tiny_patch8_384", VIT, TINY, 8, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                     \
    X("vit_tiny_patch14_224", VIT, TINY, 14, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_tiny_patch16_224", VIT, TINY, 16, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_tiny_patch16_384", VIT, TINY, 16, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_tiny_patch32_224", VIT, TINY, 32, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_tiny_patch32_384", VIT, TINY, 32, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_small_patch8_224", VIT, SMALL, 8, 224, 0, 0, 0, 0, 0, IMAGENET, 0.9)                  \
    X("vit_small_patch8_384", VIT, SMALL, 8, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_small_patch14_224", VIT, SMALL, 14, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                 \
    X("vit_small_patch16_224", VIT, SMALL, 16, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                 \
    X("vit_small_patch16_384", VIT, SMALL, 16, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                 \
    X("vit_small_patch32_224", VIT, SMALL, 32, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                 \
    X("vit_small_patch32_384", VIT, SMALL, 32, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                 \
    X("vit_base_patch8_224", VIT, BASE, 8, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                     \
    X("vit_base_patch8_384", VIT, BASE, 8, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                     \
    X("vit_base_patch14_224", VIT, BASE, 14, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_base_patch16_224", VIT, BASE, 16, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_base_patch16_384", VIT, BASE, 16, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_base_patch32_224", VIT, BASE, 32, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_base_patch32_384", VIT, BASE, 32, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_large_patch8_224", VIT, LARGE, 8, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                   \
    X("vit_large_patch8_384", VIT, LARGE, 8, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                   \
    X("vit_large_patch14_224", VIT, LARGE, 14, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                 \
    X("vit_large_patch16_224", VIT, LARGE, 16, 224, 1000, 0, 0, 0, 0, HALF, 0.9)                 \
    X("vit_large_patch16_384", VIT, LARGE, 16, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                 \
    X("vit_large_patch32_224", VIT, LARGE, 32, 224, 0, 0, 0, 0, 0, HALF, 0.9)                    \
    X("vit_large_patch32_384", VIT, LARGE, 32, 384, 1000, 0, 0, 0, 0, HALF, 1.0)                 \
    X("deit_tiny_patch16_224", DEIT, TINY, 16, 224, 1000, 0, 0, 0, 0, IMAGENET, 0.9)             \
    X("deit_tiny_patch16_384", DEIT, TINY, 16, 384, 1000, 0, 0, 0, 0, IMAGENET, 1.0)             \
    X("deit_small_patch16_224", DEIT, SMALL, 16, 224, 1000, 0, 0, 0, 0, IMAGENET, 0.9)           \
    X("deit_small_patch16_384", DEIT, SMALL, 16, 384, 1000, 0, 0, 0, 0, IMAGENET, 1.0)           \
    X("deit_base_patch16_224", DEIT, BASE, 16, 224, 1000, 0, 0, 0, 0, IMAGENET, 0.9)             \
    X("deit_base_patch16_384", DEIT, BASE, 16, 384, 1000, 0, 0, 0, 0, IMAGENET, 1.0)             \
    X("deit_tiny_distilled_patch16_224", DEIT, TINY, 16, 224, 1000, 1, 0, 0, 0, IMAGENET, 0.9)   \
    X("deit_tiny_distilled_patch16_384", DEIT, TINY, 16, 384, 1000, 1, 0, 0, 0, IMAGENET, 1.0)   \
    X("deit_small_distilled_patch16_224", DEIT, SMALL, 16, 224, 1000, 1, 0, 0, 0, IMAGENET, 0.9) \
    X("deit_small_distilled_patch16_384", DEIT, SMALL, 16, 384, 1000, 1, 0, 0, 0, IMAGENET, 1.0) \
    X("deit_base_distilled_patch16_224", DEIT, BASE, 16, 224, 1000, 1, 0, 0, 0, IMAGENET, 0.9)   \
    X("deit_base_distilled_patch16_384", DEIT, BASE, 16, 384, 1000, 1, 0, 0, 0, IMAGENET, 1.0)   \
    X("deit3_small_patch16_224", DEIT, SMALL, 16, 224, 1000, 0, 0, 1, 1e-6f, IMAGENET, 0.9)      \
    X("deit3_small_patch16_384", DEIT, SMALL, 16, 384, 1000, 0, 0, 1, 1e-6f, IMAGENET, 1.0)      \
    X("deit3_medium_patch16_224", DEIT, MEDIUM, 16, 224, 1000, 0, 0, 1, 1e-6f, IMAGENET, 0.9)    \
    X("deit3_medium_patch16_384", DEIT, MEDIUM, 16, 384, 1000, 0, 0, 1, 1e-6f, IMAGENET, 1.0)    \
    X("deit3_base_patch16_224", DEIT, BASE, 16, 224, 1000, 0, 0, 1, 1e-6f, IMAGENET, 0.9)        \
    X("deit3_base_patch16_384", DEIT, BASE, 16, 384, 1000, 0, 0, 1, 1e-6f, IMAGENET, 1.0)        \
    X("deit3_large_patch16_224", DEIT, LARGE, 16, 224, 1000, 0, 0, 1, 1e-6f, IMAGENET, 0.9)      \
    X("deit3_large_patch16_384", DEIT, LARGE, 16, 384, 1000, 0, 0, 1, 1e-6f, IMAGENET, 1.0)      \
    X("vit_small_patch14_dinov2", DINOV2, SMALL, 14, 518, 0, 0, 0, 0, 1e-5f, IMAGENET, 1.0)      \
    X("vit_base_patch14_dinov2", DINOV2, BASE, 14, 518, 0, 0, 0, 0, 1e-5f, IMAGENET, 1.0)        \
    X("vit_large_patch14_dinov2", DINOV2, LARGE, 14, 518, 0, 0, 0, 0, 1e-5f, IMAGENET, 1.0)      \
    X("vit_small_patch14_reg4_dinov2", DINOV2, SMALL, 14, 518, 0, 0, 4, 1, 1e-5f, IMAGENET, 1.0) \
    X("vit_base_patch14_reg4_dinov2", DINOV2, BASE, 14, 518, 0, 0, 4, 1, 1e-5f, IMAGENET, 1.0)   \
    X("vit_large_patch14_reg4_dinov2", DINOV2, LARGE, 14, 518, 0, 0, 4, 1, 1e-5f, IMAGENET, 1.0)
/* clang-format on */

#define ROW_(text, fam, C, L, H, P, S, K, dist, reg, patch_only, scale, pixels, crop)              \
    {.name = (text),                                                                               \
     .family = TG_FAMILY_##fam,                                                                    \
     .embed_dim = (C),                                                                             \
     .depth = (L),                                                                                 \
     .num_heads = (H),                                                                             \
     .patch = (P),                                                                                 \
     .img_px = (S),                                                                                \
     .num_classes = (K),                                                                           \
     .dist_token = (dist),                                                                         \
     .reg_tokens = (reg),                                                                          \
     .no_embed_class = (patch_only),                                                               \
     .layer_scale_init = (scale),                                                                  \
     .pixel_norm = TG_PIXEL_NORM_##pixels,                                                         \
     .crop_pct = (crop)},
/* The width names expand to three values before ROW_ counts its arguments. */
#define ROW(...) ROW_(__VA_ARGS__)
#define NAME(text, ...) text,

static const tg_vit_preset presets[] = {PRESETS(ROW)};
static const char *const names[] = {PRESETS(NAME) NULL};

enum { PRESET_COUNT = sizeof presets / sizeof presets[0] };

const char *const *tg_vit_preset_names(void)
{
    return names;
}

const tg_vit_preset *tg_vit_preset_find(const char *name)
{
    size_t length = strcspn(name, ".");
    for (size_t i = 0; i < PRESET_COUNT; i++)
        if (strncmp(presets[i].name, name, length) == 0 && presets[i].name[length] == '\0')
            return &presets[i];
    return NULL;
}
