#include "model/config.h"

#include "base/checked.h"
#include "model/presets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST = 3, NAME_CUT = 64 };

/* Levenshtein distance of the first NAME_CUT characters. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, NAME_CUT), m = strnlen(b, NAME_CUT), row[NAME_CUT + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

static tg_status fail_unknown(const char *name)
{
    const char *nearest[NEAREST] = {"", "", ""};
    size_t distance[NEAREST] = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    for (const char *const *p = tg_vit_preset_names(); *p; p++) {
        const char *candidate = *p;
        size_t d = edit_distance(name, candidate);
        for (int i = 0; i < NEAREST; i++)
            if (d < distance[i]) { /* insert here, carry the displaced one on */
                const char *moved = nearest[i];
                size_t moved_distance = distance[i];
                nearest[i] = candidate;
                distance[i] = d;
                candidate = moved;
                d = moved_distance;
            }
    }
    return tg_fail(TG_ERROR_USAGE, "unknown model %s; the nearest names are %s, %s, %s", name,
                   nearest[0], nearest[1], nearest[2]);
}

tg_status tg_vit_config_preset(const char *name, tg_vit_config *out)
{
    const tg_vit_preset *preset = tg_vit_preset_find(name);
    if (!preset)
        return fail_unknown(name);
    *out = (tg_vit_config){.family = preset->family,
                           .img_h = preset->img_px,
                           .img_w = preset->img_px,
                           .patch = preset->patch,
                           .embed_dim = preset->embed_dim,
                           .depth = preset->depth,
                           .num_heads = preset->num_heads,
                           .mlp_hidden = 4 * preset->embed_dim,
                           .num_classes = preset->num_classes,
                           .class_token = true,
                           .dist_token = preset->dist_token,
                           .reg_tokens = preset->reg_tokens,
                           .no_embed_class = preset->no_embed_class,
                           .layer_scale = preset->layer_scale_init > 0,
                           .layer_scale_init = preset->layer_scale_init,
                           .qkv_bias = true,
                           .pool = TG_POOL_TOKEN,
                           .gelu = TG_GELU_EXACT,
                           .norm_eps = 1e-6f};
    snprintf(out->architecture, sizeof out->architecture, "%s", preset->name);
    return TG_OK;
}

/* a * b * c * 16 fits: room for the bytes of any buffer of that many floats, with slack. */
static bool addressable(size_t a, size_t b, size_t c)
{
    size_t product;
    return tg_mul_size(a, b, &product) && tg_mul_size(product, c, &product) &&
           tg_mul_size(product, 16, &product);
}

static tg_status check_numbers(const tg_vit_config *c)
{
    const struct {
        const char *field;
        size_t value;
    } sizes[] = {{"image height", c->img_h},  {"image width", c->img_w},
                 {"patch size", c->patch},    {"embed_dim", c->embed_dim},
                 {"depth", c->depth},         {"num_heads", c->num_heads},
                 {"MLP width", c->mlp_hidden}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value == 0)
            return tg_fail(TG_ERROR_USAGE, "model %s: %s is 0", c->architecture, sizes[i].field);
    if (c->embed_dim % c->num_heads)
        return tg_fail(TG_ERROR_USAGE, "model %s: embed_dim %zu is not a multiple of num_heads %zu",
                       c->architecture, c->embed_dim, c->num_heads);
    if (c->img_h % c->patch || c->img_w % c->patch)
        return tg_fail(TG_ERROR_USAGE,
                       "model %s: image size %zux%zu (height x width) is not a multiple of the "
                       "patch size %zu",
                       c->architecture, c->img_h, c->img_w, c->patch);
    if (!(c->norm_eps > 0) || !isfinite(c->norm_eps))
        return tg_fail(TG_ERROR_USAGE, "model %s: LayerNorm eps %g is not positive",
                       c->architecture, (double)c->norm_eps);
    if (!(c->drop_path >= 0 && c->drop_path < 1))
        return tg_fail(TG_ERROR_USAGE, "model %s: drop_path %g is outside [0, 1)", c->architecture,
                       (double)c->drop_path);
    if (c->layer_scale && !isfinite(c->layer_scale_init))
        return tg_fail(TG_ERROR_USAGE, "model %s: LayerScale init is not a number",
                       c->architecture);
    return TG_OK;
}

static tg_status check_tokens(const tg_vit_config *c)
{
    if (c->pool == TG_POOL_TOKEN && !c->class_token)
        return tg_fail(TG_ERROR_USAGE, "model %s: pooling by class token without a class token",
                       c->architecture);
    if (c->dist_token && (!c->class_token || c->pool != TG_POOL_TOKEN || c->reg_tokens))
        return tg_fail(TG_ERROR_USAGE,
                       "model %s: a distillation token needs class-token pooling and no registers",
                       c->architecture);
    return TG_OK;
}

tg_status tg_vit_config_check(const tg_vit_config *c)
{
    TG_TRY(check_numbers(c));
    TG_TRY(check_tokens(c));
    size_t T, rows = c->img_h / c->patch, columns = c->img_w / c->patch;
    bool fits = addressable(c->img_h, c->img_w, 3) && tg_mul_size(rows, columns, &T) &&
                tg_add_size(T, c->reg_tokens, &T) && tg_add_size(T, 2, &T) &&
                addressable(T, T, c->num_heads) && addressable(T, c->embed_dim, 3) &&
                addressable(T, c->mlp_hidden, 1) && addressable(c->embed_dim, c->embed_dim, 3) &&
                addressable(c->embed_dim, c->mlp_hidden, c->depth) &&
                addressable(c->embed_dim, c->num_classes, 1) && addressable(c->patch, c->patch, 3);
    if (!fits)
        return tg_fail(TG_ERROR_USAGE,
                       "model %s: image %zux%zu, patch %zu, embed_dim %zu, depth %zu, MLP %zu, "
                       "%zu classes: too large to address",
                       c->architecture, c->img_h, c->img_w, c->patch, c->embed_dim, c->depth,
                       c->mlp_hidden, c->num_classes);
    return TG_OK;
}

size_t tg_vit_prefix_tokens(const tg_vit_config *config)
{
    return (size_t)config->class_token + (size_t)config->dist_token + config->reg_tokens;
}

size_t tg_vit_patches(const tg_vit_config *config)
{
    return (config->img_h / config->patch) * (config->img_w / config->patch);
}

size_t tg_vit_tokens(const tg_vit_config *config)
{
    return tg_vit_prefix_tokens(config) + tg_vit_patches(config);
}

size_t tg_vit_pos_rows(const tg_vit_config *config)
{
    return config->no_embed_class ? tg_vit_patches(config) : tg_vit_tokens(config);
}

double tg_vit_macs(const tg_vit_config *config)
{
    double C = (double)config->embed_dim, F = (double)config->mlp_hidden;
    double T = (double)tg_vit_tokens(config), N = (double)tg_vit_patches(config);
    double P = (double)config->patch, K = (double)config->num_classes;
    double heads = config->dist_token ? 2 : 1;
    double block = T * C * 3 * C + 2 * T * T * C + T * C * C + 2 * T * C * F;
    return N * 3 * P * P * C + (double)config->depth * block + heads * C * K;
}
