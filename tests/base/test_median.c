/* The order of a few numbers: median and quantiles, of few, of equal and of none. */
#include "support/check.h"

#include "base/median.h"

#include <math.h>

static void test_median(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
    (void)state;
    assert_true(tg_median(odd, 3) == 2);
    assert_true(odd[0] == 1 && odd[2] == 3); /* sorted */
    assert_true(tg_median(even, 4) == 2.5);
    assert_true(tg_median(one, 1) == 7);
}

static void test_quantile(void **state)
{
    const double values[] = {0, 10, 20, 30, 40};
    (void)state;
    assert_true(tg_quantile(values, 5, 0) == 0);
    assert_true(tg_quantile(values, 5, 0.5) == 20);
    assert_true(fabs(tg_quantile(values, 5, 0.95) - 38) < 1e-12);
    assert_true(tg_quantile(values, 5, 1) == 40);
    assert_true(tg_quantile(values, 1, 0.99) == 0);
    assert_true(isnan(tg_quantile(values, 0, 0.5)));
    tg_sort_doubles(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_median),
                                       cmocka_unit_test(test_quantile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
