/* The nutrition table: strict reading, unknown cells, doubtful energy, names, the shipped rows. */
#include "support/check.h"

#include "infer/nutrition.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "class,display_name,serving_g,kcal_per_100g,carbohydrate_g,protein_g,fat_g\n"

static tg_status parse(const char *text, tg_nutrition *out)
{
    return tg_nutrition_parse(text, strlen(text), "t.csv", out);
}

static void test_shipped_table(void **state)
{
    (void)state;
    tg_nutrition t;
    assert_ok(tg_nutrition_shipped(&t));
    assert_int_equal(t.count, 166);
    assert_string_equal(tg_text_string(&t.warnings), "");
    const tg_nutrition_row *row = tg_nutrition_find(&t, "apple_pie");
    assert_non_null(row);
    assert_string_equal(row->display_name, "Apple pie");
    assert_string_equal(row->source_description, "Pie, apple"); /* quoted, with its comma */
    assert_true(row->per_100g[TG_NUTRIENT_ENERGY] == 296);
    assert_true(row->per_100g[TG_NUTRIENT_SODIUM] == 217);
    assert_true(fabs(tg_nutrition_per_serving(row, TG_NUTRIENT_ENERGY) - 444) < 1e-9);
    row = tg_nutrition_find(&t, "falafel");
    assert_true(isnan(row->per_100g[TG_NUTRIENT_SUGARS]));
    assert_true(isnan(tg_nutrition_per_serving(row, TG_NUTRIENT_FIBER)));
    assert_false(isnan(row->per_100g[TG_NUTRIENT_FAT]));
    tg_nutrition_done(&t);
}

static void test_names_are_found_however_they_are_spelt(void **state)
{
    (void)state;
    tg_nutrition t;
    assert_ok(tg_nutrition_shipped(&t));
    const tg_nutrition_row *row = tg_nutrition_find(&t, "apple_pie");
    const char *const spellings[] = {"Apple Pie", "APPLE-PIE", " apple  pie ", "apple pie_"};
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(tg_nutrition_find(&t, spellings[i]), row);
    assert_null(tg_nutrition_find(&t, "applepie"));
    assert_null(tg_nutrition_find(&t, "apple_pi"));
    assert_null(tg_nutrition_find(&t, ""));
    tg_nutrition_done(&t);
}

static void test_quotes_line_ends_and_byte_order_mark(void **state)
{
    (void)state;
    tg_nutrition t;
    assert_ok(parse("\xEF\xBB\xBF"
                    "note,class,fat_g\r\n\"a, \"\"b\"\"\r\nc\",x,1.5\r\n\r\n,\"y\",",
                    &t));
    assert_int_equal(t.count, 2);
    assert_string_equal(t.rows[0].note, "a, \"b\"\r\nc");
    assert_string_equal(t.rows[0].display_name, "x");
    assert_true(t.rows[0].per_100g[TG_NUTRIENT_FAT] == 1.5);
    assert_string_equal(t.rows[1].class_name, "y");
    assert_int_equal(t.rows[1].line, 5);
    assert_true(isnan(t.rows[1].per_100g[TG_NUTRIENT_FAT]));
    assert_true(isnan(t.rows[1].serving_g));
    tg_nutrition_done(&t);
}

