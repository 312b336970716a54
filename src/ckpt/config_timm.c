#include "base/log.h"
#include "base/nearest.h"
#include "ckpt/config_json.h"
#include "ckpt/preset_preprocess.h"

#include <math.h>
#include <string.h>

static tg_status read_ratio(const tg_json_node *node, tg_vit_config *config)
{
    double ratio;
    TG_TRY(tg_json_as_double(node, &ratio));
    double hidden = floor((double)config->embed_dim * ratio); /* as timm: int(C * ratio) */
    if (!(hidden >= 1 && hidden < 1e9))
        return tg_json_fail(node, "impossible MLP ratio");
    config->mlp_hidden = (size_t)hidden;
    return TG_OK;
}

static tg_status read_size_arg(const tg_json_node *node, size_t *out)
{
    int64_t value;
    TG_TRY(tg_json_as_int(node, &value));
    if (value < 0 || value > INT32_MAX)
        return tg_json_fail(node, "impossible size");
    *out = (size_t)value;
    return TG_OK;
}

static tg_status read_pool(const tg_json_node *node, tg_vit_config *config)
{
    const char *pool;
    TG_TRY(tg_json_as_string(node, &pool));
    if (strcmp(pool, "token") != 0 && strcmp(pool, "avg") != 0)
        return tg_json_fail(node, "pooling %.32s is not supported (token or avg)", pool);
    config->pool = strcmp(pool, "avg") == 0 ? TG_POOL_AVG : TG_POOL_TOKEN;
    return TG_OK;
}

static tg_status read_gelu(const tg_json_node *node, tg_vit_config *config)
{
    const char *name;
    TG_TRY(tg_json_as_string(node, &name));
    if (strcmp(name, "gelu") != 0 && strcmp(name, "gelu_tanh") != 0)
        return tg_json_fail(node, "activation %.32s is not supported (gelu or gelu_tanh)", name);
    config->gelu = strcmp(name, "gelu") == 0 ? TG_GELU_EXACT : TG_GELU_TANH;
    return TG_OK;
}

static tg_status read_init_values(const tg_json_node *node, tg_vit_config *config)
{
    double value;
    TG_TRY(tg_json_as_double(node, &value));
    config->layer_scale = value != 0; /* timm: no LayerScale when the value is false */
    config->layer_scale_init = (float)value;
    return TG_OK;
}

static tg_status read_patch(const tg_json_node *node, tg_vit_config *config)
{
    size_t size[2];
    TG_TRY(tg_config_read_size(node, size));
    if (size[0] != size[1])
        return tg_json_fail(node, "patches must be square");
    config->patch = size[0];
    return TG_OK;
}

static tg_status read_image(const tg_json_node *node, tg_vit_config *config)
{
    size_t size[2];
    TG_TRY(tg_config_read_size(node, size));
    config->img_h = size[0];
    config->img_w = size[1];
    return TG_OK;
}

static tg_status read_channels(const tg_json_node *node)
{
    int64_t channels;
    TG_TRY(tg_json_as_int(node, &channels));
    return channels == 3 ? TG_OK : tg_json_fail(node, "pictures must have 3 channels");
}

