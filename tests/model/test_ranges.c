/* Parameters that come range by range: prepared copies refreshed in pieces are the same bits as all at
 * once; forward asks for every range before it uses it, in order, and stops when one does not come. */
#include "support/buffer.h"
#include "support/check.h"
#include "support/device.h"

#include "model/vit.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { B = 3, K = 5, C = 64 };

/* Sizes that take whatever layouts a device has for its prepared copies. */
static tg_vit_config small(void)
{
    return (tg_vit_config){.architecture = "ranges_test",
                           .img_h = 16,
                           .img_w = 24,
                           .patch = 8,
                           .embed_dim = C,
                           .depth = 3,
                           .num_heads = 2,
                           .mlp_hidden = 128,
                           .num_classes = K,
                           .class_token = true,
                           .qkv_bias = true,
                           .layer_scale_init = 0.5f,
                           .norm_eps = 1e-6f};
}

typedef struct outputs {
    float logits[B * K], logits_dist[B * K], feature[B * C];
} outputs;

typedef struct bench {
    tg_vit_config config;
    const tg_kern *kern;
    tg_stream *stream;
    tg_dtype dtype;
    tg_param_table table;
    tg_buffer truth, params, image; /* the model reads params */
    tg_arena step;
    tg_vit *vit;
    uint64_t index[B];
} bench;

static void bench_open(bench *b, const tg_vit_config *config, const tg_kern *kern,
                       tg_stream *stream, tg_dtype dtype)
{
    *b = (bench){
        .config = *config, .kern = kern, .stream = stream, .dtype = dtype, .index = {4, 9, 2}};
    assert_ok(tg_vit_params(config, &b->table));
    b->truth = tg_buffer_random(TG_F32, b->table.elements, 1, 0.2);
    b->params = tg_buffer_copy(&b->truth);
    b->image = tg_buffer_random(TG_F32, B * 3 * config->img_h * config->img_w, 2, 1);
    assert_ok(tg_arena_init(&b->step, tg_vit_step_bytes(config, B, dtype, TG_VIT_TRAIN), "step"));
    assert_ok(tg_vit_new(config, kern, stream, dtype, true, b->params.data, &b->vit));
}

static void bench_close(bench *b)
{
    tg_vit_free(b->vit);
    tg_arena_done(&b->step);
    tg_buffer_free(&b->truth);
    tg_buffer_free(&b->params);
    tg_buffer_free(&b->image);
    tg_param_table_done(&b->table);
}

static tg_status forward(bench *b, tg_vit_mode mode, tg_vit_range_needed needed, void *user,
                         outputs *out)
{
    const tg_vit_input input = {.B = B,
                                .image = b->image.data,
                                .seed = 3,
                                .epoch = 1,
                                .sample_index = b->index,
                                .needed = needed,
                                .needed_user = user};
    const tg_vit_config *c = &b->config;
    tg_vit_output got = {0};
    tg_arena_release(&b->step, 0);
    tg_status status = tg_vit_forward(b->vit, &b->step, &input, mode, &got);
    memset(out, 0, sizeof *out);
    if (status < 0) {
        assert_true(!got.feature && !got.logits); /* outputs are written on success only */
        return status;
    }
    if (c->num_classes)
        memcpy(out->logits, got.logits, sizeof out->logits);
    if (got.logits_dist)
        memcpy(out->logits_dist, got.logits_dist, sizeof out->logits_dist);
    memcpy(out->feature, got.feature, sizeof out->feature);
    return TG_OK;
}

/* What the model says when everything is there. */
static outputs plain(bench *b, tg_vit_mode mode)
{
    outputs out;
    memcpy(b->params.data, b->truth.data, b->truth.n * sizeof(float));
    assert_ok(tg_vit_refresh(b->vit));
    assert_ok(forward(b, mode, NULL, NULL, &out));
    return out;
}

/* Parameters and prepared copies that make every answer NaN. */
static void poison(bench *b)
{
    for (size_t i = 0; i < b->params.n; i++)
        tg_buffer_set(&b->params, i, NAN);
    assert_ok(tg_vit_refresh(b->vit));
}

static void bring(bench *b, size_t offset, size_t count)
{
    memcpy((float *)b->params.data + offset, (float *)b->truth.data + offset,
           count * sizeof(float));
    assert_ok(tg_vit_refresh_range(b->vit, offset, count));
}

