/* Run queue and pressure: a tree of copies, what it lacks, and this process's own. */
#include "support/check.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/queue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char root[2048];

static void write_text(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_ok(tg_file_write(path, text, strlen(text)));
}

static int make_tree(void **state)
{
    char path[4096];
    (void)state;
    static const char *const folders[] = {"proc/self/task/7", "proc/self/task/8", "proc/pressure"};
    snprintf(root, sizeof root, "%s", tg_test_temp_dir());
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_ok(tg_folder_make(path));
    }
    return 0;
}

static void adds_threads_up(void **state)
{
    (void)state;
    const tg_queue none = tg_queue_read(root);
    assert_true(none.ran_ns == -1 && none.waited_ns == -1 && none.pressure_ns == -1);
    write_text("proc/self/task/7/schedstat", "1000000000 500000000 12\n");
    write_text("proc/self/task/8/schedstat", "3 4 5\n");
    write_text("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=2000000\n"
                                    "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
    const tg_queue q = tg_queue_read(root);
    assert_true(q.ran_ns == 1000000003 && q.waited_ns == 500000004 && q.pressure_ns == 2000000000);
    const tg_queue begin = {0, 0, 0};
    assert_true(fabs(tg_queue_busy_s(&begin, &q) - 1.500000007) < 1e-9);
    assert_true(tg_queue_pressure_s(&begin, &q) == 2);
    assert_true(isnan(tg_queue_busy_s(&none, &q)) && isnan(tg_queue_pressure_s(&none, &q)));
    write_text("proc/self/task/8/schedstat", "nonsense");
    write_text("proc/pressure/cpu", "some nothing");
    const tg_queue damaged = tg_queue_read(root);
    assert_true(damaged.ran_ns == 1000000000 && damaged.pressure_ns == -1);
}

static void sees_this_process(void **state)
{
    (void)state;
    const tg_queue begin = tg_queue_read("");
    const int64_t until = tg_clock_ns() + 20000000;
    while (tg_clock_ns() < until)
        continue;
    const tg_queue end = tg_queue_read("");
    if (begin.ran_ns < 0)
        skip(); /* the kernel keeps no such accounts */
    assert_true(tg_queue_busy_s(&begin, &end) > 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_threads_up),
        cmocka_unit_test(sees_this_process),
    };
    return cmocka_run_group_tests(tests, make_tree, NULL);
}
