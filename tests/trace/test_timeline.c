/* A timeline is whole, compressed JSON: what was added with the clock's offset, within its budget. */
#include "support/check.h"
#include "support/timeline.h"

#include "trace/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void path_of(const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", tg_test_temp_dir(), name);
}

static void what_is_added_is_read(void **state)
{
    (void)state;
    char path[512];
    tg_timeline *timeline;
    const tg_timeline_head head = {.rank = 3,
                                   .ranks = 8,
                                   .host = "a \"b\"",
                                   .offset_ns = -1500,
                                   .offset_error_ns = 250,
                                   .budget_bytes = 1 << 20};
    const tg_timeline_argument arguments[] = {{"mib", 1.5, NULL}, {"step", 7, NULL}};
    const tg_timeline_event events[] = {{.name = "step 7",
                                         .category = "step",
                                         .begin_ns = 123456789012345,
                                         .end_ns = 123456789912346},
                                        {.name = "x\n",
                                         .category = "phase",
                                         .begin_ns = 123456789012345,
                                         .end_ns = 123456789012345,
                                         .arguments = arguments,
                                         .argument_count = 2}};
    path_of("a.json.gz", path);
    assert_ok(tg_timeline_open(&head, &timeline));
    tg_timeline_name_row(timeline, 0, "compute");
    tg_timeline_name_row(timeline, 1, "exchange");
    tg_timeline_add(timeline, 0, &events[0]);
    assert_ok(tg_timeline_write(timeline, path)); /* whole, and not the end */
    tg_test_timeline first = tg_test_timeline_read(path);
    assert_int_equal(first.count, 1);
    tg_test_timeline_done(&first);
    tg_timeline_add(timeline, 1, &events[1]);
    assert_ok(tg_timeline_write(timeline, path));
    tg_timeline_free(timeline);
    tg_timeline_free(NULL);

    tg_test_timeline t = tg_test_timeline_read(path);
    assert_int_equal(t.rank, 3);
    assert_int_equal(t.ranks, 8);
    assert_int_equal(t.left_out, 0);
    assert_true(t.offset_us == -1.5 && t.error_us == 0.25);
    assert_string_equal(t.process, "rank 3 on a \"b\"");
    assert_string_equal(t.rows[0], "compute");
    assert_string_equal(t.rows[1], "exchange");
    assert_int_equal(t.count, 2);
    assert_string_equal(t.events[0].name, "step 7");
    assert_true(t.events[0].begin_ns == events[0].begin_ns - 1500);
    assert_true(t.events[0].end_ns == events[0].end_ns - 1500);
    assert_true(t.events[0].pid == 3 && isnan(t.events[0].mib));
    assert_string_equal(t.events[1].name, "x\n");
    assert_true(t.events[1].row == 1 && t.events[1].mib == 1.5 && t.events[1].step == 7);
    tg_test_timeline_done(&t);
}

/* Whatever they hold, names are JSON. */
static void names_are_escaped(void **state)
{
    (void)state;
    char path[512];
    tg_timeline *timeline;
    static const char *const names[] = {"\"\\", "\x01\x1f\t", "\xff\xc0\x80 caf\xc3\xa9",
                                        "</script>,]}"};
    const tg_timeline_head head = {
        .ranks = 1, .host = "\x02\xfe", .backend = "\"", .budget_bytes = 1 << 20};
    path_of("c.json.gz", path);
    assert_ok(tg_timeline_open(&head, &timeline));
    for (size_t i = 0; i < 4; i++) {
        const tg_timeline_event event = {.name = names[i],
                                         .category = "c",
                                         .begin_ns = 10 * (int64_t)i,
                                         .end_ns = 10 * (int64_t)i + 5};
        tg_timeline_name_row(timeline, (int)i, names[i]);
        tg_timeline_add(timeline, (int)i, &event);
    }
    assert_ok(tg_timeline_write(timeline, path));
    tg_timeline_free(timeline);
    tg_test_timeline t = tg_test_timeline_read(path);
    assert_int_equal(t.count, 4);
    assert_string_equal(t.events[0].name, "\"\\");
    assert_string_equal(t.events[1].name, "\x01\x1f\t");
    assert_string_equal(t.events[3].name, "</script>,]}");
    tg_test_timeline_done(&t);
}

/* Beyond the budget events are counted, and the file stays whole. */
static void a_budget_holds(void **state)
{
    enum { EVENTS = 20000, BUDGET = 20000 };
    (void)state;
    char path[512], name[32];
    tg_timeline *timeline;
    const tg_timeline_head head = {.ranks = 1, .host = "a", .budget_bytes = BUDGET};
    path_of("b.json.gz", path);
    assert_ok(tg_timeline_open(&head, &timeline));
    for (int i = 0; i < EVENTS; i++) {
        snprintf(name, sizeof name, "%u", (unsigned)i * 2654435761u);
        const tg_timeline_event event = {
            .name = name, .category = "c", .begin_ns = i * 10, .end_ns = i * 10 + 5};
        tg_timeline_add(timeline, i % 512, &event); /* few a row: each pair of one is looked at */
    }
    assert_ok(tg_timeline_write(timeline, path));
    tg_timeline_free(timeline);
    tg_test_timeline t = tg_test_timeline_read(path);
    assert_true(t.count > 1000 && t.left_out > 1000);
    assert_non_null(strstr(t.notice, "events left out"));
    assert_int_equal(t.count + (size_t)t.left_out, EVENTS);
    tg_test_timeline_done(&t);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    assert_true(ftell(file) < BUDGET + 65536); /* and what deflate holds back */
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_read),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(a_budget_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
