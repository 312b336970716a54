/* Files that fit only partly are refused with every tensor named; known wrappers are seen through;
 * heads are new only when asked for; configurations that mean another network are refused. */
#include "support/check.h"

#include "base/log.h"
#include "ckpt/model_folder.h"
#include "ckpt/preset_preprocess.h"
#include "ckpt/safetensors.h"
#include "os/file.h"
#include "os/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[512], weights[600], config_path[600];
static char said[4096]; /* what was logged */

static void listen(void *user, tg_log_level level, const char *line)
{
    (void)user;
    (void)level;
    strncat(said, line, sizeof said - strlen(said) - 1);
    strncat(said, "\n", sizeof said - strlen(said) - 1);
}

static tg_vit_config small(const char *architecture)
{
    tg_vit_config c;
    assert_ok(tg_vit_config_preset(architecture, &c));
    c.img_h = c.img_w = 2 * c.patch;
    c.embed_dim = 12;
    c.num_heads = 3;
    c.depth = 1;
    c.mlp_hidden = 24;
    if (c.num_classes)
        c.num_classes = 4;
    return c;
}

/* Writes a model of this architecture into the folder and returns its parameters. */
static float *make(const char *architecture, tg_naming naming)
{
    tg_param_table table = {0};
    tg_model_info info = {.config = small(architecture)};
    char *names[] = {"a", "b", "c", "d"};
    info.preprocess = tg_preset_preprocess(&info.config);
    if (info.config.num_classes) {
        info.class_names = names;
        info.class_count = 4;
    }
    assert_ok(tg_vit_params(&info.config, &table));
    float *params = malloc(table.elements * sizeof *params);
    assert_non_null(params);
    tg_vit_init_weights(&info.config, &table, 9, params);
    assert_ok(tg_model_write(folder, &info, &table, params, naming));
    tg_param_table_done(&table);
    return params;
}

/* Reads the folder as wanted; *out gets the parameters (NULL to throw them away). */
static tg_status load(const tg_model_want *want, float **out, size_t *out_elements)
{
    tg_model_info info = {0};
    tg_param_table table = {0};
    TG_TRY(tg_model_read_info(folder, &info));
    tg_model_apply_want(&info, want);
    assert_ok(tg_vit_params(&info.config, &table));
    float *params = malloc(table.elements * sizeof *params);
    assert_non_null(params);
    tg_status status = tg_model_read_weights(folder, &info, &table, want, params);
    if (out_elements)
        *out_elements = table.elements;
    if (out && status == TG_OK)
        *out = params;
    else
        free(params);
    tg_param_table_done(&table);
    tg_model_info_done(&info);
    return status;
}

static const tg_model_want as_it_is = {0};

typedef void (*edit)(tg_safetensors_tensor *tensors, size_t *count);

/* Rewrites the weights after `change` had its way with names, shapes and the count. */
static void rewrite(edit change)
{
    tg_safetensors file;
    assert_ok(tg_safetensors_open(weights, &file));
    size_t count = file.count, original = count;
    tg_safetensors_tensor *tensors = calloc(count + 1, sizeof *tensors);
    void **data = calloc(count, sizeof *data);
    for (size_t i = 0; i < count; i++) {
        const tg_safetensors_entry *entry = &file.items[i];
        data[i] = malloc((size_t)(entry->end - entry->begin) + 1);
        assert_ok(tg_safetensors_read_raw(&file, entry, data[i]));
        tensors[i].name = strdup(entry->name);
        tensors[i].dtype = entry->dtype;
        tensors[i].ndim = entry->ndim;
        memcpy(tensors[i].shape, entry->shape, sizeof entry->shape);
        tensors[i].data = data[i];
    }
    change(tensors, &count);
    assert_ok(tg_safetensors_write(weights, tensors, count, NULL, 0));
    for (size_t i = 0; i < original + 1; i++)
        free((char *)tensors[i].name);
    for (size_t i = 0; i < original; i++)
        free(data[i]);
    free(data);
    free(tensors);
    tg_safetensors_close(&file);
}

static void rename_all(tg_safetensors_tensor *tensors, size_t count, const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        char *name;
        assert_true(asprintf(&name, "%s%s", prefix, tensors[i].name) > 0);
        free((char *)tensors[i].name);
        tensors[i].name = name;
    }
}

static void prefix_known(tg_safetensors_tensor *tensors, size_t *count)
{
    rename_all(tensors, *count, "module._orig_mod.model.");
}

