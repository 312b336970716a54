/* What the machine's cores were taken for, from copies of /proc/stat. */
#include "support/check.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tg_load read_text(const char *text)
{
    char root[4200], path[4300];
    snprintf(root, sizeof root, "%s/load", tg_test_temp_dir());
    snprintf(path, sizeof path, "%s/proc", root);
    assert_ok(tg_folder_make(path));
    snprintf(path, sizeof path, "%s/proc/stat", root);
    assert_ok(tg_file_write(path, text, strlen(text)));
    return tg_load_read(root);
}

/* Two cores, 10 s: 12 s of them idle, 2 s waiting for disks, 1 s stolen. */
static void test_difference(void **state)
{
    (void)state;
    tg_load a =
        read_text("cpu  5 0 7 1000 50 1 2 10 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\ncpu9 no more\n");
    tg_load b = read_text("cpu  9 0 9 2200 250 1 2 110 0 0\ncpu0 1 1\ncpu1 1 1\nintr 6\n");
    double busy = NAN;
    assert_int_equal(a.cores, 2);
    b.at_ns = a.at_ns + 10000000000;
    assert_true(tg_load_between(&a, &b, &busy));
    const double tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    assert_true(fabs(busy - (20e9 - 1500 * tick)) < 1);
    b.at_ns = a.at_ns + 1; /* never below nothing */
    assert_true(tg_load_between(&a, &b, &busy) && busy == 0);
}

static void test_not_known(void **state)
{
    (void)state;
    double busy;
    tg_load known = read_text("cpu  5 0 7 1000 50\ncpu0 1 1\n");
    tg_load more = read_text("cpu  5 0 7 1000 50\ncpu0 1 1\ncpu1 1 1\n");
    tg_load none = read_text("nothing of the kind\n"), absent = tg_load_read("/nowhere");
    assert_int_equal(known.cores, 1);
    assert_int_equal(none.cores, 0);
    assert_int_equal(absent.cores, 0);
    assert_false(tg_load_between(&none, &none, &busy));
    assert_false(tg_load_between(&absent, &known, &busy));
    assert_false(tg_load_between(&known, &more, &busy));
}

/* This machine: a loop on one core is seen. */
static void test_real(void **state)
{
    (void)state;
    double busy;
    const tg_load begin = tg_load_read("");
    if (!begin.cores)
        skip();
    while (tg_clock_ns() - begin.at_ns < 300000000)
        ;
    const tg_load end = tg_load_read("");
    assert_true(tg_load_between(&begin, &end, &busy));
    assert_true(busy <= 1.1 * begin.cores * 3e8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
