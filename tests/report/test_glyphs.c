/* Bars, curves, cells and lines that fit: by their characters, in UTF-8 and in ASCII. */
#include "support/check.h"

#include "report/glyphs.h"

#include <math.h>
#include <string.h>

static const tg_glyphs BLOCKS = {.unicode = true}, ASCII = {0}, COLORS = {true, true};

static tg_text text;

static void expect(const char *wanted)
{
    assert_string_equal(tg_text_string(&text), wanted);
    tg_text_clear(&text);
}

static void cells_are_as_full_as_their_share(void **state)
{
    (void)state;
    const double shares[] = {0, 0.5, 1, 2, -1, NAN};
    for (int i = 0; i < 6; i++)
        tg_glyphs_cell(&BLOCKS, shares[i], &text);
    expect(" ▄██ ?");
    for (int i = 0; i < 6; i++)
        tg_glyphs_cell(&ASCII, shares[i], &text);
    expect(" =@@ ?");
}

static void curves_go_from_the_least_to_the_most(void **state)
{
    (void)state;
    const double rising[] = {1, 2, 3, 4, 5, 6, 7, 8}, holes[] = {3, NAN, 3}, one[] = {NAN};
    tg_glyphs_curve(&BLOCKS, rising, 8, 8, &text);
    expect("▁▂▃▄▅▆▇█");
    tg_glyphs_curve(&BLOCKS, rising, 8, 2, &text);
    expect("▁█");
    tg_glyphs_curve(&ASCII, holes, 3, 5, &text);
    expect(". .  ");
    tg_glyphs_curve(&ASCII, one, 1, 2, &text);
    expect("  ");
    tg_glyphs_curve(&ASCII, NULL, 0, 2, &text);
    expect("  ");
}

static void bars_are_filled_and_dealt_out(void **state)
{
    (void)state;
    tg_glyphs_bar(&ASCII, 0.5, 4, &text);
    expect("##..");
    tg_glyphs_bar(&BLOCKS, NAN, 2, &text);
    expect("░░");
    const double parts[] = {1, 0, 2, NAN, 0.1};
    tg_glyphs_parts(&ASCII, parts, 5, 4, 8, &text);
    expect("##++++  ");
    tg_glyphs_parts(&ASCII, parts, 5, 0, 2, &text);
    expect("  ");
    tg_glyphs_part(&COLORS, 0, &text);
    expect("\033[31m█\033[0m");
}

static void width_counts_columns(void **state)
{
    (void)state;
    assert_int_equal(tg_glyphs_width("abc", 3), 3);
    assert_int_equal(tg_glyphs_width("▁█", strlen("▁█")), 2);
    assert_int_equal(tg_glyphs_width("김치", strlen("김치")), 4);
    assert_int_equal(tg_glyphs_width("e\xCC\x81", 3), 1);
    assert_int_equal(tg_glyphs_width("\033[31mx\033[0m", 10), 1);
    assert_int_equal(tg_glyphs_width("\xFF\xFE", 2), 2); /* no UTF-8: a column a byte */
}

static void lines_are_cut_to_fit(void **state)
{
    (void)state;
    assert_int_equal(tg_glyphs_fit(&ASCII, "0123456789", 10, &text), 10);
    expect("0123456789");
    assert_int_equal(tg_glyphs_fit(&ASCII, "0123456789", 8, &text), 8);
    expect("01234...");
    assert_int_equal(tg_glyphs_fit(&BLOCKS, "김치김치", 6, &text),
                     5); /* half a character is none */
    expect("김...");
    assert_int_equal(tg_glyphs_fit(&ASCII, "김a", 9, &text), 3);
    expect("??a");
    tg_glyphs_fit(&BLOCKS, "a\nb\033[2Jc\x7f", 20, &text); /* nothing that commands a terminal */
    expect("ab[2Jc");
    assert_int_equal(tg_glyphs_fit(&BLOCKS, "abcdef", 2, &text), 2);
    expect("..");
    assert_int_equal(tg_glyphs_fit(&BLOCKS, "abc", 0, &text), 0);
    expect("");
}

static void numbers_take_few_columns(void **state)
{
    (void)state;
    static const struct {
        void (*print)(double, tg_text *);
        double value;
        const char *wanted;
    } CASES[] = {
        {tg_glyphs_count, 5300, "5.30k"},     {tg_glyphs_count, 0.5, "0.50"},
        {tg_glyphs_count, 999.6, "1.00k"},    {tg_glyphs_count, 42, "42.0"},
        {tg_glyphs_count, NAN, "-"},          {tg_glyphs_bytes, 512, "512 B"},
        {tg_glyphs_bytes, 1536, "1.5 KiB"},   {tg_glyphs_bytes, 1023.0 * 1048576, "1.0 GiB"},
        {tg_glyphs_bytes, INFINITY, "-"},     {tg_glyphs_seconds, 0.0123, "12.3 ms"},
        {tg_glyphs_seconds, 0.412, "412 ms"}, {tg_glyphs_seconds, 5, "5.00 s"},
        {tg_glyphs_seconds, 59.97, "1:00"},   {tg_glyphs_seconds, 200, "3:20"},
        {tg_glyphs_seconds, 3723, "1:02:03"}, {tg_glyphs_seconds, 183600, "2d 03h"},
        {tg_glyphs_seconds, NAN, "-"},        {tg_glyphs_seconds, -1, "-"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        CASES[i].print(CASES[i].value, &text);
        expect(CASES[i].wanted);
    }
    tg_text_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_as_full_as_their_share),
        cmocka_unit_test(curves_go_from_the_least_to_the_most),
        cmocka_unit_test(bars_are_filled_and_dealt_out),
        cmocka_unit_test(width_counts_columns),
        cmocka_unit_test(lines_are_cut_to_fit),
        cmocka_unit_test(numbers_take_few_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
