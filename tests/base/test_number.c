/* Numbers read and write the same under every locale, strictly, and come back bit for bit. */
#include "support/check.h"

#include "base/number.h"
#include "base/rng.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_double(const char *text, double *out)
{
    return tg_number_parse_double(text, strlen(text), out);
}

static void reads_decimals(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"-1.5", -1.5},
                {"+2", 2},
                {".5", 0.5},
                {"5.", 5},
                {"1e3", 1000},
                {"1E-3", 0.001},
                {"0.1", 0.1},
                {"5e-324", 5e-324},
                {"1e-400", 0},
                {"1.7976931348623157e308", 0x1.fffffffffffffp1023}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = -77;
        assert_true(read_double(good[i].text, &value));
        assert_true(value == good[i].value);
    }
}

static void refuses_the_rest(void **state)
{
    (void)state;
    const char *bad[] = {"",   " 1", "1 ", "0x10", "inf", "nan", "NaN",   "1,5",    "1.5.2", "1e",
                         "e5", ".",  "-",  "+-1",  "1e+", "1_0", "1e999", "-1e999", "--1",   "1f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 42;
        float small = 42;
        assert_false(read_double(bad[i], &value));
        assert_false(tg_number_parse_float(bad[i], strlen(bad[i]), &small));
        assert_true(value == 42 && small == 42);
    }
    char nul[] = "1\0002";
    double value;
    assert_false(tg_number_parse_double(nul, 3, &value));
    char longest[TG_NUMBER_MAX_BYTES + 1];
    memset(longest, '1', sizeof longest);
    assert_false(tg_number_parse_double(longest, sizeof longest, &value));
    assert_true(tg_number_parse_double("12x", 2, &value));
    assert_true(value == 12);
}

static void integers_keep_to_their_range(void **state)
{
    (void)state;
    int64_t i = 7;
    uint64_t u = 7;
    assert_true(tg_number_parse_i64("-9223372036854775808", 20, &i) && i == INT64_MIN);
    assert_true(tg_number_parse_i64("9223372036854775807", 19, &i) && i == INT64_MAX);
    assert_false(tg_number_parse_i64("9223372036854775808", 19, &i));
    assert_false(tg_number_parse_i64("-9223372036854775809", 20, &i));
    assert_true(tg_number_parse_u64("18446744073709551615", 20, &u) && u == UINT64_MAX);
    assert_false(tg_number_parse_u64("18446744073709551616", 20, &u));
    const char *bad[] = {"", "-", "+", "1.0", "1e3", " 1", "-+1", "0x1"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_false(tg_number_parse_i64(bad[k], strlen(bad[k]), &i));
    assert_false(tg_number_parse_u64("-1", 2, &u));
}

static void formats_shortest(void **state)
{
    (void)state;
    const struct {
        double value;
        const char *text;
    } doubles[] = {{0.1, "0.1"},
                   {1e21, "1e+21"},
                   {5, "5"},
                   {5e-324, "5e-324"},
                   {1 / 3.0, "0.3333333333333333"},
                   {-0.0, "-0"},
                   {NAN, "nan"},
                   {-INFINITY, "-inf"},
                   {0.1 + 0.2, "0.30000000000000004"}};
    char text[TG_NUMBER_BYTES];
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        assert_int_equal(tg_number_format_double(doubles[i].value, text), strlen(doubles[i].text));
        assert_string_equal(text, doubles[i].text);
    }
    tg_number_format_float(0.1f, text);
    assert_string_equal(text, "0.1");
    tg_number_format_float(1e-45f, text);
    assert_string_equal(text, "1e-45");
}

/* Every bit pattern that is a number survives the way out and back. */
static void round_trips(void **state)
{
    (void)state;
    tg_rng rng = tg_rng_init(1, 0, 0, TG_RNG_TEST);
    char text[TG_NUMBER_BYTES];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = (uint64_t)tg_rng_u32(&rng) << 32 | tg_rng_u32(&rng);
        double value, back;
        memcpy(&value, &bits, 8);
        float small, small_back;
        uint32_t half = (uint32_t)bits;
        memcpy(&small, &half, 4);
        if (isfinite(value)) {
            assert_true(tg_number_parse_double(text, tg_number_format_double(value, text), &back));
            assert_memory_equal(&value, &back, 8);
        }
        if (isfinite(small)) {
            assert_true(
                tg_number_parse_float(text, tg_number_format_float(small, text), &small_back));
            assert_memory_equal(&small, &small_back, 4);
        }
    }
}

static void print_uses_the_point(void **state)
{
    (void)state;
    char text[32];
    assert_int_equal(tg_number_print(text, sizeof text, "%.2f|%g", 1.5, 0.25), 9);
    assert_string_equal(text, "1.50|0.25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_decimals),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(integers_keep_to_their_range),
        cmocka_unit_test(formats_shortest),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(print_uses_the_point),
    };
    int failed = cmocka_run_group_tests_name("C locale", tests, NULL, NULL);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        return failed ? failed
                      : (fprintf(stderr, "skipped: locale de_DE.UTF-8 is not installed\n"), 77);
    char comma[8];
    snprintf(comma, sizeof comma, "%.1f", 0.5);
    if (strcmp(comma, "0,5") != 0)
        return 1; /* the locale would prove nothing */
    return failed + cmocka_run_group_tests_name("de_DE.UTF-8", tests, NULL, NULL);
}
