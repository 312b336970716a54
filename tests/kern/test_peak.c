/* The peak: measured within its time, in both types, and not beyond what arithmetic allows. */
#include "support/check.h"

#include "kern/peak.h"
#include "os/clock.h"

static void test_peak(void **state)
{
    (void)state;
    tg_stream *stream;
    tg_peak f32 = {0}, bf16 = {0};
    assert_ok(tg_stream_open_cpu(1, TG_CPU_AMX, &stream));
    int64_t start = tg_clock_ns();
    assert_ok(tg_kern_peak(stream, TG_F32, &f32));
    double seconds = tg_clock_seconds(tg_clock_ns() - start);
    if (tg_stream_has_bf16(stream)) {
        assert_ok(tg_kern_peak(stream, TG_BF16, &bf16));
        assert_true(bf16.flops_per_s > 0.5 * f32.flops_per_s && bf16.fastest_flops_per_s < 1e13);
    }
    /* one core: at most 2 x 64 float operations a cycle below 8 GHz */
    assert_true(f32.flops_per_s > 1e8 && f32.fastest_flops_per_s < 128 * 8e9);
    assert_true(f32.flops_per_s <= f32.fastest_flops_per_s);
    assert_true(seconds < 60); /* the first, smallest product alone on a slow, shared machine */
    tg_stream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