/* Arguments that say nothing about the function computed in evaluation. */
static bool is_harmless(const char *key)
{
    static const char *const keys[] = {
        "drop_rate",      "pos_drop_rate", "patch_drop_rate",  "proj_drop_rate", "attn_drop_rate",
        "drop_path_rate", "weight_init",   "dynamic_img_size", "num_classes",    "strict_img_size"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool is_off(const tg_json_node *node)
{
    bool value = true;
    return tg_json_node_kind(node) == TG_JSON_NULL ||
           (tg_json_node_kind(node) == TG_JSON_BOOL && tg_json_as_bool(node, &value) == TG_OK &&
            !value);
}

static tg_status read_arg(const char *key, const tg_json_node *node, tg_vit_config *c)
{
    if (strcmp(key, "mlp_ratio") == 0 || is_harmless(key))
        return TG_OK; /* the ratio waits for embed_dim */
    if (strcmp(key, "init_values") == 0 && is_off(node)) {
        c->layer_scale = false;
        return TG_OK;
    }
    if (tg_json_node_kind(node) == TG_JSON_NULL)
        return TG_OK; /* the architecture's own */
    if (strcmp(key, "img_size") == 0)
        return read_image(node, c);
    if (strcmp(key, "patch_size") == 0)
        return read_patch(node, c);
    if (strcmp(key, "embed_dim") == 0)
        return read_size_arg(node, &c->embed_dim);
    if (strcmp(key, "depth") == 0)
        return read_size_arg(node, &c->depth);
    if (strcmp(key, "num_heads") == 0)
        return read_size_arg(node, &c->num_heads);
    if (strcmp(key, "reg_tokens") == 0)
        return read_size_arg(node, &c->reg_tokens);
    if (strcmp(key, "init_values") == 0)
        return read_init_values(node, c);
    if (strcmp(key, "global_pool") == 0)
        return read_pool(node, c);
    if (strcmp(key, "act_layer") == 0)
        return read_gelu(node, c);
    if (strcmp(key, "qkv_bias") == 0)
        return tg_json_as_bool(node, &c->qkv_bias);
    if (strcmp(key, "class_token") == 0)
        return tg_json_as_bool(node, &c->class_token);
    if (strcmp(key, "no_embed_class") == 0)
        return tg_json_as_bool(node, &c->no_embed_class);
    if (strcmp(key, "in_chans") == 0)
        return read_channels(node);
    return is_off(node) ? TG_OK : tg_json_fail(node, "this argument of timm is not supported");
}

static tg_status read_args(const tg_json_node *config, tg_vit_config *out)
{
    tg_json_node args, node;
    bool found;
    TG_TRY(tg_json_get_object(config, "model_args", TG_OPTIONAL, &args, &found));
    if (!found)
        return TG_OK;
    double ratio = (double)out->mlp_hidden / (double)out->embed_dim;
    tg_json_iterator iterator = {0};
    const char *key;
    while (tg_json_next(&args, &iterator, &key, &node))
        TG_TRY(read_arg(key, &node, out));
    if (tg_json_find(&args, "mlp_ratio", &node))
        return read_ratio(&node, out);
    out->mlp_hidden = (size_t)((double)out->embed_dim * ratio);
    return TG_OK;
}

static tg_status read_interpolation(const tg_json_node *cfg, tg_preprocess *out)
{
    const char *interpolation = "bicubic", *mode = "center";
    TG_TRY(tg_json_get_string(cfg, "interpolation", TG_OPTIONAL, &interpolation));
    TG_TRY(tg_json_get_string(cfg, "crop_mode", TG_OPTIONAL, &mode));
    bool bilinear = strcmp(interpolation, "bilinear") == 0, squash = strcmp(mode, "squash") == 0;
    if (!bilinear && strcmp(interpolation, "bicubic") != 0)
        return tg_json_fail(cfg, "interpolation %.32s is not supported (bicubic or bilinear)",
                            interpolation);
    if (!squash && strcmp(mode, "center") != 0)
        return tg_json_fail(cfg, "crop_mode %.32s is not supported (center or squash)", mode);
    out->interpolation = bilinear ? TG_BILINEAR : TG_BICUBIC;
    out->crop_mode = squash ? TG_CROP_SQUASH : TG_CROP_CENTER;
    return TG_OK;
}

static tg_status read_pixels(const tg_json_node *cfg, tg_preprocess *out)
{
    double mean[3], std[3];
    for (int i = 0; i < 3; i++) {
        mean[i] = out->mean[i];
        std[i] = out->std[i];
    }
    TG_TRY(tg_json_get_doubles(cfg, "mean", TG_OPTIONAL, 3, mean));
    TG_TRY(tg_json_get_doubles(cfg, "std", TG_OPTIONAL, 3, std));
    TG_TRY(tg_json_get_double(cfg, "crop_pct", TG_OPTIONAL, &out->crop_pct));
    for (int i = 0; i < 3; i++) {
        if (!((float)std[i] > 0))
            return tg_json_fail(cfg, "std must be positive");
        out->mean[i] = (float)mean[i];
        out->std[i] = (float)std[i];
    }
    if (!(out->crop_pct >= TG_CROP_PCT_MIN && out->crop_pct <= 1))
        return tg_json_fail(cfg, "crop_pct must be in [0.01, 1]");
    return read_interpolation(cfg, out);
}

/* pretrained_cfg, or the whole document where an old export has everything on one level. */
static tg_status read_pretrained(const tg_json_node *cfg, tg_model_info *out)
{
    double input[3] = {3, (double)out->config.img_h, (double)out->config.img_w};
    const char *license = NULL;
    TG_TRY(tg_json_get_doubles(cfg, "input_size", TG_OPTIONAL, 3, input));
    if (input[0] != 3)
        return tg_json_fail(cfg, "input_size: pictures must have 3 channels");
    if (!(input[1] >= 1 && input[2] >= 1 && input[1] <= 1 << 20 && input[2] <= 1 << 20))
        return tg_json_fail(cfg, "input_size: impossible size");
    out->config.img_h = (size_t)input[1];
    out->config.img_w = (size_t)input[2];
    TG_TRY(tg_json_get_string(cfg, "license", TG_OPTIONAL, &license));
    if (license && !(out->license = strdup(license)))
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    TG_TRY(tg_json_get_size(cfg, "num_classes", TG_OPTIONAL, &out->config.num_classes));
    return read_pixels(cfg, &out->preprocess);
}

/* timm builds the network for model_args.img_size and feeds it photos of pretrained_cfg.input_size,
 * which fails in its first layer unless the network is told to take any size. */
static tg_status settle_image(const tg_json_node *config, const tg_json_node *cfg, size_t input_h,
                              size_t input_w, tg_vit_config *c)
{
    tg_json_node args = {0}, node;
    bool found, dynamic = false;
    if ((c->img_h == input_h && c->img_w == input_w) || !tg_json_find(cfg, "input_size", &node))
        return TG_OK;
    TG_TRY(tg_json_get_object(config, "model_args", TG_OPTIONAL, &args, &found));
    if (found)
        TG_TRY(tg_json_get_bool(&args, "dynamic_img_size", TG_OPTIONAL, &dynamic));
    if (!dynamic)
        return tg_json_fail(&node,
                            "the photos are %zux%zu, but model_args.img_size makes a network for "
                            "%zux%zu; make them equal (positions are resampled to that size)",
                            input_h, input_w, c->img_h, c->img_w);
    c->img_h = input_h;
    c->img_w = input_w;
    return TG_OK;
}

static tg_status read_labels(const tg_json_node *config, const tg_json_node *cfg,
                             tg_model_info *out)
{
    tg_json_node names;
    bool found =
        tg_json_find(config, "label_names", &names) || tg_json_find(cfg, "label_names", &names);
    if (!found || tg_json_node_kind(&names) == TG_JSON_NULL)
        return TG_OK;
    TG_TRY(tg_config_read_names(&names, false, out));
    if (out->class_count != out->config.num_classes)
        return tg_json_fail(&names, "%zu class names for %zu classes", out->class_count,
                            out->config.num_classes);
    return TG_OK;
}

/* A mistyped key would leave its value unread without a word. */
static void warn_of_unknown(const tg_json_node *own)
{
    static const char *const KEYS[] = {"norm_eps", "exif_orientation"};
    tg_json_iterator iterator = {0};
    tg_json_node node;
    const char *key;
    while (tg_json_next(own, &iterator, &key, &node)) {
        bool known = false;
        for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
            known = known || strcmp(key, KEYS[i]) == 0;
        if (!known)
            tg_log_warning("%s: tagine.%.64s is not known and not used" TG_NEAREST_FORMAT,
                           own->name, key, TG_NEAREST_HINT(tg_nearest_of(key, KEYS, 2)));
    }
}

static tg_status read_own(const tg_json_node *config, tg_model_info *out)
{
    tg_json_node own;
    bool found;
    double eps = out->config.norm_eps;
    TG_TRY(tg_json_get_object(config, "tagine", TG_OPTIONAL, &own, &found));
    if (!found)
        return TG_OK;
    warn_of_unknown(&own);
    TG_TRY(tg_json_get_double(&own, "norm_eps", TG_OPTIONAL, &eps));
    out->config.norm_eps = (float)eps;
    return tg_json_get_bool(&own, "exif_orientation", TG_OPTIONAL,
                            &out->preprocess.exif_orientation);
}

tg_status tg_config_timm_read(const tg_json_node *config, tg_model_info *out)
{
    const char *architecture;
    tg_json_node cfg;
    bool found;
    TG_TRY(tg_json_get_string(config, "architecture", TG_REQUIRED, &architecture));
    if (tg_vit_config_preset(architecture, &out->config) < 0)
        return tg_fail_prefix(TG_ERROR_INPUT, "%s", config->name);
    out->naming = TG_NAMING_TIMM;
    out->preprocess = tg_preset_preprocess(&out->config);
    TG_TRY(tg_json_get_object(config, "pretrained_cfg", TG_OPTIONAL, &cfg, &found));
    if (!found)
        cfg = *config;
    TG_TRY(read_pretrained(&cfg, out));
    TG_TRY(tg_json_get_size(config, "num_classes", TG_OPTIONAL, &out->config.num_classes));
    size_t input_h = out->config.img_h, input_w = out->config.img_w;
    TG_TRY(read_args(config, &out->config));
    TG_TRY(settle_image(config, &cfg, input_h, input_w, &out->config));
    out->preprocess.height_px = (int)out->config.img_h;
    out->preprocess.width_px = (int)out->config.img_w;
    TG_TRY(read_labels(config, &cfg, out));
    return read_own(config, out);
}
