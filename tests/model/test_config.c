/* Presets have timm's sizes, names, decay and layer groups; fresh weights have timm's
 * distributions; impossible shapes are refused with the field. */
#include "support/check.h"

#include "model/config.h"
#include "model/presets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts printed by timm 1.0 for models of these names: parameters, tensors, tensors with decay. */
static const struct known {
    const char *name;
    size_t parameters, tensors, decayed;
} known[] = {
    {"vit_tiny_patch16_224", 5717416, 152, 50},
    {"vit_base_patch8_224", 86576872, 152, 50},
    {"vit_large_patch32_384", 306632680, 296, 98},
    {"deit_small_distilled_patch16_224", 22436432, 155, 51},
    {"deit3_medium_patch16_224", 38849512, 176, 50},
    {"vit_small_patch14_dinov2", 22056192, 174, 49},
    {"vit_base_patch14_reg4_dinov2", 86582016, 175, 49},
};

static void counts_equal_timm(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        tg_vit_config config;
        tg_param_table table = {0};
        assert_ok(tg_vit_config_preset(known[i].name, &config));
        assert_ok(tg_vit_params(&config, &table));
        size_t decayed = 0;
        for (size_t p = 0; p < table.count; p++)
            decayed += table.items[p].decay;
        assert_int_equal(tg_param_total(&table), known[i].parameters);
        assert_int_equal(table.count, known[i].tensors);
        assert_int_equal(decayed, known[i].decayed);
        tg_param_table_done(&table);
    }
}

static void every_preset_is_sound(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *const *name = tg_vit_preset_names(); *name; name++, count++) {
        tg_vit_config config;
        assert_ok(tg_vit_config_preset(*name, &config));
        assert_ok(tg_vit_config_check(&config));
        assert_string_equal(config.architecture, *name);
        const tg_vit_preset *preset = tg_vit_preset_find(*name);
        assert_string_equal(preset->name, *name);
        assert_true(preset->crop_pct == (preset->img_px == 224 ? 0.9 : 1.0));
    }
    assert_true(count > 50);
    tg_vit_config tagged;
    assert_ok(tg_vit_config_preset("vit_base_patch16_224.augreg_in21k", &tagged));
    assert_string_equal(tagged.architecture, "vit_base_patch16_224");
}

static int layer_of(const tg_param_table *table, const char *name)
{
    const tg_param *param = tg_param_find(table, name);
    assert_non_null(param);
    return param->layer;
}

static void layers_are_timms_groups(void **state)
{
    (void)state;
    tg_vit_config config;
    tg_param_table table = {0};
    assert_ok(tg_vit_config_preset("deit_tiny_distilled_patch16_224", &config));
    assert_ok(tg_vit_params(&config, &table));
    assert_int_equal(layer_of(&table, "dist_token"), 0);
    assert_int_equal(layer_of(&table, "pos_embed"), 0);
    assert_int_equal(layer_of(&table, "patch_embed.proj.bias"), 0);
    assert_int_equal(layer_of(&table, "blocks.0.attn.qkv.weight"), 1);
    assert_int_equal(layer_of(&table, "blocks.11.mlp.fc2.bias"), 12);
    assert_int_equal(layer_of(&table, "norm.weight"), 12);
    assert_int_equal(layer_of(&table, "head_dist.weight"), 13);
    assert_string_equal(table.items[0].name, "cls_token");
    assert_string_equal(table.items[table.count - 1].name, "head_dist.bias");
    tg_param_table_done(&table);
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", &config));
    config.pool = TG_POOL_AVG;
    config.num_classes = 7;
    assert_ok(tg_vit_params(&config, &table));
    assert_int_equal(tg_param_total(&table), 5525767);
    assert_int_equal(layer_of(&table, "fc_norm.weight"), 13);
    assert_null(tg_param_find(&table, "norm.weight"));
    tg_param_table_done(&table);
}

typedef struct moments {
    double mean, std, largest;
} moments;

static moments measure(const float *x, size_t n)
{
    double sum = 0, square = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        square += (double)x[i] * x[i];
        largest = fmax(largest, fabs(x[i]));
    }
    double mean = sum / (double)n;
    return (moments){mean, sqrt(square / (double)n - mean * mean), largest};
}

/* The mean of n draws is within 5 std/sqrt(n) of 0, their std within 5 std/sqrt(2n) (a uniform
 * variable has less spread of its square). */
