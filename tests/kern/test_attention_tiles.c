/* Attention and oneDNN share the threads, and on AMX machines their tile configuration: taking
 * turns changes neither's results. */
#include "support/check.h"

#include "base/rng.h"
#include "kern/kern.h"

#include <stdlib.h>
#include <string.h>

enum { B = 2, T = 70, H = 2, D = 64, C = H * D, TURNS = 4 };

static void *array_new(size_t n, tg_dtype dtype, uint64_t seed)
{
    tg_rng rng = tg_rng_init(seed, 0, 0, TG_RNG_TEST);
    void *out = aligned_alloc(64, (n * tg_dtype_bytes(dtype) + 63) / 64 * 64);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        float x = tg_rng_normal(&rng);
        if (dtype == TG_BF16)
            ((uint16_t *)out)[i] = tg_bf16_from_f32(x);
        else
            ((float *)out)[i] = x;
    }
    return out;
}

/* The first turn's results must come back in every later turn. */
static void same_again(const void *now, void *first, size_t bytes, int turn)
{
    if (turn == 0)
        memcpy(first, now, bytes);
    else
        assert_memory_equal(now, first, bytes);
}

static void take_turns(void **state)
{
    (void)state;
    tg_stream *stream;
    assert_ok(tg_stream_open_cpu(2, tg_cpu_level_detect(), &stream));
    const tg_kern *kern = tg_kern_select(stream);
    tg_dtype dtype = tg_stream_has_bf16(stream) ? TG_BF16 : TG_F32;
    size_t size = tg_dtype_bytes(dtype), n = (size_t)B * T * C;
    void *x = array_new(n, dtype, 1), *qkv = array_new(3 * n, dtype, 2);
    void *o = array_new(n, dtype, 3), *d_o = array_new(n, dtype, 4);
    void *dqkv = array_new(3 * n, dtype, 5);
    void *first_qkv = malloc(3 * n * size), *first_o = malloc(n * size);
    void *first_dqkv = malloc(3 * n * size);
    assert_true(first_qkv && first_o && first_dqkv);
    float *w = array_new((size_t)3 * C * C, TG_F32, 6),
          *lse = array_new((size_t)B * H * T, TG_F32, 7);
    tg_weight *weight;
    assert_ok(kern->linear.weight_new(stream, 3 * C, C, dtype, true, &weight));
    assert_ok(kern->linear.weight_refresh(stream, weight, w));
    const tg_attention_shape s = {
        .B = B, .T = T, .H = H, .D = D, .T_q = T, .scale = 0.01f, .dtype = dtype};
    for (int turn = 0; turn < TURNS; turn++) {
        assert_ok(kern->linear.forward(stream, weight, (size_t)B * T, x, NULL, qkv, dtype));
        same_again(qkv, first_qkv, 3 * n * size, turn);
        assert_ok(kern->attention.forward(stream, &s, qkv, o, lse));
        same_again(o, first_o, n * size, turn);
        assert_ok(kern->attention.backward(stream, &s, qkv, o, lse, d_o, dqkv));
        same_again(dqkv, first_dqkv, 3 * n * size, turn);
    }
    kern->linear.weight_free(weight);
    void *const all[] = {x, qkv, o, d_o, dqkv, first_qkv, first_o, first_dqkv, w, lse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    tg_stream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(take_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
