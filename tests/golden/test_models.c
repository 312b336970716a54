/* Eleven small models of timm and three of transformers, read from their own folders, give PyTorch's
 * logits, features and gradients of every parameter, with the reference table and with the fast one, in
 * float32 and in bfloat16 (limits: docs/NUMERICS.md). */
#include "support/check.h"
#include "support/device.h"
#include "support/golden.h"

#include "ckpt/model_folder.h"
#include "kern/kern.h"
#include "model/vit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tg_stream *stream;
static tg_json index_file;

typedef struct scene {
    const char *name;
    tg_vit_config config;
    size_t B, K;
    tg_safetensors file;
    tg_param_table table;
    tg_arena data, step;
    float *params, *image;
    float *grads, *want_grads; /* ours; PyTorch's */
    const tg_kern *kern;
    tg_dtype dtype;
    double forward_limit, backward_limit;
    tg_vit *vit;
} scene;

/* Tensors of a Hugging Face folder in our layout; its config.json must say what the index says. */
static float *read_folder(scene *s, const char *name)
{
    char path[4096];
    tg_model_info info = {0};
    const tg_model_want as_it_is = {0};
    snprintf(path, sizeof path, "%s", tg_golden_path(name));
    assert_ok(tg_model_read_info(path, &info));
    assert_int_equal(info.naming, TG_NAMING_HF);
    assert_int_equal(info.config.family, s->config.family);
    assert_int_equal(info.config.num_classes, s->config.num_classes);
    assert_int_equal(info.config.dist_token, s->config.dist_token);
    assert_memory_equal(&info.config.norm_eps, &s->config.norm_eps, sizeof(float));
    assert_int_equal(tg_vit_tokens(&info.config), tg_vit_tokens(&s->config));
    float *out = tg_arena_alloc(&s->data, s->table.elements * sizeof *out);
    memset(out, 0, s->table.elements * sizeof *out);
    assert_ok(tg_model_read_weights(path, &info, &s->table, &as_it_is, out));
    tg_model_info_done(&info);
    return out;
}

static void read_parameters(scene *s, const tg_json_node *model)
{
    tg_json_node folder;
    if (!tg_json_find(model, "weights", &folder)) {
        s->params = tg_golden_params(&s->file, "weight", &s->table, &s->data);
        s->want_grads = tg_golden_params(&s->file, "grad", &s->table, &s->data);
        return;
    }
    s->params = read_folder(s, tg_golden_string(model, "weights"));
    s->want_grads = read_folder(s, tg_golden_string(model, "gradients"));
}

static void scene_open(scene *s, const tg_json_node *model, const tg_kern *kern, tg_dtype dtype)
{
    tg_json_node config;
    bool narrow = dtype == TG_BF16;
    *s = (scene){.name = tg_golden_string(model, "name"),
                 .kern = kern,
                 .dtype = dtype,
                 .forward_limit = narrow ? TG_GOLDEN_BF16_FORWARD : TG_GOLDEN_FORWARD,
                 .backward_limit = narrow ? TG_GOLDEN_BF16_BACKWARD : TG_GOLDEN_BACKWARD};
    assert_ok(tg_json_get_object(model, "config", TG_REQUIRED, &config, NULL));
    assert_ok(tg_json_get_size(model, "batch", TG_REQUIRED, &s->B));
    tg_golden_config(&config, &s->config);
    s->K = s->config.num_classes;
    tg_golden_open(tg_golden_string(model, "file"), &s->file);
    assert_ok(tg_vit_params(&s->config, &s->table));
    assert_ok(tg_arena_init(&s->data, 1 << 22, "golden tensors"));
    size_t bytes = tg_vit_step_bytes(&s->config, s->B, dtype, TG_VIT_TRAIN);
    assert_ok(tg_arena_init(&s->step, bytes + (1 << 16), "a step"));
    read_parameters(s, model);
    s->image =
        tg_golden_tensor(&s->file, "image", s->B * 3 * s->config.img_h * s->config.img_w, &s->data);
    s->grads = tg_arena_alloc(&s->data, s->table.elements * sizeof *s->grads);
    assert_ok(tg_vit_new(&s->config, kern, stream, dtype, true, s->params, &s->vit));
    assert_ok(tg_vit_refresh(s->vit));
}

static void scene_close(scene *s)
{
    tg_vit_free(s->vit);
    tg_arena_done(&s->step);
    tg_arena_done(&s->data);
    tg_param_table_done(&s->table);
    tg_safetensors_close(&s->file);
}

static void compare_with(const scene *s, const char *tensor, const float *got, const float *want,
                         size_t count, double limit)
{
    char what[160];
    snprintf(what, sizeof what, "%s (%s, %s): %s", s->name, s->kern->name, tg_dtype_name(s->dtype),
             tensor);
    assert_non_null(got);
    assert_close(got, want, count, 0, limit, what);
}

static void compare(scene *s, const char *tensor, const float *got, size_t count, double limit)
{
    compare_with(s, tensor, got, tg_golden_tensor(&s->file, tensor, count, &s->data), count, limit);
}