static void prefix_unknown(tg_safetensors_tensor *tensors, size_t *count)
{
    rename_all(tensors, *count, "foo.bar.");
}

static tg_safetensors_tensor *find(tg_safetensors_tensor *tensors, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void rename_one(tg_safetensors_tensor *tensors, size_t count, const char *from,
                       const char *to)
{
    tg_safetensors_tensor *tensor = find(tensors, count, from);
    free((char *)tensor->name);
    tensor->name = strdup(to);
}

/* One missing (renamed), thereby one unexpected, and one of another shape. */
static void three_faults(tg_safetensors_tensor *tensors, size_t *count)
{
    rename_one(tensors, *count, "blocks.0.attn.qkv.weight", "blocks.0.attn.qvk.weight");
    tg_safetensors_tensor *fc1 = find(tensors, *count, "blocks.0.mlp.fc1.weight");
    fc1->shape[0] = 12;
    fc1->shape[1] = 24;
}

static void add_ignored(tg_safetensors_tensor *tensors, size_t *count)
{
    tensors[*count] = *find(tensors, *count, "cls_token");
    tensors[*count].name = strdup("pre_logits.fc.weight");
    ++*count;
}

static void add_twin(tg_safetensors_tensor *tensors, size_t *count)
{
    tensors[*count] = *find(tensors, *count, "cls_token");
    tensors[*count].name = strdup("module.cls_token");
    ++*count;
}

static void old_scale_names(tg_safetensors_tensor *tensors, size_t *count)
{
    rename_one(tensors, *count, "blocks.0.ls1.gamma", "blocks.0.gamma_1");
    rename_one(tensors, *count, "blocks.0.ls2.gamma", "blocks.0.gamma_2");
}

static void dinov2_chunks(tg_safetensors_tensor *tensors, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        if (strncmp(tensors[i].name, "blocks.", 7) == 0) {
            char *name;
            assert_true(asprintf(&name, "blocks.0.%s", tensors[i].name + 7) > 0);
            free((char *)tensors[i].name);
            tensors[i].name = name;
        }
}

static void loads_the_same(edit change, const char *architecture)
{
    float *params = make(architecture, TG_NAMING_TIMM), *got = NULL;
    size_t elements;
    rewrite(change);
    assert_ok(load(&as_it_is, &got, &elements));
    assert_memory_equal(got, params, elements * sizeof *got);
    free(got);
    free(params);
}

static void wrappers_and_old_names_are_seen_through(void **state)
{
    (void)state;
    loads_the_same(prefix_known, "vit_tiny_patch16_224");
    loads_the_same(add_ignored, "vit_tiny_patch16_224");
    loads_the_same(old_scale_names, "deit3_small_patch16_224");
    loads_the_same(dinov2_chunks, "vit_small_patch14_dinov2");
}

/* As the DINOv2 code writes them: a mask token, register_tokens, and a position for the class token. */
static void dinov2_spelling(tg_safetensors_tensor *tensors, size_t *count)
{
    static float rows[5 * 12];
    for (int i = 0; i < 12; i++)
        rows[i] = (float)(i + 1);
    tg_safetensors_tensor *pos = find(tensors, *count, "pos_embed");
    memcpy(rows + 12, pos->data, 4 * 12 * sizeof rows[0]);
    pos->data = rows;
    pos->shape[1] = 5;
    rename_one(tensors, *count, "reg_token", "register_tokens");
    tensors[*count] = (tg_safetensors_tensor){
        .name = strdup("mask_token"), .dtype = TG_F32, .ndim = 2, .shape = {1, 12}, .data = rows};
    ++*count;
}

static void the_class_position_joins_the_class_token(void **state)
{
    (void)state;
    float *params = make("vit_small_patch14_reg4_dinov2", TG_NAMING_TIMM), *got = NULL;
    size_t elements;
    rewrite(dinov2_spelling);
    assert_ok(load(&as_it_is, &got, &elements));
    for (size_t i = 0; i < 12; i++) /* the class token is the first of the table */
        assert_true(got[i] == params[i] + (float)(i + 1));
    assert_memory_equal(got + 12, params + 12, (elements - 12) * sizeof *got);
    free(got);
    free(params);
}

static void resampled(const char *architecture, edit change, const char *rule)
{
    free(make(architecture, TG_NAMING_TIMM));
    if (change)
        rewrite(change);
    const tg_model_want want = {.img_h = 14 * 3, .img_w = 14 * 5};
    said[0] = '\0';
    assert_ok(load(&want, NULL, NULL));
    assert_non_null(strstr(said, "from 2x2 to 3x5"));
    assert_non_null(strstr(said, rule));
}

static void add_mask_token(tg_safetensors_tensor *tensors, size_t *count)
{
    tensors[*count] = *find(tensors, *count, "norm.weight");
    tensors[*count].name = strdup("mask_token");
    tensors[*count].ndim = 2;
    tensors[*count].shape[1] = tensors[*count].shape[0];
    tensors[*count].shape[0] = 1;
    ++*count;
}

static void the_writers_rule_resamples(void **state)
{
    (void)state;
    resampled("vit_small_patch14_dinov2", NULL, "antialiased");
    resampled("vit_small_patch14_dinov2", add_mask_token, "offset 0.1");
    resampled("vit_small_patch14_reg4_dinov2", dinov2_spelling, "antialiased");
}

static void partial_fits_are_listed(void **state)
{
    (void)state;
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(three_faults);
    said[0] = '\0';
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT,
                 "1 tensors missing, 1 of another shape, 1 unexpected");
    const char *message = tg_error_message();
    assert_non_null(strstr(message, "missing blocks.0.attn.qkv.weight"));
    assert_non_null(strstr(message, "unexpected blocks.0.attn.qvk.weight"));
    assert_non_null(strstr(message, "mis-shaped blocks.0.mlp.fc1.weight [12,24], needed [24,12]"));
    assert_non_null(strstr(said, "missing blocks.0.attn.qkv.weight"));
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(prefix_unknown);
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT, "20 tensors missing");
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(add_twin);
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT, "are the same one");
}

