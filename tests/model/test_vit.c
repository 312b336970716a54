/* The backward pass is the slope of the forward pass, tensor by tensor, for every kind of model; the
 * gradient is reported once, from its tail, without gaps; accumulation adds. */
#include "support/check.h"
#include "support/device.h"

#include "base/rng.h"
#include "model/vit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 3, K = 5 };

static tg_vit_config tiny(void)
{
    return (tg_vit_config){.architecture = "tiny_test",
                           .img_h = 16,
                           .img_w = 24,
                           .patch = 8,
                           .embed_dim = 16,
                           .depth = 2,
                           .num_heads = 2,
                           .mlp_hidden = 32,
                           .num_classes = K,
                           .class_token = true,
                           .qkv_bias = true,
                           .layer_scale_init = 0.5f,
                           .norm_eps = 1e-6f};
}

typedef struct bench {
    tg_vit_config config;
    tg_vit *vit;
    tg_stream *stream;
    tg_arena step;
    float *params, *grads, *image, *weight[3]; /* objective = sum of outputs times these */
    size_t elements;
    uint64_t index[B];
} bench;

static void fill(float *x, size_t n, uint64_t stream, double scale)
{
    tg_rng rng = tg_rng_init(5, stream, 0, TG_RNG_TEST);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tg_rng_normal(&rng));
}

static void *aligned(size_t floats)
{
    void *p = aligned_alloc(64, (floats * 4 + 63) & ~(size_t)63);
    memset(p, 0, floats * 4);
    return p;
}

static void bench_open(bench *b, tg_vit_config config)
{
    *b = (bench){.config = config, .index = {4, 9, 2}};
    tg_param_table table = {0};
    assert_ok(tg_vit_params(&config, &table));
    b->elements = table.elements;
    b->params = aligned(b->elements);
    b->grads = aligned(b->elements);
    tg_vit_init_weights(&config, &table, 1, b->params);
    for (size_t i = 0; i < table.count; i++) { /* away from the symmetric start */
        float *p = b->params + table.items[i].offset;
        tg_rng rng = tg_rng_init(6, i, 0, TG_RNG_TEST);
        for (size_t k = 0; k < table.items[i].count; k++)
            p[k] += (float)(0.2 * tg_rng_normal(&rng));
    }
    tg_param_table_done(&table);
    size_t pixels = B * 3 * config.img_h * config.img_w;
    b->image = aligned(pixels);
    fill(b->image, pixels, 1, 1.0);
    for (int i = 0; i < 3; i++) {
        size_t n = B * (i == 2 ? config.embed_dim : K);
        b->weight[i] = aligned(n);
        fill(b->weight[i], n, 10 + (uint64_t)i, 1.0);
    }
    assert_ok(tg_stream_open_cpu(2, tg_test_cpu_cap(), &b->stream));
    assert_ok(tg_arena_init(&b->step, tg_vit_step_bytes(&config, B, TG_F32, TG_VIT_TRAIN), "step"));
    assert_ok(tg_vit_new(&config, tg_kern_ref(), b->stream, TG_F32, true, b->params, &b->vit));
}

