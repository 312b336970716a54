/* metrics.jsonl: exact text, what a reader tolerates, and resuming without repeats or losses. */
#include "support/check.h"

#include "os/file.h"
#include "run/metrics.h"

#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char *path_of(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static tg_step_record step_record(int64_t step)
{
    return (tg_step_record){.step = step,
                            .epoch = step / 5,
                            .images = 32,
                            .loss = 0.1,
                            .loss_task = 2,
                            .loss_kd = NAN,
                            .lr = 1e-5,
                            .grad_norm = 1.5,
                            .images_per_s = 14.25,
                            .t_step = 2,
                            .t_data = 0.25,
                            .t_forward = 0.5,
                            .t_backward = 1,
                            .t_optimizer = 0.125,
                            .t_other = 0.125,
                            .rss_bytes = 123456789,
                            .time = 1772000000.5124};
}

static const char STEP_TEXT[] =
    "{\"step\":3,\"epoch\":0,\"images\":32,\"loss\":0.1,\"loss_task\":2,\"loss_kd\":null,"
    "\"lr\":1e-05,\"grad_norm\":1.5,\"images_per_s\":14.25,\"t_step\":2,\"t_data\":0.25,"
    "\"t_teacher\":0,\"t_forward\":0.5,\"t_backward\":1,\"t_reduce\":0,\"t_optimizer\":0.125,"
    "\"t_other\":0.125,\"rss_bytes\":123456789,\"time\":1772000000.512}";
static const char EVAL_TEXT[] = "{\"epoch\":1,\"val_top1\":50.5,\"val_top5\":90,\"val_loss\":1.25,"
                                "\"val_images\":595,\"time\":null}";

static void exact_text(void **state)
{
    (void)state;
    tg_step_record step = step_record(3);
    tg_eval_record eval = {1, 50.5, 90, 1.25, 595, NAN};
    const char *locales[] = {"C", "de_DE.UTF-8"};
    for (int i = 0; i < 2; i++) {
        tg_text text = {0};
        setlocale(LC_ALL, locales[i]); /* where it is absent the first round is repeated */
        tg_step_record_print(&step, &text);
        assert_string_equal(text.data, STEP_TEXT);
        tg_text_clear(&text);
        tg_eval_record_print(&eval, &text);
        assert_string_equal(text.data, EVAL_TEXT);
        tg_text_done(&text);
        setlocale(LC_ALL, "C");
    }
}

typedef struct seen {
    int64_t steps[64], evals[64];
    size_t step_count, eval_count;
    tg_step_record last;
} seen;

static void note(void *user, const tg_step_record *step, const tg_eval_record *eval)
{
    seen *s = user;
    if (step) {
        s->steps[s->step_count++] = step->step;
        s->last = *step;
    } else {
        s->evals[s->eval_count++] = eval->epoch;
    }
}

static seen read_all(const char *path, size_t *out_bad)
{
    seen s = {0};
    assert_ok(tg_metrics_read(path, note, &s, out_bad));
    return s;
}

static void append_raw(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");
    fputs(text, file);
    fclose(file);
}

/* Steps 1 to 17 with an evaluation after each five; the checkpoint is at step 10, epoch 2. */
static void write_seventeen(const char *path)
{
    tg_metrics metrics;
    assert_ok(tg_metrics_open(path, false, 0, 0, &metrics));
    for (int64_t i = 1; i <= 17; i++) {
        tg_step_record record = step_record(i);
        assert_ok(tg_metrics_write_step(&metrics, &record));
        tg_eval_record eval = {.epoch = i / 5, .val_top1 = 1};
        if (i % 5 == 0)
            assert_ok(tg_metrics_write_eval(&metrics, &eval));
    }
    tg_metrics_close(&metrics);
    tg_metrics_close(&metrics);
}

static void reader_tolerates_torn_and_bad_lines(void **state)
{
    (void)state;
    char *path = path_of("torn.jsonl");
    size_t bad = 9;
    write_seventeen(path);
    append_raw(path, "nonsense\n[1]\n{\"step\":\"x\"}\n{\"step\":18,\"lo");
    seen s = read_all(path, &bad);
    assert_int_equal(s.step_count, 17);
    assert_int_equal(s.eval_count, 3);
    assert_int_equal(bad, 3);
    assert_true(isnan(s.last.loss_kd) && s.last.loss == 0.1 && s.last.rss_bytes == 123456789);
    assert_error(tg_metrics_read(path_of("absent"), note, &s, NULL), TG_ERROR_INPUT, "absent");
}

static void resume_neither_repeats_nor_loses(void **state)
{
    (void)state;
    char *path = path_of("resume.jsonl");
    tg_metrics metrics;
    write_seventeen(path);
    append_raw(path, "{\"step\":18,\"lo");
    assert_ok(tg_metrics_open(path, true, 10, 2, &metrics));
    for (int64_t i = 11; i <= 20; i++) {
        tg_step_record record = step_record(i);
        assert_ok(tg_metrics_write_step(&metrics, &record));
    }
    tg_metrics_close(&metrics);
    size_t bad;
    seen s = read_all(path, &bad);
    assert_int_equal(bad, 0);
    assert_int_equal(s.step_count, 20);
    for (int64_t i = 0; i < 20; i++)
        assert_int_equal(s.steps[i], i + 1);
    assert_int_equal(s.eval_count, 2);
    assert_ok(tg_metrics_open(path, false, 0, 0, &metrics)); /* a new job starts an empty file */
    tg_metrics_close(&metrics);
    assert_int_equal(read_all(path, &bad).step_count, 0);
    assert_ok(tg_metrics_open(path_of("fresh.jsonl"), true, 10, 2, &metrics));
    tg_metrics_close(&metrics);
}

/* A record that does not fit is taken back; once there is room the file goes on whole. */
static void full_disk_leaves_whole_lines(void **state)
{
    (void)state;
    char *path = path_of("full.jsonl");
    tg_metrics metrics;
    struct rlimit before, small;
    tg_step_record one = step_record(1), two = step_record(2), three = step_record(3);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = strlen(STEP_TEXT) + 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(tg_metrics_open(path, false, 0, 0, &metrics));
    assert_ok(tg_metrics_write_step(&metrics, &one));
    setrlimit(RLIMIT_FSIZE, &small);
    tg_status status = tg_metrics_write_step(&metrics, &two);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_error(status, TG_ERROR_MACHINE, "full.jsonl");
    assert_ok(tg_metrics_write_step(&metrics, &three));
    tg_metrics_close(&metrics);
    size_t bad;
    seen s = read_all(path, &bad);
    assert_int_equal(bad, 0);
    assert_int_equal(s.step_count, 2);
    assert_int_equal(s.steps[1], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_text),
        cmocka_unit_test(reader_tolerates_torn_and_bad_lines),
        cmocka_unit_test(resume_neither_repeats_nor_loses),
        cmocka_unit_test(full_disk_leaves_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