static bool head_is_fresh(const char *architecture, tg_naming naming, size_t classes)
{
    free(make(architecture, naming));
    const tg_model_want want = {.fresh_head = true, .num_classes = classes, .seed = 5};
    float *got = NULL;
    said[0] = '\0';
    assert_ok(load(&want, &got, NULL));
    free(got);
    return strstr(said, "new") != NULL;
}

static void heads_are_new_when_the_count_differs(void **state)
{
    (void)state;
    assert_true(head_is_fresh("vit_tiny_patch16_224", TG_NAMING_TIMM, 7));
    assert_true(head_is_fresh("deit_tiny_distilled_patch16_224", TG_NAMING_TIMM, 7));
    assert_true(head_is_fresh("deit_tiny_distilled_patch16_224", TG_NAMING_HF, 7));
    assert_true(head_is_fresh("vit_small_patch14_dinov2", TG_NAMING_TIMM, 7));
    assert_true(head_is_fresh("vit_small_patch14_reg4_dinov2", TG_NAMING_HF, 7));
    assert_false(head_is_fresh("vit_tiny_patch16_224", TG_NAMING_TIMM, 4));
    free(make("deit_tiny_distilled_patch16_224", TG_NAMING_TIMM));
    const tg_model_want features = {.no_head = true};
    assert_ok(load(&features, NULL, NULL));
}

/* A fresh head is what a fresh model of the same shape has. */
static void fresh_heads_are_reproducible(void **state)
{
    (void)state;
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    const tg_model_want want = {.fresh_head = true, .num_classes = 7, .seed = 5};
    tg_vit_config config = small("vit_tiny_patch16_224");
    tg_param_table table = {0};
    float *got = NULL;
    size_t elements;
    config.num_classes = 7;
    assert_ok(load(&want, &got, &elements));
    assert_ok(tg_vit_params(&config, &table));
    assert_int_equal(table.elements, elements);
    float *fresh = malloc(elements * sizeof *fresh);
    tg_vit_init_weights(&config, &table, 5, fresh);
    const tg_param *head = tg_param_find(&table, "head.weight");
    assert_memory_equal(got + head->offset, fresh + head->offset, head->count * sizeof *fresh);
    free(fresh);
    free(got);
    tg_param_table_done(&table);
}

static float not_finite[12 * 24];

static void break_fc2(tg_safetensors_tensor *tensors, size_t *count)
{
    tg_safetensors_tensor *fc2 = find(tensors, *count, "blocks.0.mlp.fc2.weight");
    memcpy(not_finite, fc2->data, sizeof not_finite);
    not_finite[7] = INFINITY;
    not_finite[100] = -NAN;
    fc2->data = not_finite;
}