static void check_spread(const tg_param_table *table, const float *params, const char *name,
                         double std)
{
    const tg_param *param = tg_param_find(table, name);
    assert_non_null(param);
    moments m = measure(params + param->offset, param->count);
    double n = (double)param->count;
    assert_true(fabs(m.mean) < 5 * std / sqrt(n));
    assert_true(fabs(m.std - std) < 5 * std / sqrt(2 * n));
}

static void fresh_weights_have_timms_spread(void **state)
{
    (void)state;
    tg_vit_config config;
    tg_param_table table = {0};
    assert_ok(tg_vit_config_preset("vit_small_patch14_reg4_dinov2", &config));
    config.depth = 1;
    config.num_classes = 100;
    assert_ok(tg_vit_params(&config, &table));
    float *params = malloc(table.elements * sizeof *params);
    float *again = malloc(table.elements * sizeof *again);
    assert_non_null(params);
    assert_non_null(again);
    tg_vit_init_weights(&config, &table, 42, params);
    tg_vit_init_weights(&config, &table, 42, again);
    assert_memory_equal(params, again, table.elements * sizeof *params);
    double bound = 1 / sqrt(3 * 14 * 14);
    check_spread(&table, params, "blocks.0.attn.qkv.weight", 0.02);
    check_spread(&table, params, "blocks.0.mlp.fc2.weight", 0.02);
    check_spread(&table, params, "head.weight", 0.02);
    check_spread(&table, params, "pos_embed", 0.02);
    check_spread(&table, params, "cls_token", 1e-6);
    check_spread(&table, params, "reg_token", 1e-6);
    check_spread(&table, params, "patch_embed.proj.weight", bound / sqrt(3));
    const tg_param *patch = tg_param_find(&table, "patch_embed.proj.weight");
    assert_true(measure(params + patch->offset, patch->count).largest <= (float)bound);
    assert_true(params[tg_param_find(&table, "blocks.0.ls1.gamma")->offset] == 1e-5f);
    assert_true(params[tg_param_find(&table, "norm.weight")->offset + 383] == 1.0f);
    assert_true(params[tg_param_find(&table, "norm.bias")->offset] == 0.0f);
    assert_true(params[tg_param_find(&table, "head.bias")->offset + 99] == 0.0f);
    for (size_t i = tg_param_find(&table, "head.bias")->offset + 100; i < table.elements; i++)
        assert_true(params[i] == 0.0f); /* padding */
    tg_vit_init_weights(&config, &table, 43, again);
    assert_true(memcmp(params, again, table.elements * sizeof *params) != 0);
    free(again);
    free(params);
    tg_param_table_done(&table);
}

static void impossible_shapes_are_refused(void **state)
{
    (void)state;
    tg_vit_config good, bad;
    assert_error(tg_vit_config_preset("vit_tinny_patch16_224", &good), TG_ERROR_USAGE,
                 "vit_tiny_patch16_224");
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", &good));
#define REFUSES(change, part)                                                                      \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        assert_error(tg_vit_config_check(&bad), TG_ERROR_USAGE, part);                             \
    } while (0)
    REFUSES(bad.num_heads = 5, "num_heads 5");
    REFUSES(bad.img_w = 230, "224x230");
    REFUSES(bad.depth = 0, "depth is 0");
    REFUSES(bad.patch = 0, "patch size is 0");
    REFUSES(bad.class_token = false, "class token");
    REFUSES(bad.norm_eps = 0, "eps");
    REFUSES(bad.norm_eps = NAN, "eps");
    REFUSES(bad.drop_path = 1, "drop_path");
    REFUSES((bad.dist_token = true, bad.pool = TG_POOL_AVG), "distillation");
    REFUSES(bad.embed_dim = bad.mlp_hidden = bad.num_heads = (size_t)1 << 40, "too large");
    REFUSES(bad.img_h = bad.img_w = (size_t)16 << 40, "too large");
    REFUSES(bad.reg_tokens = SIZE_MAX - 5, "too large");
    REFUSES(bad.num_classes = SIZE_MAX / 2, "too large");
#undef REFUSES
}

/* Published: 1.26 GMACs for Ti/16 and 17.6 for B/16 at 224 px. */
static void macs_are_the_published_ones(void **state)
{
    (void)state;
    tg_vit_config config;
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", &config));
    assert_true(fabs(tg_vit_macs(&config) / 1e9 - 1.26) < 0.01);
    assert_ok(tg_vit_config_preset("vit_base_patch16_224", &config));
    assert_true(fabs(tg_vit_macs(&config) / 1e9 - 17.58) < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_equal_timm),
        cmocka_unit_test(every_preset_is_sound),
        cmocka_unit_test(layers_are_timms_groups),
        cmocka_unit_test(fresh_weights_have_timms_spread),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(macs_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