static void inference_agrees(scene *s)
{
    const tg_vit_input input = {.B = s->B, .image = s->image};
    tg_vit_output out;
    assert_ok(tg_vit_forward(s->vit, &s->step, &input, TG_VIT_INFER, &out));
    compare(s, "feature", out.feature, s->B * s->config.embed_dim, s->forward_limit);
    const char *logits = s->config.dist_token ? "logits_eval" : "logits";
    if (s->K)
        compare(s, logits, out.logits, s->B * s->K, s->forward_limit);
    else
        assert_null(out.logits);
    tg_arena_release(&s->step, 0);
}

/* Cross-entropy of one head, `share` of the loss: returns the mean, writes its gradient. */
static double head_loss(scene *s, const float *logits, const char *target, double share,
                        float **out_dlogits)
{
    const float *wanted = tg_golden_tensor(&s->file, target, s->B * s->K, &s->data);
    float *loss = tg_arena_alloc(&s->data, s->B * sizeof *loss);
    *out_dlogits = tg_arena_alloc(&s->data, s->B * s->K * sizeof **out_dlogits);
    s->kern->loss.cross_entropy(stream, s->B, s->K, logits, wanted, (float)(share / (double)s->B),
                                loss, *out_dlogits, false);
    double sum = 0;
    for (size_t b = 0; b < s->B; b++)
        sum += loss[b];
    return share * sum / (double)s->B;
}

/* The loss whose gradient the file holds, and what it sends into backward. */
static double golden_loss(scene *s, const tg_vit_output *out, tg_vit_backward_args *args)
{
    float *dlogits, *dlogits_dist;
    if (s->K == 0) {
        size_t count = s->B * s->config.embed_dim;
        args->dfeature = tg_golden_tensor(&s->file, "dfeature", count, &s->data);
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += (double)out->feature[i] * args->dfeature[i];
        return sum;
    }
    double loss = head_loss(s, out->logits, "target", s->config.dist_token ? 0.5 : 1, &dlogits);
    args->dlogits = dlogits;
    if (s->config.dist_token) {
        loss += head_loss(s, out->logits_dist, "target_dist", 0.5, &dlogits_dist);
        args->dlogits_dist = dlogits_dist;
    }
    return loss;
}

/* Backward must write every element: anything left of the poison is not a number. */
static void poison(scene *s)
{
    memset(s->grads, 0, s->table.elements * sizeof *s->grads);
    for (size_t i = 0; i < s->table.count; i++)
        for (size_t k = 0; k < s->table.items[i].count; k++)
            s->grads[s->table.items[i].offset + k] = NAN;
}

static void gradients_agree(scene *s)
{
    const tg_vit_input input = {.B = s->B, .image = s->image};
    tg_vit_output out;
    tg_vit_backward_args args = {.grads = s->grads};
    poison(s);
    assert_ok(tg_vit_forward(s->vit, &s->step, &input, TG_VIT_TRAIN, &out));
    compare(s, "feature", out.feature, s->B * s->config.embed_dim, s->forward_limit);
    if (s->K)
        compare(s, "logits", out.logits, s->B * s->K, s->forward_limit);
    if (s->config.dist_token)
        compare(s, "logits_dist", out.logits_dist, s->B * s->K, s->forward_limit);
    float loss = (float)golden_loss(s, &out, &args);
    compare(s, "loss", &loss, 1, s->forward_limit);
    assert_ok(tg_vit_backward(s->vit, &s->step, &args));
    tg_arena_release(&s->step, 0);
    for (size_t i = 0; i < s->table.count; i++) {
        const tg_param *p = &s->table.items[i];
        compare_with(s, p->name, s->grads + p->offset, s->want_grads + p->offset, p->count,
                     s->backward_limit);
    }
}

static void every_model(const tg_kern *kern, tg_dtype dtype)
{
    tg_json_node root = tg_json_root(&index_file), models;
    assert_ok(tg_json_get_array(&root, "models", TG_REQUIRED, &models, NULL));
    assert_int_equal(tg_json_count(&models), 14);
    for (size_t i = 0; i < tg_json_count(&models); i++) {
        tg_json_node model = tg_json_element(&models, i);
        scene s;
        scene_open(&s, &model, kern, dtype);
        inference_agrees(&s);
        gradients_agree(&s);
        scene_close(&s);
    }
}

static void reference_table(void **state)
{
    (void)state;
    every_model(tg_kern_ref(), TG_F32);
    every_model(tg_kern_ref(), TG_BF16);
}

static void selected_table(void **state)
{
    (void)state;
    every_model(tg_kern_select(stream), TG_F32);
    if (tg_stream_has_bf16(stream))
        every_model(tg_kern_select(stream), TG_BF16);
}

static int begin(void **state)
{
    (void)state;
    stream = tg_test_stream();
    tg_golden_index(&index_file);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tg_json_done(&index_file);
    tg_stream_close(stream);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_table),
        cmocka_unit_test(selected_table),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