static void break_head(tg_safetensors_tensor *tensors, size_t *count)
{
    memcpy(not_finite, find(tensors, *count, "head.bias")->data, 4 * sizeof *not_finite);
    not_finite[3] = NAN;
    find(tensors, *count, "head.bias")->data = not_finite;
}

static void break_positions(tg_safetensors_tensor *tensors, size_t *count)
{
    memcpy(not_finite, find(tensors, *count, "pos_embed")->data, 60 * sizeof *not_finite);
    not_finite[59] = NAN;
    find(tensors, *count, "pos_embed")->data = not_finite;
}

static void weights_that_are_not_finite_are_named(void **state)
{
    (void)state;
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(break_fc2);
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT,
                 "model.safetensors: tensor blocks.0.mlp.fc2.weight: 2 of its 288 values are not "
                 "finite (the first is number 7)");
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(break_positions);
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT, "tensor pos_embed: 1 of its 60");
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    rewrite(break_head);
    assert_error(load(&as_it_is, NULL, NULL), TG_ERROR_INPUT, "tensor head.bias: 1 of its 4");
    const tg_model_want fresh = {.fresh_head = true, .num_classes = 7};
    assert_ok(load(&fresh, NULL, NULL)); /* what is not used may be anything */
}

/* As published: the weights are for larger pictures than the processor makes. */
static void dinov2_follows_its_processor(void **state)
{
    (void)state;
    static const char processor[] = "{\"size\":{\"shortest_edge\":48},\"do_center_crop\":true,"
                                    "\"crop_size\":{\"height\":42,\"width\":42}}";
    char path[600];
    free(make("vit_small_patch14_dinov2", TG_NAMING_HF));
    snprintf(path, sizeof path, "%s/preprocessor_config.json", folder);
    assert_ok(tg_file_write(path, processor, strlen(processor)));
    said[0] = '\0';
    assert_ok(load(&as_it_is, NULL, NULL));
    assert_non_null(strstr(said, "positions resampled from 2x2 to 3x3 patches (bicubic)"));
    remove(path);
}

static void write_config(const char *text)
{
    assert_ok(tg_folder_make(folder));
    assert_ok(tg_file_write(config_path, text, strlen(text)));
}

static void refuses(const char *text, const char *part)
{
    tg_model_info info;
    write_config(text);
    assert_error(tg_model_read_info(folder, &info), TG_ERROR_INPUT, part);
    assert_non_null(strstr(tg_error_message(), "config.json"));
}

static void other_networks_are_refused(void **state)
{
    (void)state;
    refuses("{}", "architecture");
    refuses("[]", "object");
    refuses("{\"architecture\":\"resnet50\"}", "unknown model resnet50");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{\"qk_norm\":true}}",
            "qk_norm");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{\"global_pool\":\"map\"}}",
            "map");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{\"num_heads\":5}}",
            "num_heads 5");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"model_args\":{\"img_size\":[-16,16]}}",
            "img_size");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"num_classes\":3,"
            "\"label_names\":[\"a\",\"b\"]}",
            "2 class names for 3 classes");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\",\"pretrained_cfg\":{\"std\":[0,1,1]}}",
            "std");
    refuses("{\"architecture\":\"vit_tiny_patch16_224\","
            "\"pretrained_cfg\":{\"interpolation\":\"nearest\"}}",
            "nearest");
    refuses("{\"model_type\":\"swin\"}", "swin");
    refuses("{\"model_type\":\"dinov2\",\"use_swiglu_ffn\":true}", "SwiGLU");
    refuses("{\"model_type\":\"vit\",\"hidden_act\":\"relu\"}", "relu");
    refuses("{\"model_type\":\"vit\",\"num_channels\":1}", "num_channels 1");
    refuses("{\"model_type\":\"vit\",\"hidden_size\":770}", "770");
    refuses("{\"model_type\":\"vit\",\"architectures\":[\"ViTForImageClassification\"],"
            "\"id2label\":{\"0\":\"a\",\"2\":\"c\"}}",
            "numbered");
}

static double crop_of(const char *text)
{
    tg_model_info info;
    write_config(text);
    assert_ok(tg_model_read_info(folder, &info));
    double crop = info.preprocess.crop_pct;
    tg_model_info_done(&info);
    return crop;
}

/* Below a hundredth a photo would be resized to any size that a file asks for; above 1 there is nothing
 * to crop from. Hugging Face says it in pixels. */
