/* What eval says about classes: shares, the worst of many, the pairs most often confused. */
#include "support/check.h"

#include "cli/confusion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_few_classes(void **state)
{
    (void)state;
    char *names[] = {(char[]){"apple_pie"}, (char[]){"pizza"}, (char[]){"never_seen"}};
    const uint64_t counts[9] = {3, 1, 0, 2, 1, 1, 0, 0, 0};
    tg_text text = {0};
    tg_confusion_text(counts, names, 3, &text);
    assert_string_equal(tg_text_string(&text), "\n  class      photos    right\n"
                                               "  apple_pie       4   75.0 %\n"
                                               "  pizza           4   25.0 %\n"
                                               "\n  most often confused\n"
                                               "       2  pizza taken for apple_pie\n"
                                               "       1  apple_pie taken for pizza\n"
                                               "       1  pizza taken for never_seen\n");
    tg_text_done(&text);
}

static void test_nothing_confused(void **state)
{
    (void)state;
    char *names[] = {(char[]){"a"}, (char[]){"b"}};
    const uint64_t counts[4] = {1, 0, 0, 2};
    tg_text text = {0};
    tg_confusion_text(counts, names, 2, &text);
    assert_null(strstr(tg_text_string(&text), "confused"));
    tg_text_done(&text);
}

/* 50 classes of 100 photos; class k has k of them right, the rest taken for the next class. */
static void test_many_classes_show_the_worst(void **state)
{
    (void)state;
    enum { MANY = 50 };
    static uint64_t counts[MANY * MANY];
    static char storage[MANY][8];
    char *names[MANY];
    tg_text text = {0};
    for (size_t k = 0; k < MANY; k++) {
        snprintf(storage[k], sizeof storage[k], "c%zu", k);
        names[k] = storage[k];
        counts[k * MANY + k] = k;
        counts[k * MANY + (k + 1) % MANY] = 100 - k;
    }
    tg_confusion_text(counts, names, MANY, &text);
    const char *out = tg_text_string(&text);
    assert_non_null(strstr(out, "the 20 classes of 50 that are worst:"));
    assert_non_null(strstr(out, "  c0        100    0.0 %\n"));
    assert_non_null(strstr(out, "  c19       100   19.0 %\n"));
    assert_null(strstr(out, "  c20 "));
    assert_non_null(strstr(out, "     100  c0 taken for c1\n"));
    assert_non_null(strstr(out, "      96  c4 taken for c5\n"));
    assert_null(strstr(out, "c5 taken for c6"));
    tg_text_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_classes),
        cmocka_unit_test(test_nothing_confused),
        cmocka_unit_test(test_many_classes_show_the_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
