/* Mistyped names find the right one; words far from everything find nothing. */
#include "support/check.h"

#include "base/nearest.h"

#include <string.h>

static const char *const NAMES[] = {"batch-size", "epochs", "lr", "weight-decay", "warmup-epochs"};

static void finds(void **state)
{
    (void)state;
    const char *pairs[][2] = {
        {"batchsize", "batch-size"},
        {"batch-szie", "batch-size"},
        {"epoch", "epochs"},
        {"rl", "lr"},
        {"warmup_epochs", "warmup-epochs"},
        {"lr", "lr"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(tg_nearest_of(pairs[i][0], NAMES, 5), pairs[i][1]);
}

static void finds_nothing_far_away(void **state)
{
    (void)state;
    char longest[200];
    memset(longest, 'l', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(tg_nearest_of("momentum", NAMES, 5));
    assert_null(tg_nearest_of("zz", NAMES, 5)); /* "lr" is as far as writing it anew */
    assert_null(tg_nearest_of("", NAMES, 5));
    assert_null(tg_nearest_of(longest, NAMES, 5));
    assert_null(tg_nearest_of("lr", NAMES, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds),
                                       cmocka_unit_test(finds_nothing_far_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
