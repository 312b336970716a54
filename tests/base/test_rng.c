/* The generator gives Philox's published numbers, and its distributions have the right moments. */
#include "support/check.h"

#include "base/rng.h"

#include <math.h>

/* Known answers of Random123's kat_vectors for philox4x32-10 with all-zero key and counter. */
static void known_answer(void **state)
{
    (void)state;
    tg_rng rng = {.used = 4};
    const uint32_t want[4] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    for (int i = 0; i < 4; i++)
        assert_int_equal(tg_rng_u32(&rng), want[i]);
}

static void streams_differ(void **state)
{
    (void)state;
    tg_rng a = tg_rng_init(1, 0, 0, TG_RNG_TEST);
    tg_rng b = tg_rng_init(1, 1, 0, TG_RNG_TEST);
    tg_rng c = tg_rng_init(1, 0, 1, TG_RNG_TEST);
    tg_rng d = tg_rng_init(2, 0, 0, TG_RNG_TEST);
    uint32_t x = tg_rng_u32(&a);
    assert_int_not_equal(x, tg_rng_u32(&b));
    assert_int_not_equal(x, tg_rng_u32(&c));
    assert_int_not_equal(x, tg_rng_u32(&d));
}

/* 100,000 draws: the mean of n values with variance s2 is within 5 sqrt(s2/n). */
static void moments(void **state)
{
    (void)state;
    enum { N = 100000 };
    const double alphas[] = {0.2, 0.8, 1.0, 3.0};
    double sum = 0, square = 0;
    tg_rng rng = tg_rng_init(7, 0, 0, TG_RNG_TEST);
    for (int i = 0; i < N; i++) {
        double x = tg_rng_normal(&rng);
        sum += x;
        square += x * x;
    }
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
    for (int a = 0; a < 4; a++) {
        double alpha = alphas[a], s = 0, q = 0, variance = 1 / (4 * (2 * alpha + 1));
        for (int i = 0; i < N; i++) {
            double x = tg_rng_beta(&rng, alpha);
            assert_true(x >= 0 && x <= 1);
            s += x;
            q += (x - 0.5) * (x - 0.5);
        }
        assert_true(fabs(s / N - 0.5) < 5 * sqrt(variance / N));
        assert_true(fabs(q / N - variance) < 5 * 0.25 / sqrt(N));
    }
}

static void permutation_is_complete(void **state)
{
    (void)state;
    uint32_t order[1000];
    char seen[1000] = {0};
    tg_rng rng = tg_rng_init(3, 9, 0, TG_RNG_SHUFFLE);
    tg_rng_permutation(&rng, order, 1000);
    for (int i = 0; i < 1000; i++)
        seen[order[i]]++;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answer),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(moments),
        cmocka_unit_test(permutation_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