static void bench_close(bench *b)
{
    tg_vit_free(b->vit);
    tg_arena_done(&b->step);
    tg_stream_close(b->stream);
    free(b->params);
    free(b->grads);
    free(b->image);
    for (int i = 0; i < 3; i++)
        free(b->weight[i]);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; a && i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double objective(bench *b)
{
    const tg_vit_input input = {
        .B = B, .image = b->image, .seed = 3, .epoch = 1, .sample_index = b->index};
    tg_vit_output out;
    tg_arena_release(&b->step, 0);
    assert_ok(tg_vit_refresh(b->vit));
    assert_ok(tg_vit_forward(b->vit, &b->step, &input, TG_VIT_TRAIN, &out));
    return dot(out.logits, b->weight[0], B * K) + dot(out.logits_dist, b->weight[1], B * K) +
           dot(out.feature, b->weight[2], B * b->config.embed_dim);
}

typedef struct ranges {
    size_t expected_end;
    int count;
} ranges;

static void range_ready(void *user, size_t offset, size_t count)
{
    ranges *r = user;
    assert_int_equal(offset + count, r->expected_end);
    r->expected_end = offset;
    r->count++;
}

static void backward(bench *b, bool accumulate)
{
    ranges r = {.expected_end = b->elements};
    const tg_vit_backward_args args = {.dlogits = b->config.num_classes ? b->weight[0] : NULL,
                                       .dlogits_dist = b->config.dist_token ? b->weight[1] : NULL,
                                       .dfeature = b->weight[2],
                                       .grads = b->grads,
                                       .accumulate = accumulate,
                                       .ready = range_ready,
                                       .ready_user = &r};
    objective(b);
    assert_ok(tg_vit_backward(b->vit, &b->step, &args));
    assert_int_equal(r.expected_end, 0);
    assert_int_equal(r.count, (int)b->config.depth + 2);
}

/* Slope along a random direction of one tensor: central difference with step e has an error of
 * e^2/6 f''' plus 2^-24 |f| sqrt(terms) / e; e = 1e-2 keeps both near 1e-3 of the slopes here. */
static void check_tensor(bench *b, const tg_param *p, size_t number)
{
    const double e = 1e-2;
    float *direction = aligned(p->count), *kept = aligned(p->count), *at = b->params + p->offset;
    fill(direction, p->count, 100 + number, 1.0 / sqrt((double)p->count));
    memcpy(kept, at, p->count * 4);
    for (size_t i = 0; i < p->count; i++)
        at[i] = kept[i] + (float)e * direction[i];
    double up = objective(b);
    for (size_t i = 0; i < p->count; i++)
        at[i] = kept[i] - (float)e * direction[i];
    double down = objective(b);
    memcpy(at, kept, p->count * 4);
    double slope = (up - down) / (2 * e), want = dot(b->grads + p->offset, direction, p->count);
    double norm =
        sqrt(dot(b->grads + p->offset, b->grads + p->offset, p->count) / (double)p->count);
    if (fabs(slope - want) > 0.02 * fabs(want) + 0.02 * norm + 2e-3)
        fail_msg("%s: slope %.6g, gradient says %.6g", p->name, slope, want);
    free(direction);
    free(kept);
}

static void check_config(tg_vit_config config)
{
    bench b;
    bench_open(&b, config);
    memset(b.grads, 0x7f, b.elements * 4);
    backward(&b, false);
    const tg_param_table *table = tg_vit_get_params(b.vit);
    for (size_t i = 0; i < table->count; i++)
        check_tensor(&b, &table->items[i], i);
    float *once = aligned(b.elements);
    memcpy(once, b.grads, b.elements * 4);
    backward(&b, true);
    for (size_t i = 0; i < table->count; i++) {
        const tg_param *p = &table->items[i];
        for (size_t k = 0; k < p->count; k++)
            once[p->offset + k] *= 2;
        assert_close(b.grads + p->offset, once + p->offset, p->count, 1e-5, 1e-5, p->name);
    }
    free(once);
    bench_close(&b);
}

static void class_token(void **state)
{
    (void)state;
    check_config(tiny());
}

static void average_pooling(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    c.pool = TG_POOL_AVG;
    c.qkv_bias = false;
    check_config(c);
}

static void distillation_token(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    c.dist_token = true;
    c.gelu = TG_GELU_TANH;
    check_config(c);
}

static void registers_and_layer_scale(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    c.reg_tokens = 3;
    c.no_embed_class = true;
    c.layer_scale = true;
    check_config(c);
}

static void stochastic_depth(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    c.drop_path = 0.5f;
    c.layer_scale = true;
    c.depth = 3;
    check_config(c);
}

static void average_with_layer_scale(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    c.pool = TG_POOL_AVG;
    c.layer_scale = true;
    c.drop_path = 0.3f;
    check_config(c);
}

static void arena_too_small(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, tiny());
    assert_ok(tg_vit_refresh(b.vit));
    tg_arena small = {.base = b.step.base, .size = b.step.size / 2};
    const tg_vit_input input = {.B = B, .image = b.image, .sample_index = b.index};
    tg_vit_output out;
    assert_error(tg_vit_forward(b.vit, &small, &input, TG_VIT_TRAIN, &out), TG_ERROR_MACHINE,
                 "MiB");
    bench_close(&b);
}

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    tg_vit_config c = tiny();
    for (size_t images = (size_t)-1; images > (size_t)-1 >> 12; images >>= 1) {
        assert_true(tg_vit_step_bytes(&c, images, TG_F32, TG_VIT_TRAIN) == (size_t)-1);
        assert_true(tg_vit_step_bytes(&c, images, TG_BF16, TG_VIT_INFER) == (size_t)-1);
    }
    /* 2^52 images of 2^6 tokens of 2^6 channels: the product is 2^64, its factors are not too large */
    c.class_token = false;
    c.pool = TG_POOL_AVG;
    c.img_h = c.img_w = 64;
    c.embed_dim = c.mlp_hidden = 64;
    c.num_classes = 0;
    assert_true(tg_vit_step_bytes(&c, (size_t)1 << 52, TG_F32, TG_VIT_INFER) == (size_t)-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class_token),        cmocka_unit_test(average_pooling),
        cmocka_unit_test(distillation_token), cmocka_unit_test(registers_and_layer_scale),
        cmocka_unit_test(stochastic_depth),   cmocka_unit_test(average_with_layer_scale),
        cmocka_unit_test(arena_too_small),    cmocka_unit_test(sizes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