static void test_faults_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "the table is empty"},
        {"name\nx\n", "\"name\" is no column"},
        {"class,sodium_g\nx,1\n", "did you mean sodium_mg?"},
        {"class,class\nx,y\n", "two columns"},
        {"fat_g\n1\n", "no column \"class\""},
        {"class,fat_g\nx,1\ny,2,3\n", "line 3: 3 fields, but there are 2"},
        {"class,fat_g\nx,1\ny\n", "line 3: 1 fields"},
        {"class,fat_g\nx,\"1\n", "line 2: the record that begins here"},
        {"class,fat_g\n\"a\nb\"c,1\n", "line 3: text behind a closing quote"},
        {"class,fat_g\nx\"y,1\n", "line 2: a quote inside"},
        {"class,fat_g\rx,1\r", "line 1: a carriage return"},
        {"class,fat_g\nx,1,5\n", "line 2: 3 fields"},
        {"class,fat_g\nx,1.2.3\n", "t.csv: line 2, column fat_g: \"1.2.3\""},
        {"class,fat_g\nx,-1\n", "line 2, column fat_g: \"-1\""},
        {"class,fat_g\nx,nan\n", "line 2, column fat_g"},
        {"class,fat_g\nx, 1\n", "line 2, column fat_g"},
        {"class,fat_g\nx,1\nX ,2\n", "line 3: class \"X \" is already in line 2"},
        {"class,fat_g\n_ ,1\n", "line 2: the class is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_nutrition t = {0};
        assert_error(parse(cases[i].text, &t), TG_ERROR_INPUT, cases[i].part);
        assert_null(t.rows);
    }
    tg_nutrition t = {0};
    assert_error(tg_nutrition_parse("class\nx\0y\n", 10, "t.csv", &t), TG_ERROR_INPUT, "zero byte");
    assert_error(tg_nutrition_read("/nowhere/t.csv", &t), TG_ERROR_INPUT, "/nowhere/t.csv");
}

static void test_doubtful_energy_is_named(void **state)
{
    (void)state;
    tg_nutrition t;
    assert_ok(parse(HEADER "bread,Bread,50,265,49,9,3.2\n"  /* right */
                           "kilojoule,K,50,1109,49,9,3.2\n" /* kJ in the kcal column */
                           "low,L,50,63,49,9,3.2\n"         /* kcal divided by 4.2 */
                           "unknown,U,50,1109,49,,3.2\n"    /* nothing to hold it against */
                           "heavy,H,50,650,80,20,30\n",     /* 130 g in 100 g */
                    &t));
    assert_int_equal(t.warning_count, 3);
    assert_false(t.rows[0].doubtful);
    assert_true(t.rows[1].doubtful);
    assert_true(t.rows[2].doubtful);
    assert_false(t.rows[3].doubtful);
    assert_true(t.rows[4].doubtful);
    assert_non_null(strstr(tg_text_string(&t.warnings), "t.csv: line 3, kilojoule: kcal_per_100g"));
    tg_nutrition_done(&t);
}

static void test_kilojoules_are_held_against_kilocalories(void **state)
{
    (void)state;
    tg_nutrition t;
    assert_ok(
        parse("class,kcal_per_100g,kj_per_100g\nsame,100,418\nother,100,100\nonly,,418.4\n", &t));
    assert_int_equal(t.warning_count, 1);
    assert_true(t.rows[1].doubtful);
    assert_true(fabs(t.rows[2].per_100g[TG_NUTRIENT_ENERGY] - 100) < 1e-9);
    tg_nutrition_done(&t);
}

static void test_every_cut_of_a_table_is_read_or_refused(void **state)
{
    (void)state;
    static const char text[] = HEADER "\"a\"\"b\",\"c,\nd\",50,265,49,9,3.2\r\ne,f,1,2,3,4,5\r\n";
    for (size_t n = 0; n < sizeof text; n++) {
        tg_nutrition t = {0};
        char *copy = malloc(n + 1); /* exact, so that a read beyond is seen */
        memcpy(copy, text, n);
        tg_status status = tg_nutrition_parse(copy, n, "t.csv", &t);
        assert_true(status == TG_OK || status == TG_ERROR_INPUT);
        tg_nutrition_done(&t);
        free(copy);
    }
}

static void test_numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    tg_nutrition t;
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        skip();
    assert_ok(parse("class,fat_g\nx,1.5\n", &t));
    assert_true(t.rows[0].per_100g[TG_NUTRIENT_FAT] == 1.5);
    tg_nutrition_done(&t);
    assert_error(parse("class,fat_g\nx,\"1,5\"\n", &t), TG_ERROR_INPUT, "\"1,5\"");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_table),
        cmocka_unit_test(test_names_are_found_however_they_are_spelt),
        cmocka_unit_test(test_quotes_line_ends_and_byte_order_mark),
        cmocka_unit_test(test_faults_name_their_line),
        cmocka_unit_test(test_doubtful_energy_is_named),
        cmocka_unit_test(test_kilojoules_are_held_against_kilocalories),
        cmocka_unit_test(test_every_cut_of_a_table_is_read_or_refused),
        cmocka_unit_test(test_numbers_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
