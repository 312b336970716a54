/* Models written by transformers give transformers' logits; what we write in either naming reads
 * back as the same network.
 *
 * scripts/check-interchange.py drives the same program against the live libraries:
 *   interchange --convert IN OUT timm|hf     read a model folder, write it in a naming
 *   interchange --logits MODEL IN OUT        `image` of IN (.safetensors) to `logits` in OUT
 * with --size H W before either to have positions resampled. */
#include "support/check.h"

#include "ckpt/model_folder.h"
#include "ckpt/safetensors.h"
#include "model/vit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model {
    tg_model_info info;
    tg_param_table table;
    float *params;
} model;

static float *aligned(size_t floats)
{
    float *p = aligned_alloc(64, (floats * 4 + 63) & ~(size_t)63);
    return p ? memset(p, 0, floats * 4) : NULL;
}

static tg_status model_open(const char *path, const tg_model_want *want, model *out)
{
    *out = (model){0};
    TG_TRY(tg_model_read_info(path, &out->info));
    tg_model_apply_want(&out->info, want);
    TG_TRY(tg_vit_params(&out->info.config, &out->table));
    out->params = aligned(out->table.elements);
    return tg_model_read_weights(path, &out->info, &out->table, want, out->params);
}

static void model_close(model *m)
{
    free(m->params);
    tg_param_table_done(&m->table);
    tg_model_info_done(&m->info);
}

/* Logits, or features where there is no head, [B, returned width]. */
static tg_status forward(const model *m, size_t B, const float *image, float *out,
                         size_t *out_width)
{
    const tg_vit_config *c = &m->info.config;
    tg_stream *stream = NULL;
    tg_arena step = {0};
    tg_vit *vit = NULL;
    tg_vit_output output;
    const tg_vit_input input = {.B = B, .image = image};
    TG_TRY(tg_stream_open_cpu(1, TG_CPU_LEVEL_COUNT, &stream));
    TG_TRY(tg_arena_init(&step, tg_vit_step_bytes(c, B, TG_F32, TG_VIT_INFER), "step"));
    TG_TRY(tg_vit_new(c, tg_kern_ref(), stream, TG_F32, false, m->params, &vit));
    TG_TRY(tg_vit_refresh(vit));
    TG_TRY(tg_vit_forward(vit, &step, &input, TG_VIT_INFER, &output));
    *out_width = output.logits ? c->num_classes : c->embed_dim;
    memcpy(out, output.logits ? output.logits : output.feature, B * *out_width * sizeof *out);
    tg_vit_free(vit);
    tg_arena_done(&step);
    tg_stream_close(stream);
    return TG_OK;
}

static float *read_tensor(const char *path, const char *name, size_t *out_rows)
{
    tg_safetensors file;
    assert_ok(tg_safetensors_open(path, &file));
    const tg_safetensors_entry *entry = tg_safetensors_find(&file, name);
    assert_non_null(entry);
    float *out = aligned(entry->count);
    assert_ok(tg_safetensors_read_f32(&file, entry, out));
    *out_rows = entry->shape[0];
    tg_safetensors_close(&file);
    return out;
}

static void check_golden(const char *name, const char *expected)
{
    char folder[512], values[512];
    const char *source = tg_test_source_dir();
    assert_non_null(source);
    snprintf(folder, sizeof folder, "%s/tests/golden/model/%s", source, name);
    snprintf(values, sizeof values, "%s/tests/golden/model/%s.safetensors", source, name);
    model m;
    size_t B, rows, width;
    float *image = read_tensor(values, "image", &B), *want = read_tensor(values, expected, &rows);
    assert_ok(model_open(folder, &(tg_model_want){0}, &m));
    float got[64];
    assert_ok(forward(&m, B, image, got, &width));
    assert_close(got, want, B * width, 0, 1e-5, name);
    free(image);
    free(want);
    model_close(&m);
}

static void golden_models_give_their_logits(void **state)
{
    (void)state;
    check_golden("hf_vit", "logits");
    check_golden("hf_deit", "logits_eval");
    check_golden("hf_dinov2", "feature");
}

static tg_vit_config small_config(const char *architecture)
{
    tg_vit_config c;
    assert_ok(tg_vit_config_preset(architecture, &c));
    c.img_h = 3 * c.patch;
    c.img_w = 2 * c.patch;
    c.embed_dim = 24;
    c.num_heads = 3;
    c.depth = 2;
    c.mlp_hidden = 48;
    c.num_classes = 4;
    return c;
}

