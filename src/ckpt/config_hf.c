#include "ckpt/config_json.h"
#include "ckpt/naming.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Pillow's numbers, which preprocessor_config.json uses. */
enum { PIL_BILINEAR = 2, PIL_BICUBIC = 3 };

static tg_status read_kind(const tg_json_node *config, tg_hf_kind *out)
{
    const char *type;
    TG_TRY(tg_json_get_string(config, "model_type", TG_REQUIRED, &type));
    for (int kind = 0; kind < TG_HF_NONE; kind++)
        if (strcmp(type, tg_naming_hf_type((tg_hf_kind)kind)) == 0) {
            *out = (tg_hf_kind)kind;
            return TG_OK;
        }
    return tg_json_fail(config,
                        "model_type %.64s is not supported (vit, deit, dinov2, "
                        "dinov2_with_registers)",
                        type);
}

static tg_status read_activation(const tg_json_node *config, tg_vit_config *out)
{
    static const char *const tanh_names[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"};
    const char *act = "gelu";
    TG_TRY(tg_json_get_string(config, "hidden_act", TG_OPTIONAL, &act));
    out->gelu = TG_GELU_EXACT;
    if (strcmp(act, "gelu") == 0)
        return TG_OK;
    out->gelu = TG_GELU_TANH;
    for (size_t i = 0; i < sizeof tanh_names / sizeof tanh_names[0]; i++)
        if (strcmp(act, tanh_names[i]) == 0)
            return TG_OK;
    return tg_json_fail(config, "hidden_act %.32s is not supported", act);
}

static tg_status read_image(const tg_json_node *config, tg_vit_config *out)
{
    size_t image[2] = {224, 224}, patch[2] = {16, 16};
    tg_json_node node;
    if (tg_json_find(config, "image_size", &node))
        TG_TRY(tg_config_read_size(&node, image));
    if (tg_json_find(config, "patch_size", &node))
        TG_TRY(tg_config_read_size(&node, patch));
    if (patch[0] != patch[1])
        return tg_json_fail(config, "patches must be square");
    out->img_h = image[0];
    out->img_w = image[1];
    out->patch = patch[0];
    return TG_OK;
}

/* transformers' defaults where the file is silent. */
static tg_status read_widths(const tg_json_node *config, bool dinov2, tg_vit_config *out)
{
    double ratio = 4, eps = dinov2 ? 1e-6 : 1e-12;
    size_t channels = 3;
    out->embed_dim = 768;
    out->depth = out->num_heads = 12;
    TG_TRY(tg_json_get_size(config, "hidden_size", TG_OPTIONAL, &out->embed_dim));
    TG_TRY(tg_json_get_size(config, "num_hidden_layers", TG_OPTIONAL, &out->depth));
    TG_TRY(tg_json_get_size(config, "num_attention_heads", TG_OPTIONAL, &out->num_heads));
    TG_TRY(tg_json_get_size(config, "num_channels", TG_OPTIONAL, &channels));
    TG_TRY(tg_json_get_double(config, "layer_norm_eps", TG_OPTIONAL, &eps));
    if (channels != 3)
        return tg_json_fail(config, "num_channels %zu: pictures must have 3", channels);
    out->norm_eps = (float)eps;
    if (!dinov2) {
        out->mlp_hidden = 3072;
        return tg_json_get_size(config, "intermediate_size", TG_OPTIONAL, &out->mlp_hidden);
    }
    TG_TRY(tg_json_get_double(config, "mlp_ratio", TG_OPTIONAL, &ratio));
    double hidden = (double)out->embed_dim * ratio;
    if (!(hidden >= 1 && hidden < 1e9))
        return tg_json_fail(config, "mlp_ratio: impossible");
    out->mlp_hidden = (size_t)hidden;
    return TG_OK;
}

static tg_status read_dinov2(const tg_json_node *config, tg_hf_kind kind, tg_vit_config *out)
{
    bool swiglu = false, norm = true;
    double scale = 1;
    TG_TRY(tg_json_get_bool(config, "use_swiglu_ffn", TG_OPTIONAL, &swiglu));
    TG_TRY(tg_json_get_bool(config, "apply_layernorm", TG_OPTIONAL, &norm));
    TG_TRY(tg_json_get_double(config, "layerscale_value", TG_OPTIONAL, &scale));
    if (swiglu)
        return tg_json_fail(config, "use_swiglu_ffn: SwiGLU is not supported");
    if (!norm)
        return tg_json_fail(config, "apply_layernorm false is not supported");
    out->layer_scale = true;
    out->layer_scale_init = (float)scale;
    if (kind == TG_HF_DINOV2)
        return TG_OK;
    out->reg_tokens = 4;
    out->no_embed_class = true;
    return tg_json_get_size(config, "num_register_tokens", TG_OPTIONAL, &out->reg_tokens);
}

/* LABEL_0, LABEL_1, ... is transformers' way of having no names. */
static void drop_default_names(tg_model_info *info)
{
    for (size_t i = 0; i < info->class_count; i++) {
        char unnamed[32];
        snprintf(unnamed, sizeof unnamed, "LABEL_%zu", i);
        if (strcmp(info->class_names[i], unnamed) != 0)
            return;
    }
    tg_model_names_done(info);
}

/* What the class of the model says about heads: none unless it ends in ForImageClassification or
 * ...WithTeacher (two heads). */
static tg_status read_heads(const tg_json_node *config, tg_hf_kind kind, tg_model_info *out)
{
    tg_json_node list, names;
    bool found, teacher = false, classifies = false;
    TG_TRY(tg_json_get_array(config, "architectures", TG_OPTIONAL, &list, &found));
    if (found && tg_json_count(&list) > 0) {
        const char *name;
        tg_json_node element = tg_json_element(&list, 0);
        TG_TRY(tg_json_as_string(&element, &name));
        classifies = strstr(name, "ForImageClassification") != NULL;
        teacher = strstr(name, "ForImageClassificationWithTeacher") != NULL;
    }
    out->config.dist_token = kind == TG_HF_DEIT && teacher;
    if (kind == TG_HF_DEIT && !teacher)
        out->config.reg_tokens = 1; /* the token is there, but no head reads it */
    if (!classifies)
        return TG_OK;
    out->config.num_classes = 2;
    TG_TRY(tg_json_get_size(config, "num_labels", TG_OPTIONAL, &out->config.num_classes));
    if (!tg_json_find(config, "id2label", &names) || tg_json_node_kind(&names) == TG_JSON_NULL)
        return TG_OK;
    TG_TRY(tg_config_read_names(&names, true, out));
    out->config.num_classes = out->class_count;
    drop_default_names(out);
    return TG_OK;
}

/* A timm name for the network, so that it can be written in timm's style: a preset of the same
 * family and width if there is one. */
static void name_architecture(tg_hf_kind kind, tg_vit_config *config)
{
    const char *fallback = kind == TG_HF_DINOV2       ? "vit_base_patch14_dinov2"
                           : kind == TG_HF_DINOV2_REG ? "vit_base_patch14_reg4_dinov2"
                           : config->dist_token       ? "deit_base_distilled_patch16_224"
                           : kind == TG_HF_DEIT       ? "deit_base_patch16_224"
                                                      : "vit_base_patch16_224";
    const char *chosen = fallback;
    int best = 0;
    for (const char *const *name = tg_vit_preset_names(); *name; name++) {
        tg_vit_config preset;
        if (tg_vit_config_preset(*name, &preset) < 0)
            continue;
        if (preset.family != config->family || preset.embed_dim != config->embed_dim ||
            preset.dist_token != config->dist_token || preset.layer_scale != config->layer_scale ||
            (preset.reg_tokens > 0) != (kind == TG_HF_DINOV2_REG))
            continue;
        int score = 1 + 2 * (preset.patch == config->patch) + (preset.img_h == config->img_h);
        if (score > best) {
            best = score;
            chosen = *name;
        }
    }
    snprintf(config->architecture, sizeof config->architecture, "%s", chosen);
}

static tg_status read_network(const tg_json_node *config, tg_hf_kind kind, tg_model_info *out)
{
    static const tg_family families[] = {TG_FAMILY_VIT, TG_FAMILY_DEIT, TG_FAMILY_DINOV2,
                                         TG_FAMILY_DINOV2};
    bool dinov2 = kind == TG_HF_DINOV2 || kind == TG_HF_DINOV2_REG;
    tg_vit_config *c = &out->config;
    *c = (tg_vit_config){
        .family = families[kind], .class_token = true, .qkv_bias = true, .pool = TG_POOL_TOKEN};
    snprintf(c->architecture, sizeof c->architecture, "%s", tg_naming_hf_type(kind));
    TG_TRY(read_widths(config, dinov2, c));
    TG_TRY(read_image(config, c));
    TG_TRY(read_activation(config, c));
    TG_TRY(tg_json_get_bool(config, "qkv_bias", TG_OPTIONAL, &c->qkv_bias));
    if (dinov2)
        TG_TRY(read_dinov2(config, kind, c));
    TG_TRY(read_heads(config, kind, out));
    name_architecture(kind, c);
    return TG_OK;
}

/* The processors' defaults: ViT squashes to its input with 0.5 and bilinear; the others resize to
 * 256/224 of it, bicubic, ImageNet's values, and crop; DeiT squashes, DINOv2 keeps the shape. */
static tg_preprocess usual(tg_hf_kind kind, const tg_vit_config *config)
{
    tg_preprocess out = tg_preprocess_default((int)config->img_h);
    out.width_px = (int)config->img_w;
    out.crop_pct = 224.0 / 256.0;
    if (kind == TG_HF_VIT) {
        out.crop_pct = 1;
        out.interpolation = TG_BILINEAR;
        for (int i = 0; i < 3; i++)
            out.mean[i] = out.std[i] = 0.5f;
    }
    if (kind == TG_HF_VIT || kind == TG_HF_DEIT)
        out.crop_mode = TG_CROP_SQUASH;
    return out;
}

/* size or crop_size: a number, {height, width} or {shortest_edge} (then both values are the edge).
 */
static tg_status read_box(const tg_json_node *node, bool *out_shortest, double out_px[2])
{
    int64_t px[2];
    *out_shortest = false;
    if (tg_json_node_kind(node) != TG_JSON_OBJECT) {
        TG_TRY(tg_json_as_int(node, &px[0]));
        px[1] = px[0];
    } else {
        tg_json_node edge;
        *out_shortest = tg_json_find(node, "shortest_edge", &edge);
        TG_TRY(
            tg_json_get_int(node, *out_shortest ? "shortest_edge" : "height", TG_REQUIRED, &px[0]));
        TG_TRY(
            tg_json_get_int(node, *out_shortest ? "shortest_edge" : "width", TG_REQUIRED, &px[1]));
    }
    for (int i = 0; i < 2; i++) {
        if (px[i] <= 0 || px[i] > 1 << 20)
            return tg_json_fail(node, "impossible size");
        out_px[i] = (double)px[i];
    }
    return TG_OK;
}

/* Resize, then crop: crop_pct is what the crop keeps of the side that the resize sets. out_input:
 * height and width that come out, untouched where the file does not say. */
static tg_status read_crop(const tg_json_node *file, tg_preprocess *out, double out_input[2])
{
    tg_json_node node;
    bool crops = false, shortest, ignored;
    double size[2], crop[2];
    TG_TRY(tg_json_get_bool(file, "do_center_crop", TG_OPTIONAL, &crops));
    if (!tg_json_find(file, "size", &node) || tg_json_node_kind(&node) == TG_JSON_NULL)
        return TG_OK;
    TG_TRY(read_box(&node, &shortest, size));
    memcpy(crop, size, sizeof crop);
    if (crops && tg_json_find(file, "crop_size", &node) && tg_json_node_kind(&node) != TG_JSON_NULL)
        TG_TRY(read_box(&node, &ignored, crop));
    double side = shortest ? fmin(crop[0], crop[1]) : crop[0];
    if (side > size[0])
        return tg_json_fail(file, "crop_size is larger than size");
    if (!(side >= TG_CROP_PCT_MIN * size[0]))
        return tg_json_fail(file, "crop_size is below a hundredth of size");
    out->crop_pct = side / size[0];
    out->crop_mode = shortest ? TG_CROP_CENTER : TG_CROP_SQUASH;
    if (crops || !shortest)
        memcpy(out_input, crop, sizeof crop);
    return TG_OK;
}

static tg_status read_processor(const tg_json_node *file, tg_preprocess *out, double out_input[2])
{
    double mean[3], std[3];
    int64_t resample = out->interpolation == TG_BILINEAR ? PIL_BILINEAR : PIL_BICUBIC;
    for (int i = 0; i < 3; i++) {
        mean[i] = out->mean[i];
        std[i] = out->std[i];
    }
    TG_TRY(tg_json_get_doubles(file, "image_mean", TG_OPTIONAL, 3, mean));
    TG_TRY(tg_json_get_doubles(file, "image_std", TG_OPTIONAL, 3, std));
    TG_TRY(tg_json_get_int(file, "resample", TG_OPTIONAL, &resample));
    if (resample != PIL_BILINEAR && resample != PIL_BICUBIC)
        return tg_json_fail(file, "resample %lld is not supported (2 bilinear, 3 bicubic)",
                            (long long)resample);
    out->interpolation = resample == PIL_BILINEAR ? TG_BILINEAR : TG_BICUBIC;
    for (int i = 0; i < 3; i++) {
        if (!((float)std[i] > 0))
            return tg_json_fail(file, "image_std must be positive");
        out->mean[i] = (float)mean[i];
        out->std[i] = (float)std[i];
    }
    return read_crop(file, out, out_input);
}

/* transformers' ViT and DeiT refuse photos of another size than image_size; its DINOv2 takes them
 * and resamples the positions (the published ones have image_size 518 and crops of 224). */
static tg_status fit_input(const tg_json_node *file, tg_hf_kind kind, const double input[2],
                           tg_model_info *out)
{
    tg_vit_config *c = &out->config;
    size_t h = (size_t)input[0], w = (size_t)input[1];
    if (h == c->img_h && w == c->img_w)
        return TG_OK;
    if (kind == TG_HF_VIT || kind == TG_HF_DEIT)
        return tg_json_fail(file,
                            "the photos are %zux%zu, but image_size in config.json is %zux%zu; "
                            "make them equal (positions are resampled to that size)",
                            h, w, c->img_h, c->img_w);
    c->img_h = h;
    c->img_w = w;
    out->preprocess.height_px = (int)h;
    out->preprocess.width_px = (int)w;
    return TG_OK;
}

tg_status tg_config_hf_read(const tg_json_node *config, const tg_json_node *preprocessor,
                            tg_model_info *out)
{
    tg_hf_kind kind = TG_HF_NONE;
    const char *license = NULL;
    TG_TRY(read_kind(config, &kind));
    out->naming = TG_NAMING_HF;
    TG_TRY(read_network(config, kind, out));
    TG_TRY(tg_json_get_string(config, "license", TG_OPTIONAL, &license));
    if (license && !(out->license = strdup(license)))
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    out->preprocess = usual(kind, &out->config);
    if (!preprocessor)
        return TG_OK;
    double input[2] = {(double)out->config.img_h, (double)out->config.img_w};
    TG_TRY(read_processor(preprocessor, &out->preprocess, input));
    return fit_input(preprocessor, kind, input, out);
}
