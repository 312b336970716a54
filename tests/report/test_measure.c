/* Means, the interval that noise leaves them, and what counts as a change. */
#include "support/check.h"

#include "base/rng.h"
#include "report/measure.h"

#include <math.h>

/* 1 to 1.2, the same each time. */
static double noise(size_t i)
{
    return 1 + 0.2 * (double)((i * 2654435761u >> 7) % 1000) / 1000;
}

static void unknown_values_are_left_out(void **state)
{
    (void)state;
    const double values[] = {NAN, 2, INFINITY, 4}, none[] = {NAN};
    tg_measure m = tg_measure_of(values, 4);
    assert_float_equal(m.mean, 3, 1e-12);
    assert_int_equal(m.count, 2);
    assert_true(isnan(m.half_width)); /* too few for an interval */
    m = tg_measure_of(none, 1);
    assert_true(isnan(m.mean));
    m = tg_measure_of(NULL, 0);
    assert_true(isnan(m.mean));
}

static void blocks_give_the_interval(void **state)
{
    (void)state;
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = 5;
    assert_float_equal(tg_measure_of(values, 100).half_width, 0, 1e-12);
    for (int i = 0; i < 100; i++)
        values[i] = i / 10 % 2 ? 1 : -1; /* block means 1 and -1: deviation sqrt(10/9) */
    assert_float_equal(tg_measure_of(values, 100).half_width, 2.262 / 3, 1e-6);
    for (int i = 0; i < 100; i++)
        values[i] = i % 2; /* noise that is over within a block is none of the mean */
    assert_float_equal(tg_measure_of(values, 100).half_width, 0, 1e-12);
}

/* The interval holds the true mean about as often as it says. */
static void the_interval_holds(void **state)
{
    (void)state;
    int outside = 0;
    for (int run = 0; run < 200; run++) {
        double values[60];
        tg_rng rng = tg_rng_init(7, (uint64_t)run, 0, TG_RNG_TEST);
        for (int i = 0; i < 60; i++)
            values[i] = tg_rng_uniform(&rng);
        const tg_measure m = tg_measure_of(values, 60);
        outside += fabs(m.mean - 0.5) > m.half_width;
    }
    assert_in_range(outside, 1, 25); /* 5 % of 200 are 10 */
}

static void changes_are_beyond_the_noise(void **state)
{
    (void)state;
    double a[200], b[200], slower[200];
    for (size_t i = 0; i < 200; i++) {
        a[i] = noise(i);
        b[i] = 1.001 * noise(i + 1000);
        slower[i] = 1.05 * noise(i + 2000);
    }
    const tg_measure in_a = tg_measure_of(a, 200), in_b = tg_measure_of(b, 200);
    const tg_measure in_slower = tg_measure_of(slower, 200);
    assert_int_equal(tg_measure_compare(&in_a, &in_b), TG_CHANGE_NONE);
    assert_int_equal(tg_measure_compare(&in_a, &in_slower), TG_CHANGE_MORE);
    assert_int_equal(tg_measure_compare(&in_slower, &in_a), TG_CHANGE_LESS);
    const tg_measure twice = tg_measure_scale(in_a, 2);
    assert_float_equal(twice.half_width, 2 * in_a.half_width, 1e-12);
    const tg_measure ten = tg_measure_exact(10), eleven = tg_measure_exact(10.9),
                     twelve = tg_measure_exact(12);
    assert_int_equal(tg_measure_compare(&ten, &eleven), TG_CHANGE_NONE); /* of unknown noise */
    assert_int_equal(tg_measure_compare(&ten, &twelve), TG_CHANGE_MORE);
    const tg_measure unknown = tg_measure_exact(NAN);
    assert_int_equal(tg_measure_compare(&ten, &unknown), TG_CHANGE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_values_are_left_out),
        cmocka_unit_test(blocks_give_the_interval),
        cmocka_unit_test(the_interval_holds),
        cmocka_unit_test(changes_are_beyond_the_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
