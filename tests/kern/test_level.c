/* What a run records about its kernels is what they choose: the row operations' table itself, and
 * attention's bits, which are those of a stream capped at the level that is recorded. */
#include "support/check.h"

#include "base/rng.h"
#include "kern/cpu/rows.h"
#include "kern/kern.h"
#include "kern/level.h"

enum { B = 1, T = 45, H = 2, D = 32, QKV = B * T * 3 * H * D, O = B * T * H * D };

static void rows_are_those_of_the_table(void **state)
{
    (void)state;
    for (int level = 0; level <= (int)tg_cpu_level_detect(); level++) {
        tg_cpu_level recorded = tg_kern_rows_level((tg_cpu_level)level);
        assert_true((int)recorded <= level);
        assert_ptr_equal(tg_rows_select((tg_cpu_level)level), tg_rows_select(recorded));
        /* the recorded level has a version of its own, so nothing lower would be truer */
        if (recorded > TG_CPU_PORTABLE)
            assert_ptr_not_equal(tg_rows_select(recorded),
                                 tg_rows_select((tg_cpu_level)(recorded - 1)));
    }
}

static _Alignas(64) float f32[QKV];
static _Alignas(64) uint16_t bf16[QKV];
static _Alignas(64) char got[TG_CPU_LEVEL_COUNT][2][O * sizeof(float)];

static void forward(tg_stream *stream, tg_dtype dtype, void *out)
{
    const tg_attention_shape shape = {
        .B = B, .T = T, .H = H, .D = D, .T_q = T, .scale = 0.2f, .dtype = dtype};
    const void *qkv = dtype == TG_BF16 ? (const void *)bf16 : f32;
    assert_ok(tg_kern_select(stream)->attention.forward(stream, &shape, qkv, out, NULL));
}

/* A process may lower its cap but not raise it, so levels are visited downwards. */
static void attention_is_that_of_the_recorded_level(void **state)
{
    (void)state;
    const tg_cpu_level top = tg_cpu_level_detect();
    tg_rng rng = tg_rng_init(5, 0, 0, TG_RNG_TEST);
    for (size_t i = 0; i < QKV; i++) {
        f32[i] = tg_rng_normal(&rng);
        bf16[i] = tg_bf16_from_f32(f32[i]);
    }
    for (int level = (int)top; level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(1, (tg_cpu_level)level, &stream));
        forward(stream, TG_F32, got[level][TG_F32]);
        if (tg_stream_has_bf16(stream))
            forward(stream, TG_BF16, got[level][TG_BF16]);
        tg_stream_close(stream);
    }
    for (int level = (int)top; level >= 0; level--) {
        tg_cpu_level f = tg_kern_attention_level((tg_cpu_level)level, TG_F32);
        tg_cpu_level b = tg_kern_attention_level((tg_cpu_level)level, TG_BF16);
        assert_true((int)f <= level && (int)b <= level);
        assert_memory_equal(got[level][TG_F32], got[f][TG_F32], sizeof got[0][0]);
        if (level >= TG_CPU_AVX512_BF16)
            assert_memory_equal(got[level][TG_BF16], got[b][TG_BF16], sizeof got[0][0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_table),
        cmocka_unit_test(attention_is_that_of_the_recorded_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
