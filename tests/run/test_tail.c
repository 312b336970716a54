/* Following a file: whole lines once each, torn ones later, files that are replaced, cut, absent or too long. */
#include "support/check.h"

#include "os/file.h"
#include "run/tail.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct seen {
    char lines[512]; /* "<" for a file that begins anew */
} seen;

static tg_status take(void *user, const char *line, size_t length)
{
    seen *s = user;
    const size_t at = strlen(s->lines);
    if (line && length > 100)
        snprintf(s->lines + at, sizeof s->lines - at, "(%zu)", length);
    else
        snprintf(s->lines + at, sizeof s->lines - at, "%.*s", line ? (int)length : 1,
                 line ? line : "<");
    return TG_OK;
}

static void append(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect(tg_tail *tail, const char *wanted)
{
    seen s = {""};
    bool news;
    assert_ok(tg_tail_read(tail, take, &s, &news));
    assert_string_equal(s.lines, wanted);
    assert_int_equal(news || wanted[0] == '\0', true);
}

static char *fresh(const char *name, tg_tail *tail, uint64_t at_most)
{
    char *path = tg_path_join(tg_test_temp_dir(), name);
    unlink(path);
    assert_ok(tg_tail_open(tg_test_temp_dir(), name, at_most, tail));
    return path;
}

static void each_line_comes_once(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("grows", &tail, 0);
    expect(&tail, "");
    append(path, "a\nb");
    expect(&tail, "<a\n");
    expect(&tail, "");
    append(path, "b\nc\n");
    expect(&tail, "bb\nc\n");
    expect(&tail, "");
    tg_tail_close(&tail);
    free(path);
}

static void a_replaced_file_begins_anew(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("replaced", &tail, 0);
    append(path, "a\nb\nc\n");
    expect(&tail, "<a\nb\nc\n");
    assert_ok(tg_file_write(path, "a\n", 2));
    expect(&tail, "<a\n");
    append(path, "d\n");
    expect(&tail, "d\n");
    unlink(path); /* what is known stays */
    expect(&tail, "");
    append(path, "e\n");
    expect(&tail, "<e\n");
    tg_tail_close(&tail);
    free(path);
}

static void a_cut_file_begins_anew(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("cut", &tail, 0);
    append(path, "aaaa\nbbbb\n");
    expect(&tail, "<aaaa\nbbbb\n");
    assert_int_equal(truncate(path, 0), 0);
    append(path, "c\n");
    expect(&tail, "<c\n");
    assert_int_equal(truncate(path, 0), 0); /* cut, and longer again before the next look */
    append(path, "dddddddddd\n");
    expect(&tail, "<dddddddddd\n");
    tg_tail_close(&tail);
    free(path);
}

static void of_a_long_file_the_end_is_read(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("long", &tail, 10);
    append(path, "first line\nsecond\nthird\n");
    expect(&tail, "<third\n");
    append(path, "this is more than ten bytes\n");
    expect(&tail, "this is more than ten bytes\n");
    tg_tail_close(&tail);
    free(path);
}

static void a_line_that_is_too_long_is_passed_over(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("line", &tail, 0), *line = malloc(TG_TAIL_LINE_BYTES + 8);
    memset(line, 'x', TG_TAIL_LINE_BYTES + 7);
    line[TG_TAIL_LINE_BYTES + 7] = '\0';
    append(path, line);
    append(path, "\nshort\n");
    expect(&tail, "<short\n");
    tg_tail_close(&tail);
    free(line);
    free(path);
}

static void a_pipe_of_that_name_is_no_file(void **state)
{
    (void)state;
    tg_tail tail;
    char *path = fresh("pipe", &tail, 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(&tail, "");
    tg_tail_close(&tail);
    tg_tail_close(NULL);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_comes_once),
        cmocka_unit_test(a_replaced_file_begins_anew),
        cmocka_unit_test(a_cut_file_begins_anew),
        cmocka_unit_test(of_a_long_file_the_end_is_read),
        cmocka_unit_test(a_line_that_is_too_long_is_passed_over),
        cmocka_unit_test(a_pipe_of_that_name_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