static void the_crop_keeps_its_bounds(void **state)
{
    (void)state;
#define TIMM(crop)                                                                                 \
    "{\"architecture\":\"vit_tiny_patch16_224\",\"pretrained_cfg\":{\"crop_pct\":" crop "}}"
    assert_true(crop_of(TIMM("0.01")) == TG_CROP_PCT_MIN);
    assert_true(crop_of(TIMM("1")) == 1);
    const char *outside[] = {TIMM("0.0099999"), TIMM("1.0000001"), TIMM("0"), TIMM("-0.5")};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        refuses(outside[i], "crop_pct must be in [0.01, 1]");
#undef TIMM

    char processor[4200];
    snprintf(processor, sizeof processor, "%s/preprocessor_config.json", folder);
#define SIZES(size)                                                                                \
    "{\"do_center_crop\":true,\"size\":{\"shortest_edge\":" size "},"                              \
    "\"crop_size\":{\"height\":224,\"width\":224}}"
    const char *sizes[] = {SIZES("224"), SIZES("22400"), SIZES("22401"), SIZES("223")};
    const char *faults[] = {NULL, NULL, "below a hundredth", "larger than size"};
    for (int i = 0; i < 4; i++) {
        tg_model_info info;
        assert_ok(tg_file_write(processor, sizes[i], strlen(sizes[i])));
        if (!faults[i])
            assert_true(crop_of("{\"model_type\":\"dinov2\"}") == (i ? 0.01 : 1));
        else
            assert_error(tg_model_read_info(folder, &info), TG_ERROR_INPUT, faults[i]);
    }
#undef SIZES
    assert_int_equal(remove(processor), 0);
}

static void silence_means_the_library_defaults(void **state)
{
    (void)state;
    tg_model_info info;
    write_config("{\"model_type\":\"vit\"}");
    assert_ok(tg_model_read_info(folder, &info));
    assert_true(info.config.norm_eps == 1e-12f && info.config.embed_dim == 768);
    assert_true(info.preprocess.mean[0] == 0.5f && info.preprocess.crop_mode == TG_CROP_SQUASH);
    tg_model_info_done(&info);
    write_config("{\"model_type\":\"vit\",\"architectures\":[\"ViTForImageClassification\"],"
                 "\"id2label\":{\"1\":\"soup\",\"0\":\"pie\"}}");
    assert_ok(tg_model_read_info(folder, &info));
    assert_int_equal(info.class_count, 2);
    assert_string_equal(info.class_names[0], "pie");
    tg_model_info_done(&info);
    write_config("{\"architecture\":\"vit_base_patch16_224.augreg_in21k\"}");
    assert_ok(tg_model_read_info(folder, &info));
    assert_true(info.config.norm_eps == 1e-6f && info.config.num_classes == 1000);
    assert_true(info.preprocess.crop_pct == 0.9 && info.preprocess.mean[0] == 0.5f);
    assert_null(info.class_names);
    tg_model_info_done(&info);
}

static void a_run_folder_leads_to_its_model(void **state)
{
    (void)state;
    char outer[512], inner[520];
    tg_model_info info;
    snprintf(outer, sizeof outer, "%s/run", tg_test_temp_dir());
    snprintf(inner, sizeof inner, "%s/model", outer);
    free(make("vit_tiny_patch16_224", TG_NAMING_TIMM));
    assert_ok(tg_folder_make(outer));
    assert_int_equal(rename(folder, inner), 0);
    assert_ok(tg_model_read_info(outer, &info));
    assert_string_equal(info.class_names[3], "d");
    tg_model_info_done(&info);
    assert_error(tg_model_read_info(folder, &info), TG_ERROR_INPUT, "no such model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrappers_and_old_names_are_seen_through),
        cmocka_unit_test(the_class_position_joins_the_class_token),
        cmocka_unit_test(the_writers_rule_resamples),
        cmocka_unit_test(partial_fits_are_listed),
        cmocka_unit_test(heads_are_new_when_the_count_differs),
        cmocka_unit_test(fresh_heads_are_reproducible),
        cmocka_unit_test(weights_that_are_not_finite_are_named),
        cmocka_unit_test(dinov2_follows_its_processor),
        cmocka_unit_test(other_networks_are_refused),
        cmocka_unit_test(the_crop_keeps_its_bounds),
        cmocka_unit_test(silence_means_the_library_defaults),
        cmocka_unit_test(a_run_folder_leads_to_its_model),
    };
    snprintf(folder, sizeof folder, "%s/m", tg_test_temp_dir());
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    tg_log_set(listen, NULL, TG_LOG_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
