/* The table of operations that times (kern/traced.h) changes no bit of a step, and its account names
 * every product that the usual count of FLOPs knows. */
#include "support/check.h"
#include "support/device.h"

#include "infer/network.h"
#include "kern/traced.h"
#include "os/clock.h"
#include "trace/trace.h"
#include "train/step.h"

#include <stdlib.h>
#include <string.h>

enum { B = 3, K = 5, SIDE = 32, IMAGE = 3 * SIDE * SIDE, STEPS = 2 };

static float images[B * IMAGE], targets[B * K];
static uint64_t indices[B];
static tg_stream *stream;

static int open_all(void **state)
{
    (void)state;
    stream = tg_test_stream();
    for (size_t i = 0; i < B * IMAGE; i++)
        images[i] = (float)(i * 7919 % 1009) / 504.0F - 1;
    for (size_t b = 0; b < B; b++) {
        targets[b * K + b] = 1;
        indices[b] = b;
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tg_stream_close(stream);
    return 0;
}

typedef struct outcome {
    float *params;
    size_t elements;
    double loss;
    int64_t ns; /* of the network's opening and all steps */
    tg_vit_config config;
} outcome;

static void open_network(const tg_kern *kern, tg_dtype dtype, tg_network *out)
{
    const tg_network_request request = {.model = "vit_tiny_patch16_224",
                                        .shape = {.img_size = SIDE,
                                                  .patch_size = 8,
                                                  .embed_dim = 64,
                                                  .depth = 3,
                                                  .num_heads = 2,
                                                  .reg_tokens = -1,
                                                  .num_classes = K},
                                        .trainable = true,
                                        .dtype = dtype,
                                        .seed = 3};
    assert_ok(tg_network_open(&request, kern, stream, out));
}

/* STEPS steps of training through `kern`. The caller frees out->params. */
static void train(const tg_kern *kern, tg_dtype dtype, outcome *out)
{
    const tg_optimizer_options adamw = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.05, .layer_decay = 1};
    const tg_batch batch = {
        .count = B, .image = images, .target = targets, .sample_index = indices};
    tg_network network;
    tg_optimizer optimizer;
    tg_arena arena = {0};
    tg_step_report report;
    const int64_t start = tg_clock_ns();
    open_network(kern, dtype, &network);
    const size_t n = network.table.elements;
    float *flat = aligned_alloc(TG_ALIGN, 3 * TG_ARENA_ROUND(n * sizeof(float)));
    assert_non_null(flat);
    memset(flat, 0, 3 * TG_ARENA_ROUND(n * sizeof(float)));
    const size_t stride = TG_ARENA_ROUND(n * sizeof(float)) / sizeof(float);
    assert_ok(tg_optimizer_init(&optimizer, &adamw, kern, stream, &network.table, network.params,
                                flat + stride, flat + 2 * stride, NULL));
    tg_step step = {.kern = kern,
                    .stream = stream,
                    .student = network.vit,
                    .optimizer = &optimizer,
                    .arena = &arena,
                    .grads = flat,
                    .num_classes = K,
                    .mean_over = B,
                    .seed = 1};
    assert_ok(tg_arena_init(&arena, tg_step_arena_bytes(&step, B, dtype), "test"));
    for (int i = 0; i < STEPS; i++) {
        assert_ok(tg_step_micro(&step, &batch, 0, true));
        assert_ok(tg_step_update(&step, 1e-3, 0, &report));
    }
    *out = (outcome){.elements = n,
                     .loss = report.loss,
                     .ns = tg_clock_ns() - start,
                     .config = network.info.config};
    out->params = malloc(n * sizeof(float));
    assert_non_null(out->params);
    memcpy(out->params, network.params, n * sizeof(float));
    tg_optimizer_done(&optimizer);
    tg_arena_done(&arena);
    free(flat);
    tg_network_close(&network);
}

static void compare_tables(tg_dtype dtype, bool attach)
{
    const tg_kern traced = tg_kern_traced(stream);
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace *trace;
    outcome plain, timed;
    train(tg_kern_select(stream), dtype, &plain);
    assert_ok(tg_trace_new(tg_stream_threads(stream), 0, &trace));
    tg_trace_attach(attach ? trace : NULL, 0);
    train(&traced, dtype, &timed);
    tg_trace_attach(NULL, 0);
    assert_true(plain.loss == timed.loss);
    assert_int_equal(plain.elements, timed.elements);
    assert_memory_equal(plain.params, timed.params, plain.elements * sizeof(float));
    assert_true(attach == (tg_trace_collect(trace, totals) > 0));
    tg_trace_free(trace);
    free(plain.params);
    free(timed.params);
}

static void test_traced_steps_have_the_same_bits(void **state)
{
    (void)state;
    compare_tables(TG_F32, true);
    compare_tables(TG_F32, false);
    if (tg_stream_has_bf16(stream))
        compare_tables(TG_BF16, true);
}

/* FLOPs of one step as carried out: 2 a multiply-add, backward twice the forward, but attention's makes
 * its scores again, images get no gradient, and after the last block's keys and values only the rows of
 * class tokens are computed. */
static double step_flops(const tg_vit_config *c)
{
    const double C = (double)c->embed_dim, F = (double)c->mlp_hidden;
    const double N = (double)tg_vit_patches(c), T = (double)tg_vit_tokens(c);
    const double full = (double)c->depth - 1;
    const double embed = N * 3 * (double)(c->patch * c->patch) * C;
    const double scores = full * T * T * C + T * C;
    const double rows = full * T + 1;
    const double macs = embed + (full + 1) * T * C * 3 * C + 2 * scores +
                        rows * (C * C + 2 * C * F) + C * (double)c->num_classes;
    return 2.0 * B * (3 * macs - embed + scores);
}

static void test_account_has_every_product(void **state)
{
    (void)state;
    const tg_kern traced = tg_kern_traced(stream);
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace *trace;
    outcome done;
    assert_ok(tg_trace_new(tg_stream_threads(stream), 0, &trace));
    tg_trace_attach(trace, 0);
    train(&traced, TG_F32, &done);
    tg_trace_attach(NULL, 0);
    size_t count = tg_trace_collect(trace, totals);
    double flops = 0, adamw_bytes = 0;
    int64_t ns = 0;
    for (size_t i = 0; i < count; i++) {
        const tg_trace_totals *t = &totals[i];
        assert_true((t->flops > 0) != (t->bytes > 0)); /* a product or a row operation */
        flops += t->flops;
        if (strcmp(t->key.name, "adamw") == 0)
            adamw_bytes += t->bytes;
        ns += t->ns;
    }
    assert_true(flops == STEPS * step_flops(&done.config)); /* whole numbers far below 2^53 */
    assert_true(adamw_bytes == 28.0 * STEPS * (double)done.elements);
    assert_true(ns > 0 && ns <= done.ns);
    free(done.params);
    tg_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traced_steps_have_the_same_bits),
        cmocka_unit_test(test_account_has_every_product),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
