/* Steps that took much longer than their like, told from noise and from a new pace. */
#include "support/check.h"

#include "train/outlier.h"

/* 100 ms with 2 % of noise, the same every time. */
static double usual(size_t i)
{
    return 0.1 * (1 + 0.02 * ((double)(i * 7919 % 101) / 50 - 1));
}

static tg_outlier after_usual(size_t steps)
{
    tg_outlier rule = {0};
    for (size_t i = 0; i < steps; i++)
        assert_false(tg_outlier_add(&rule, usual(i)));
    return rule;
}

static void a_slow_step_is_one(void **state)
{
    (void)state;
    tg_outlier rule = after_usual(200);
    assert_false(tg_outlier_add(&rule, 0.12)); /* a fifth more */
    assert_true(tg_outlier_add(&rule, 0.13));
    assert_true(rule.median > 0.098 && rule.median < 0.102);
    assert_true(tg_outlier_add(&rule, 1));
    assert_false(tg_outlier_add(&rule, 0.001)); /* a fast one is none */
}

static void the_first_steps_are_looked_at(void **state)
{
    (void)state;
    tg_outlier rule = {0};
    assert_false(tg_outlier_add(&rule, 30)); /* the very first takes longest */
    for (size_t i = 1; i < TG_OUTLIER_FIRST; i++)
        assert_false(tg_outlier_add(&rule, i == 5 ? 3 : usual(i)));
    assert_true(tg_outlier_add(&rule, 0.2)); /* neither hides this one */
}

static void noise_is_none(void **state)
{
    (void)state;
    tg_outlier rule = {0};
    for (size_t i = 0; i < 300; i++) /* two paces in turns, one twice the other */
        assert_false(tg_outlier_add(&rule, i % 2 ? 0.1 : 0.2));
    tg_outlier tiny = {0};
    for (size_t i = 0; i < 100; i++) /* of a millisecond, three are nothing */
        assert_false(tg_outlier_add(&tiny, i % 20 == 19 ? 0.003 : 0.001));
}

static void a_new_pace_becomes_the_usual_one(void **state)
{
    (void)state;
    tg_outlier rule = after_usual(100);
    size_t outliers = 0;
    for (size_t i = 0; i < 100; i++)
        outliers += tg_outlier_add(&rule, 2 * usual(i));
    assert_true(outliers >= 1 && outliers <= TG_OUTLIER_WINDOW);
    assert_false(tg_outlier_add(&rule, 0.2));
    assert_true(tg_outlier_add(&rule, 0.4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_step_is_one),
        cmocka_unit_test(the_first_steps_are_looked_at),
        cmocka_unit_test(noise_is_none),
        cmocka_unit_test(a_new_pace_becomes_the_usual_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
