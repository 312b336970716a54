/* ranks.jsonl: exact text, reading back, what a reader tolerates, and resuming. */
#include "support/check.h"

#include "os/file.h"
#include "run/rank_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *path_of(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static const tg_rank_step EACH[2] = {
    {.images = 16,
     .t_step = 0.41,
     .t_data = 0.01,
     .t_forward = 0.1,
     .t_backward = 0.2,
     .t_reduce = 0.05,
     .t_optimizer = 0.04,
     .t_other = 0.01,
     .rss_bytes = 1000},
    {.images = 15, .t_step = 0.41, .t_reduce = 0.41, .rss_bytes = 2000}};

static const char TEXT[] =
    "{\"step\":3,\"ranks\":2,\"images\":[16,15],\"t_step\":[0.41,0.41],\"t_data\":[0.01,0],"
    "\"t_teacher\":[0,0],\"t_forward\":[0.1,0],\"t_backward\":[0.2,0],\"t_reduce\":[0.05,0.41],"
    "\"t_optimizer\":[0.04,0],\"t_other\":[0.01,0],\"rss_bytes\":[1000,2000]}\n";

typedef struct seen {
    int64_t steps[16];
    size_t count, ranks;
    tg_rank_step last;
} seen;

static void note(void *user, int64_t step, const tg_rank_step *each, size_t ranks)
{
    seen *s = user;
    assert_true(s->count < 16 && ranks > 0);
    s->steps[s->count++] = step;
    s->ranks = ranks;
    s->last = each[ranks - 1];
}

static void write_steps(const char *path, bool resume, int64_t last, int64_t first, int64_t end)
{
    tg_rank_steps writer;
    assert_ok(tg_rank_steps_open(path, resume, last, &writer));
    for (int64_t step = first; step < end; step++)
        assert_ok(tg_rank_steps_write(&writer, step, EACH, 2));
    tg_rank_steps_close(&writer);
    tg_rank_steps_close(&writer);
}

static void exact_text_and_back(void **state)
{
    (void)state;
    char *path = path_of("exact"), *bytes;
    size_t length, bad = 9;
    seen s = {0};
    write_steps(path, false, 0, 3, 4);
    assert_ok(tg_file_read(path, 4096, &bytes, &length));
    assert_string_equal(bytes, TEXT);
    free(bytes);
    assert_ok(tg_rank_steps_read(path, note, &s, &bad));
    assert_int_equal(bad, 0);
    assert_int_equal(s.ranks, 2);
    assert_memory_equal(&s.last, &EACH[1], sizeof s.last);
}

static void resumed_without_repeats(void **state)
{
    (void)state;
    char *path = path_of("resumed");
    seen s = {0};
    write_steps(path, false, 0, 1, 8);
    write_steps(path, true, 5, 6, 9);
    assert_ok(tg_rank_steps_read(path, note, &s, NULL));
    assert_int_equal(s.count, 8);
    for (size_t i = 0; i < s.count; i++)
        assert_int_equal(s.steps[i], (int64_t)i + 1);
    assert_ok(tg_rank_steps_drop(path, 2)); /* a run of one rank goes on */
    s = (seen){0};
    assert_ok(tg_rank_steps_read(path, note, &s, NULL));
    assert_int_equal(s.count, 2);
    assert_ok(tg_rank_steps_drop(path_of("absent"), 2));
    assert_false(tg_file_exists(path_of("absent")));
    write_steps(path_of("fresh"), true, 10, 11, 12); /* the first step of several ranks is late */
    s = (seen){0};
    assert_ok(tg_rank_steps_read(path_of("fresh"), note, &s, NULL));
    assert_int_equal(s.steps[0], 11);
}

static void odd_lines(void **state)
{
    (void)state;
    const char *lines =
        "{\"step\":1,\"t_step\":[1,2]}\n" /* columns are missing */
        "{\"step\":2}\n"                  /* all of them */
        "nonsense\n"                      /* */
        "{\"step\":3,\"ranks\":2,\"images\":[-1,15],\"t_step\":[0,0],\"t_data\":[0,0],"
        "\"t_teacher\":[0,0],\"t_forward\":[0,0],\"t_backward\":[0,0],\"t_reduce\":[0,0],"
        "\"t_optimizer\":[0,0],\"t_other\":[0,0],\"rss_bytes\":[0,0]}\n";
    char *path = path_of("odd");
    size_t bad = 0;
    seen s = {0};
    tg_text text = {0};
    tg_text_append_string(&text, lines);
    tg_text_append_string(&text, TEXT);
    tg_text_append(&text, TEXT, 40); /* torn */
    assert_ok(tg_file_write(path, text.data, text.length));
    tg_text_done(&text);
    assert_ok(tg_rank_steps_read(path, note, &s, &bad));
    assert_int_equal(s.count, 1);
    assert_int_equal(bad, 4);
    assert_error(tg_rank_steps_read(path_of("none"), note, &s, NULL), TG_ERROR_INPUT, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_text_and_back),
        cmocka_unit_test(resumed_without_repeats),
        cmocka_unit_test(odd_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