static void model_new(tg_vit_config config, model *out)
{
    static const char *const names[] = {"caf\xC3\xA9 \"x\"", "soup", "rice", "pie"};
    *out = (model){.info = {.config = config, .preprocess = tg_preprocess_default(64)}};
    tg_preprocess *p = &out->info.preprocess;
    p->width_px = (int)config.img_w;
    p->height_px = (int)config.img_h;
    p->crop_pct = 0.875;
    p->interpolation = TG_BILINEAR;
    p->mean[1] = 0.1f;
    assert_ok(tg_vit_params(&config, &out->table));
    out->params = aligned(out->table.elements);
    tg_vit_init_weights(&config, &out->table, 3, out->params);
    for (size_t i = 0; i < out->table.count; i++) /* no vector is left constant */
        for (size_t k = 0; k < out->table.items[i].count; k++)
            out->params[out->table.items[i].offset + k] += (float)((k * 7 + i) % 13) * 0.01f;
    if (!config.num_classes)
        return;
    out->info.class_names = calloc(4, sizeof(char *));
    for (size_t i = 0; i < 4; i++)
        out->info.class_names[i] = strdup(names[i]);
    out->info.class_count = 4;
}

static void same_network(const model *a, const model *b)
{
    float image[2 * 3 * 96 * 64], x[2 * 24], y[2 * 24];
    size_t width, again;
    for (size_t i = 0; i < sizeof image / sizeof image[0]; i++)
        image[i] = (float)((i * 31) % 101) / 50 - 1;
    assert_ok(forward(a, 2, image, x, &width));
    assert_ok(forward(b, 2, image, y, &again));
    assert_int_equal(width, again);
    assert_close(y, x, 2 * width, 0, 1e-5, a->info.config.architecture);
}

/* Field by field: the bytes between fields are nobody's. */
static void same_config(const tg_vit_config *a, const tg_vit_config *b)
{
    assert_string_equal(a->architecture, b->architecture);
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->img_h, b->img_h);
    assert_int_equal(a->img_w, b->img_w);
    assert_int_equal(a->patch, b->patch);
    assert_int_equal(a->embed_dim, b->embed_dim);
    assert_int_equal(a->depth, b->depth);
    assert_int_equal(a->num_heads, b->num_heads);
    assert_int_equal(a->mlp_hidden, b->mlp_hidden);
    assert_int_equal(a->num_classes, b->num_classes);
    assert_int_equal(a->class_token, b->class_token);
    assert_int_equal(a->dist_token, b->dist_token);
    assert_int_equal(a->reg_tokens, b->reg_tokens);
    assert_int_equal(a->no_embed_class, b->no_embed_class);
    assert_int_equal(a->layer_scale, b->layer_scale);
    assert_memory_equal(&a->layer_scale_init, &b->layer_scale_init, sizeof(float));
    assert_int_equal(a->qkv_bias, b->qkv_bias);
    assert_int_equal(a->pool, b->pool);
    assert_int_equal(a->gelu, b->gelu);
    assert_memory_equal(&a->norm_eps, &b->norm_eps, sizeof(float));
    assert_memory_equal(&a->drop_path, &b->drop_path, sizeof(float));
}

static void round_trip(tg_vit_config config, tg_naming naming, bool exact)
{
    char path[512];
    model m, back;
    snprintf(path, sizeof path, "%s/round", tg_test_temp_dir());
    model_new(config, &m);
    assert_ok(tg_model_write(path, &m.info, &m.table, m.params, naming));
    assert_ok(model_open(path, &(tg_model_want){0}, &back));
    assert_int_equal(back.info.naming, naming);
    same_network(&m, &back);
    if (exact) {
        assert_int_equal(m.table.elements, back.table.elements);
        assert_memory_equal(m.params, back.params, m.table.elements * sizeof *m.params);
    }
    if (naming == TG_NAMING_TIMM) {
        config.drop_path = 0;
        same_config(&config, &back.info.config);
    }
    assert_int_equal(back.info.class_count, m.info.class_count);
    for (size_t i = 0; i < m.info.class_count; i++)
        assert_string_equal(back.info.class_names[i], m.info.class_names[i]);
    const tg_preprocess *p = &m.info.preprocess, *q = &back.info.preprocess;
    assert_true(p->mean[1] == q->mean[1] && p->std[2] == q->std[2]);
    assert_int_equal(p->interpolation, q->interpolation);
    assert_int_equal(p->crop_mode, q->crop_mode);
    assert_true(p->height_px == q->height_px && p->width_px == q->width_px);
    if (naming == TG_NAMING_TIMM)
        assert_true(p->crop_pct == q->crop_pct);
    model_close(&back);
    model_close(&m);
}

