#include "ckpt/config_json.h"
#include "ckpt/naming.h"

#include "base/log.h"
#include "base/number.h"
#include "base/text.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_string(tg_text *text, const char *string)
{
    tg_text_append_json_string(text, string, strlen(string));
}

/* A whole number gets a ".0": transformers refuses an int where it wants a float. */
static void add_float(tg_text *text, float value)
{
    char number[TG_NUMBER_BYTES];
    tg_number_format_float(value, number);
    tg_text_append_format(text, "%s%s", number, strpbrk(number, ".en") ? "" : ".0");
}

static void add_triple(tg_text *text, const float values[3])
{
    for (int i = 0; i < 3; i++) {
        tg_text_append_string(text, i ? ", " : "[");
        add_float(text, values[i]);
    }
    tg_text_append_char(text, ']');
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static tg_status write_text(const char *folder, const char *name, const tg_text *text)
{
    TG_TRY(tg_text_check(text, name));
    char *path = tg_path_join(folder, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_status status = tg_file_write(path, text->data, text->length);
    free(path);
    return status;
}

/* One "key": value of model_args, with the comma that it needs. */
static void begin_arg(tg_text *text, const char *key)
{
    bool first = text->data[text->length - 1] == '{';
    tg_text_append_format(text, "%s\"%s\": ", first ? "" : ", ", key);
}

static void add_size_arg(tg_text *text, const char *key, size_t value, size_t usual)
{
    if (value == usual)
        return;
    begin_arg(text, key);
    tg_text_append_format(text, "%zu", value);
}

static void add_bool_arg(tg_text *text, const char *key, bool value, bool usual)
{
    if (value == usual)
        return;
    begin_arg(text, key);
    tg_text_append_string(text, truth(value));
}

/* A ratio that timm's int(C * ratio) turns back into F. */
static double mlp_ratio(const tg_vit_config *c)
{
    double ratio = (double)c->mlp_hidden / (double)c->embed_dim;
    while (floor((double)c->embed_dim * ratio) < (double)c->mlp_hidden)
        ratio = nextafter(ratio, INFINITY);
    return ratio;
}

static void add_float_args(tg_text *text, const tg_vit_config *c, const tg_vit_config *usual)
{
    if (c->mlp_hidden * usual->embed_dim != usual->mlp_hidden * c->embed_dim) {
        begin_arg(text, "mlp_ratio");
        tg_text_append_double(text, mlp_ratio(c));
    }
    if (c->layer_scale == usual->layer_scale && c->layer_scale_init == usual->layer_scale_init)
        return;
    begin_arg(text, "init_values");
    if (c->layer_scale)
        add_float(text, c->layer_scale_init != 0 ? c->layer_scale_init : 1e-6f);
    else
        tg_text_append_string(text, "null");
}

static void add_args(tg_text *text, const tg_vit_config *c, const tg_vit_config *usual)
{
    tg_text_append_string(text, "{");
    if (c->img_h != usual->img_h || c->img_w != usual->img_w) {
        begin_arg(text, "img_size");
        tg_text_append_format(text, "[%zu, %zu]", c->img_h, c->img_w);
    }
    add_size_arg(text, "patch_size", c->patch, usual->patch);
    add_size_arg(text, "embed_dim", c->embed_dim, usual->embed_dim);
    add_size_arg(text, "depth", c->depth, usual->depth);
    add_size_arg(text, "num_heads", c->num_heads, usual->num_heads);
    add_size_arg(text, "reg_tokens", c->reg_tokens, usual->reg_tokens);
    add_float_args(text, c, usual);
    add_bool_arg(text, "qkv_bias", c->qkv_bias, usual->qkv_bias);
    add_bool_arg(text, "class_token", c->class_token, usual->class_token);
    add_bool_arg(text, "no_embed_class", c->no_embed_class, usual->no_embed_class);
    if (c->pool != usual->pool) {
        begin_arg(text, "global_pool");
        tg_text_append_string(text, c->pool == TG_POOL_AVG ? "\"avg\"" : "\"token\"");
    }
    if (c->gelu != usual->gelu) {
        begin_arg(text, "act_layer");
        tg_text_append_string(text, c->gelu == TG_GELU_TANH ? "\"gelu_tanh\"" : "\"gelu\"");
    }
    tg_text_append_string(text, "}");
}

static void add_pretrained(tg_text *text, const tg_model_info *info)
{
    const tg_preprocess *p = &info->preprocess;
    tg_text_append_format(text, "  \"pretrained_cfg\": {\n    \"num_classes\": %zu,\n",
                          info->config.num_classes);
    tg_text_append_format(text, "    \"input_size\": [3, %zu, %zu],\n", info->config.img_h,
                          info->config.img_w);
    tg_text_append_string(text, "    \"fixed_input_size\": true,\n    \"mean\": ");
    add_triple(text, p->mean);
    tg_text_append_string(text, ",\n    \"std\": ");
    add_triple(text, p->std);
    tg_text_append_string(text, ",\n    \"crop_pct\": ");
    tg_text_append_double(text, p->crop_pct);
    tg_text_append_format(text, ",\n    \"crop_mode\": \"%s\",\n    \"interpolation\": \"%s\",\n",
                          p->crop_mode == TG_CROP_SQUASH ? "squash" : "center",
                          p->interpolation == TG_BILINEAR ? "bilinear" : "bicubic");
    if (info->license) {
        tg_text_append_string(text, "    \"license\": ");
        add_string(text, info->license);
        tg_text_append_string(text, ",\n");
    }
    tg_text_append_format(text,
                          "    \"first_conv\": \"patch_embed.proj\",\n    \"classifier\": %s\n  }",
                          info->config.dist_token ? "[\"head\", \"head_dist\"]" : "\"head\"");
}

static void add_own(tg_text *text, const tg_model_info *info)
{
    tg_text_append_string(text, ",\n  \"tagine\": {\"norm_eps\": ");
    add_float(text, info->config.norm_eps);
    tg_text_append_format(text, ", \"exif_orientation\": %s}\n}\n",
                          truth(info->preprocess.exif_orientation));
}

static tg_status write_timm(const char *folder, const tg_model_info *info)
{
    const tg_vit_config *c = &info->config;
    tg_vit_config usual;
    tg_text text = {0};
    TG_TRY(tg_vit_config_preset(c->architecture, &usual));
    if (c->dist_token != usual.dist_token)
        return tg_fail(TG_ERROR_USAGE,
                       "architecture %s: timm makes the distillation token a matter of the name; "
                       "use a deit_*_distilled name",
                       c->architecture);
    if (c->norm_eps != 1e-6f)
        tg_log_warning("timm has no setting for the LayerNorm eps in config.json: it will use 1e-6 "
                       "where this model has %g",
                       (double)c->norm_eps);
    tg_text_append_format(&text, "{\n  \"architecture\": \"%s\",\n  \"num_classes\": %zu,\n",
                          usual.architecture, c->num_classes);
    tg_text_append_format(&text, "  \"num_features\": %zu,\n  \"global_pool\": \"%s\",\n",
                          c->embed_dim, c->pool == TG_POOL_AVG ? "avg" : "token");
    for (size_t i = 0; i < info->class_count; i++) {
        tg_text_append_string(&text, i ? ",\n    " : "  \"label_names\": [\n    ");
        add_string(&text, info->class_names[i]);
    }
    if (info->class_count)
        tg_text_append_string(&text, "\n  ],\n");
    tg_text_append_string(&text, "  \"model_args\": ");
    if (!text.failed)
        add_args(&text, c, &usual);
    tg_text_append_string(&text, ",\n");
    add_pretrained(&text, info);
    add_own(&text, info);
    tg_status status = write_text(folder, "config.json", &text);
    tg_text_done(&text);
    return status;
}

static const char *hf_class(tg_hf_kind kind, const tg_vit_config *c, char out[64])
{
    static const char *const stems[] = {"ViT", "DeiT", "Dinov2", "Dinov2WithRegisters"};
    const char *tail = c->num_classes == 0 ? "Model"
                       : c->dist_token     ? "ForImageClassificationWithTeacher"
                                           : "ForImageClassification";
    tg_number_print(out, 64, "%s%s", stems[kind], tail);
    return out;
}

static void add_labels(tg_text *text, const tg_model_info *info, bool from_name)
{
    tg_text_append_format(text, "  \"%s\": {", from_name ? "label2id" : "id2label");
    for (size_t i = 0; i < info->config.num_classes; i++) {
        char unnamed[32];
        tg_number_print(unnamed, sizeof unnamed, "LABEL_%zu", i);
        const char *name = info->class_count ? info->class_names[i] : unnamed;
        tg_text_append_string(text, i ? ",\n    " : "\n    ");
        if (!from_name)
            tg_text_append_format(text, "\"%zu\": ", i);
        add_string(text, name);
        if (from_name)
            tg_text_append_format(text, ": %zu", i);
    }
    tg_text_append_string(text, "\n  },\n");
}

static void add_hf_widths(tg_text *text, tg_hf_kind kind, const tg_vit_config *c)
{
    tg_text_append_format(text,
                          "  \"hidden_size\": %zu,\n  \"num_hidden_layers\": %zu,\n"
                          "  \"num_attention_heads\": %zu,\n  \"num_channels\": 3,\n"
                          "  \"patch_size\": %zu,\n  \"hidden_act\": \"%s\",\n"
                          "  \"qkv_bias\": %s,\n  \"layer_norm_eps\": ",
                          c->embed_dim, c->depth, c->num_heads, c->patch,
                          c->gelu == TG_GELU_TANH ? "gelu_pytorch_tanh" : "gelu",
                          truth(c->qkv_bias));
    add_float(text, c->norm_eps);
    if (c->img_h == c->img_w)
        tg_text_append_format(text, ",\n  \"image_size\": %zu,\n", c->img_h);
    else
        tg_text_append_format(text, ",\n  \"image_size\": [%zu, %zu],\n", c->img_h, c->img_w);
    if (!c->layer_scale) {
        tg_text_append_format(text, "  \"intermediate_size\": %zu,\n", c->mlp_hidden);
        return;
    }
    tg_text_append_string(text, "  \"use_swiglu_ffn\": false,\n  \"layerscale_value\": ");
    add_float(text, c->layer_scale_init);
    tg_text_append_format(text, ",\n  \"mlp_ratio\": %zu,\n", c->mlp_hidden / c->embed_dim);
    if (kind == TG_HF_DINOV2_REG)
        tg_text_append_format(text, "  \"num_register_tokens\": %zu,\n", c->reg_tokens);
}

static tg_status write_processor(const char *folder, const tg_preprocess *p)
{
    tg_text text = {0};
    int h = p->height_px, w = p->width_px, shorter = h < w ? h : w;
    bool squash = p->crop_mode == TG_CROP_SQUASH;
    tg_text_append_format(&text,
                          "{\n  \"image_processor_type\": \"%s\",\n  \"do_convert_rgb\": true,\n"
                          "  \"do_resize\": true,\n",
                          squash ? "DeiTImageProcessor" : "BitImageProcessor");
    if (squash)
        tg_text_append_format(&text, "  \"size\": {\"height\": %d, \"width\": %d},\n",
                              (int)floor(h / p->crop_pct), (int)floor(w / p->crop_pct));
    else
        tg_text_append_format(&text, "  \"size\": {\"shortest_edge\": %d},\n",
                              (int)floor(shorter / p->crop_pct));
    tg_text_append_format(&text,
                          "  \"resample\": %d,\n  \"do_center_crop\": true,\n"
                          "  \"crop_size\": {\"height\": %d, \"width\": %d},\n"
                          "  \"do_rescale\": true,\n  \"rescale_factor\": 0.00392156862745098,\n"
                          "  \"do_normalize\": true,\n  \"image_mean\": ",
                          p->interpolation == TG_BILINEAR ? 2 : 3, h, w);
    add_triple(&text, p->mean);
    tg_text_append_string(&text, ",\n  \"image_std\": ");
    add_triple(&text, p->std);
    tg_text_append_string(&text, "\n}\n");
    tg_status status = write_text(folder, "preprocessor_config.json", &text);
    tg_text_done(&text);
    return status;
}

static tg_status write_hf(const char *folder, const tg_model_info *info)
{
    const tg_vit_config *c = &info->config;
    tg_hf_kind kind = tg_naming_hf_kind(c);
    char class_name[64];
    tg_text text = {0};
    if (kind == TG_HF_NONE || (c->layer_scale && c->mlp_hidden % c->embed_dim))
        return tg_fail(TG_ERROR_USAGE,
                       "model %s: Hugging Face's library has no architecture that computes this "
                       "network (pooling, tokens or MLP width); write it in timm's naming",
                       c->architecture);
    tg_text_append_format(&text, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n",
                          hf_class(kind, c, class_name), tg_naming_hf_type(kind));
    if (c->num_classes) {
        add_labels(&text, info, false);
        add_labels(&text, info, true);
    }
    add_hf_widths(&text, kind, c);
    if (info->license) {
        tg_text_append_string(&text, "  \"license\": ");
        add_string(&text, info->license);
        tg_text_append_string(&text, ",\n");
    }
    tg_text_append_string(&text, "  \"dtype\": \"float32\"\n}\n");
    tg_status status = write_text(folder, "config.json", &text);
    tg_text_done(&text);
    return status == TG_OK ? write_processor(folder, &info->preprocess) : status;
}

tg_status tg_config_json_write(const char *folder, const tg_model_info *info, tg_naming naming)
{
    if (info->class_count && info->class_count != info->config.num_classes)
        return tg_fail(TG_ERROR_USAGE, "model %s: %zu class names for %zu classes",
                       info->config.architecture, info->class_count, info->config.num_classes);
    return naming == TG_NAMING_HF ? write_hf(folder, info) : write_timm(folder, info);
}
