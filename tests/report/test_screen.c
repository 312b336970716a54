/* What tagine watch shows: lines that fit, whatever the run's files say and the terminal's size; nothing unknown as 0. */
#include "support/check.h"
#include "support/run_files.h"

#include "report/screen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN 1772000000.0

static tg_live live;

static char *make_run(void)
{
    char *run = tg_run_files_make("screen");
    tg_run_files_write(
        run, "run.json",
        "{\"command\":\"train\",\"machine\":{\"host\":\"a\\u001b[2Jb\"},\"ranks\":2,"
        "\"plan\":{\"epochs\":4,\"total_steps\":40},\"end\":\"then\",\"exit\":1,"
        "\"failure\":\"the disk is full, and this reason is longer than any terminal is wide, so "
        "that its end must be left out\"}");
    tg_run_files_write(
        run, "findings.json",
        "{\"findings\":[{\"rule\":\"Oversubscription\",\"severity\":\"serious\",\"title\":\"8 "
        "loader "
        "threads on 2 cores: compute threads are pushed aside 5300 times a second\"}]}");
    tg_run_files_append(run, "log/rank-0.log",
                        "2026-01-01T00:00:01.000Z warning photo \xEA\xB9\x80.jpg is bad\n");
    tg_run_files_steps(run, 1, 20, BEGIN, 0.5);
    tg_run_files_append(run, "metrics.jsonl", "{\"epoch\":2,\"val_top1\":61.25}\n");
    for (int i = 0; i < 3; i++) {
        tg_system_sample s = tg_run_files_sample(BEGIN + 8 + i, 2, 0.97, 5.25);
        s.values[TG_SYSTEM_GROUP_LIMIT_BYTES] = INFINITY;
        s.values[TG_SYSTEM_ROLE(TG_ROLE_LOADER, TG_SYSTEM_THREADS)] = 8;
        s.values[TG_SYSTEM_ROLE(TG_ROLE_LOADER, TG_SYSTEM_CPU)] = 0.5;
        tg_run_files_add_sample(run, i == 2 ? "b" : "a", 2, &s);
    }
    return run;
}

static void print(bool unicode, bool color, size_t columns, size_t rows, tg_text *out)
{
    const tg_screen screen = {
        .glyphs = {unicode, color}, .columns = columns, .rows = rows, .keys = "q quits"};
    tg_text_clear(out);
    tg_screen_print(&screen, &live, out);
}

static size_t check_lines(const tg_text *text, size_t columns)
{
    size_t lines = 0;
    for (const char *at = tg_text_string(text); *at; lines++) {
        const size_t n = strcspn(at, "\n");
        if (tg_glyphs_width(at, n) > columns)
            fail_msg("wider than %zu: %.*s", columns, (int)n, at);
        at += n + 1;
    }
    return lines;
}

static void assert_has(const tg_text *text, const char *part)
{
    if (!strstr(tg_text_string(text), part))
        fail_msg("no \"%s\" in:\n%s", part, tg_text_string(text));
}

static void all_is_there_on_80_columns(void **state)
{
    (void)state;
    tg_text text = {0};
    print(false, false, 80, 24, &text);
    assert_in_range(check_lines(&text, 80), 12, 24);
    static const char *const PARTS[] = {"train on a[2Jb - 2 ranks",
                                        "failed (exit code 1)",
                                        "step 20/40",
                                        "epoch 2/4",
                                        "top-1 61.2 %",
                                        "backward 60 %",
                                        "64.0 now",
                                        "97 % busy, 5.2 threads want 2 cores",
                                        "16 loader on 1.00 cores",
                                        "8.0 GiB of 16.0 GiB",
                                        "the disk is full",
                                        "Oversubscription: 8 loader",
                                        "00:00:01 photo ?",
                                        "q quits",
                                        "read -"};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++)
        assert_has(&text, PARTS[i]);
    for (const char *at = tg_text_string(&text); *at; at++)
        assert_true((*at >= ' ' && *at < 127) || *at == '\n');
    tg_text_done(&text);
}

static void every_size_fits(void **state)
{
    (void)state;
    tg_text text = {0};
    for (size_t columns = 20; columns <= 200; columns += 9)
        for (size_t rows = 4; rows <= 40; rows += 4) {
            print(columns % 2, rows % 8 == 0, columns, rows, &text);
            assert_in_range(check_lines(&text, columns), 4, rows);
        }
    tg_text_done(&text);
}

static void what_matters_stays(void **state)
{
    (void)state;
    tg_text text = {0};
    print(false, false, 80, 6, &text);
    assert_int_equal(check_lines(&text, 80), 6);
    assert_has(&text, "step 20/40");
    assert_has(&text, "the disk is full");
    assert_has(&text, "97 % busy");
    tg_text_done(&text);
}

static void colors_are_ended(void **state)
{
    (void)state;
    tg_text text = {0};
    print(true, true, 80, 24, &text);
    for (const char *at = tg_text_string(&text); (at = strstr(at, "\033[")); at++)
        assert_non_null(strchr(at, 'm'));
    assert_has(&text, "\033[0m");
    assert_has(&text, "█");
    tg_text_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_there_on_80_columns),
        cmocka_unit_test(every_size_fits),
        cmocka_unit_test(what_matters_stays),
        cmocka_unit_test(colors_are_ended),
    };
    char *run = make_run();
    if (tg_live_open(run, NULL, &live) < 0 || tg_live_look(&live, BEGIN + 10, NULL) < 0)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tg_live_close(&live);
    free(run);
    return failed;
}