/* Tensor by tensor, from the first or from the last. */
static void refresh_by_tensors(bench *b, bool backwards)
{
    for (size_t i = 0; i < b->table.count; i++) {
        const size_t k = backwards ? b->table.count - 1 - i : i;
        bring(b, b->table.items[k].offset, b->table.items[k].count);
    }
}

static void check_refresh(bench *b)
{
    const outputs want = plain(b, TG_VIT_INFER);
    outputs got;
    poison(b);
    assert_ok(forward(b, TG_VIT_INFER, NULL, NULL, &got));
    assert_memory_not_equal(&got, &want, sizeof got);
    /* true parameters do not help while copies are stale */
    memcpy(b->params.data, b->truth.data, b->truth.n * sizeof(float));
    assert_ok(tg_vit_refresh_range(b->vit, 0, 0));
    assert_ok(forward(b, TG_VIT_INFER, NULL, NULL, &got));
    assert_memory_not_equal(&got, &want, sizeof got);
    for (int backwards = 0; backwards < 2; backwards++) {
        poison(b);
        refresh_by_tensors(b, backwards);
        assert_ok(forward(b, TG_VIT_INFER, NULL, NULL, &got));
        assert_memory_equal(&got, &want, sizeof got);
    }
}

typedef struct asked {
    bench *b;
    pthread_t caller;
    size_t expected; /* offset of the next range */
    int count, fail_at;
} asked;

static tg_status needed(void *user, size_t offset, size_t count)
{
    asked *a = user;
    assert_true(pthread_equal(a->caller, pthread_self()));
    assert_int_equal(offset, a->expected);
    assert_true(count > 0);
    a->expected = offset + count;
    if (a->count++ == a->fail_at)
        return tg_fail(TG_ERROR_PEER, "range %d did not come", a->fail_at);
    bring(a->b, offset, count);
    return TG_OK;
}

static void check_needed(bench *b)
{
    const int ranges = (int)b->config.depth + 2;
    for (int mode = TG_VIT_INFER; mode <= TG_VIT_TRAIN; mode++) {
        const outputs want = plain(b, (tg_vit_mode)mode);
        outputs got;
        for (int fail_at = 0; fail_at <= ranges; fail_at++) { /* the last time none fails */
            asked a = {.b = b, .caller = pthread_self(), .fail_at = fail_at};
            poison(b);
            tg_status status = forward(b, (tg_vit_mode)mode, needed, &a, &got);
            if (fail_at < ranges) {
                assert_error(status, TG_ERROR_PEER, "did not come");
                assert_int_equal(a.count, fail_at + 1);
                continue;
            }
            assert_ok(status);
            assert_int_equal(a.count, ranges);
            assert_int_equal(a.expected, b->table.elements);
            assert_memory_equal(&got, &want, sizeof got);
        }
    }
}

/* Both kernels' tables, both dtypes. */
static void check_config(tg_vit_config config)
{
    tg_stream *stream = tg_test_stream();
    const tg_kern *kerns[] = {tg_kern_ref(), tg_kern_select(stream)};
    for (int k = 0; k < 2; k++)
        for (int bf16 = 0; bf16 <= (tg_stream_has_bf16(stream) ? 1 : 0); bf16++) {
            bench b;
            bench_open(&b, &config, kerns[k], stream, bf16 ? TG_BF16 : TG_F32);
            check_refresh(&b);
            check_needed(&b);
            bench_close(&b);
        }
    tg_stream_close(stream);
}

static void class_token(void **state)
{
    (void)state;
    check_config(small());
}

static void distillation_token(void **state)
{
    (void)state;
    tg_vit_config c = small();
    c.dist_token = true;
    check_config(c);
}

static void registers_and_layer_scale(void **state)
{
    (void)state;
    tg_vit_config c = small();
    c.reg_tokens = 3;
    c.no_embed_class = true;
    c.layer_scale = true;
    check_config(c);
}

static void average_pooling(void **state)
{
    (void)state;
    tg_vit_config c = small();
    c.pool = TG_POOL_AVG;
    c.layer_scale = true;
    c.qkv_bias = false;
    c.drop_path = 0.3f;
    check_config(c);
}

static void no_prefix_and_no_head(void **state)
{
    (void)state;
    tg_vit_config c = small();
    c.class_token = false;
    c.pool = TG_POOL_AVG;
    c.num_classes = 0;
    c.depth = 1;
    check_config(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class_token),
        cmocka_unit_test(distillation_token),
        cmocka_unit_test(registers_and_layer_scale),
        cmocka_unit_test(average_pooling),
        cmocka_unit_test(no_prefix_and_no_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