static void both_namings_keep_the_network(void **state)
{
    (void)state;
    static const char *const names[] = {"vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224",
                                        "vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2",
                                        "deit3_small_patch16_224"};
    for (size_t i = 0; i < 5; i++) {
        tg_vit_config config = small_config(names[i]);
        bool folds = config.no_embed_class; /* theirs gives the class token a row of its own */
        round_trip(config, TG_NAMING_TIMM, true);
        round_trip(config, TG_NAMING_HF, !folds);
        config.num_classes = 0;
        round_trip(config, TG_NAMING_TIMM, true);
        if (!config.dist_token) /* without heads nothing says that the token had one */
            round_trip(config, TG_NAMING_HF, !folds);
    }
    tg_vit_config odd = small_config("vit_base_patch16_224");
    odd.gelu = TG_GELU_TANH;
    odd.qkv_bias = false;
    odd.norm_eps = 1e-5f;
    odd.mlp_hidden = 31;
    round_trip(odd, TG_NAMING_TIMM, true);
    round_trip(odd, TG_NAMING_HF, true);
    odd.pool = TG_POOL_AVG;
    odd.class_token = false;
    odd.reg_tokens = 2;
    odd.layer_scale = true;
    odd.layer_scale_init = 0.1f;
    round_trip(odd, TG_NAMING_TIMM, true);
}

static void what_they_cannot_say_is_refused(void **state)
{
    (void)state;
    char path[512];
    model m;
    tg_vit_config config = small_config("vit_tiny_patch16_224");
    config.pool = TG_POOL_AVG;
    snprintf(path, sizeof path, "%s/refused", tg_test_temp_dir());
    model_new(config, &m);
    assert_error(tg_model_write(path, &m.info, &m.table, m.params, TG_NAMING_HF), TG_ERROR_USAGE,
                 "Hugging Face");
    assert_error(tg_model_read_info(path, &(tg_model_info){0}), TG_ERROR_INPUT, "no such model");
    model_close(&m);
}

static int say(void)
{
    fprintf(stderr, "interchange: %s\n", tg_error_message());
    return 1;
}

static int convert(const char *from, const char *to, const char *naming, const tg_model_want *want)
{
    model m;
    tg_status status = model_open(from, want, &m);
    if (status >= 0)
        status = tg_model_write(to, &m.info, &m.table, m.params,
                                strcmp(naming, "hf") == 0 ? TG_NAMING_HF : TG_NAMING_TIMM);
    model_close(&m);
    return status < 0 ? say() : 0;
}

static int logits(const char *folder, const char *from, const char *to, const tg_model_want *want)
{
    model m;
    size_t B, width = 0;
    float *image = read_tensor(from, "image", &B), *out = aligned(B * 4096);
    tg_status status = model_open(folder, want, &m);
    if (status >= 0)
        status = forward(&m, B, image, out, &width);
    const tg_safetensors_tensor tensor = {"logits", TG_F32, 2, {B, width}, out, false};
    if (status >= 0)
        status = tg_safetensors_write(to, &tensor, 1, NULL, 0);
    model_close(&m);
    free(image);
    free(out);
    return status < 0 ? say() : 0;
}

int main(int argc, char **argv)
{
    tg_model_want want = {0};
    if (argc == 8 && strcmp(argv[1], "--size") == 0) {
        want.img_h = strtoul(argv[2], NULL, 10);
        want.img_w = strtoul(argv[3], NULL, 10);
        argc -= 3;
        argv += 3;
    }
    if (argc == 5 && strcmp(argv[1], "--convert") == 0)
        return convert(argv[2], argv[3], argv[4], &want);
    if (argc == 5 && strcmp(argv[1], "--logits") == 0)
        return logits(argv[2], argv[3], argv[4], &want);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_models_give_their_logits),
        cmocka_unit_test(both_namings_keep_the_network),
        cmocka_unit_test(what_they_cannot_say_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
