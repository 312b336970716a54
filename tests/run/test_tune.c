/* tune.json: what is written reads back, bounds, what is none of ours, and the history that shows it. */
#include "support/check.h"

#include "os/file.h"
#include "os/folder.h"
#include "run/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *path_of(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static tg_tune_search_record example(int chosen)
{
    tg_tune_search_record s = {.reason = "start",
                               .time = 1772000000.5,
                               .step = 70,
                               .steps = 63,
                               .seconds = 12.25,
                               .cost_s = 1.5,
                               .threads = 2,
                               .cores = 2,
                               .ranks = 1,
                               .batch_size = 64,
                               .best = 2,
                               .chosen = chosen,
                               .why = "1 worker: the fewest within the noise of \"2\"",
                               .point_count = 3,
                               .trial_count = TG_TUNE_TRIALS};
    for (int i = 0; i < 3; i++)
        s.points[i] = (tg_tune_point){.workers = i,
                                      .trials = 3,
                                      .images_per_s = 20 + i,
                                      .noise = 0.25,
                                      .run_queue = 1.5 * i,
                                      .pressure = NAN};
    for (int i = 0; i < TG_TUNE_TRIALS; i++)
        s.trials[i] = (tg_tune_point){.workers = i % 3, .trials = 1, .step = i, .noise = NAN};
    return s;
}

static void reads_what_was_written(void **state)
{
    (void)state;
    tg_tune_file file = {0}, got;
    const tg_tune_search_record want = example(1);
    assert_null(tg_tune_last(&file));
    for (int i = 0; i < TG_TUNE_SEARCHES + 2; i++) {
        const tg_tune_search_record search = example(i);
        assert_ok(tg_tune_append(&file, &search));
    }
    assert_ok(tg_tune_append(&file, &want));
    assert_ok(tg_tune_write(path_of("tune.json"), &file));
    assert_ok(tg_tune_read(path_of("tune.json"), &got));
    assert_int_equal(got.count, TG_TUNE_SEARCHES);
    assert_int_equal(got.searches[0].chosen, 3); /* the oldest three have gone */
    const tg_tune_search_record *last = tg_tune_last(&got);
    assert_string_equal(last->reason, "start");
    assert_string_equal(last->why, want.why);
    assert_true(last->time == want.time && last->cost_s == 1.5 && last->batch_size == 64);
    assert_int_equal(last->trial_count, TG_TUNE_TRIALS);
    assert_int_equal(last->trials[5].step, 5);
    assert_true(isnan(last->points[0].pressure));
    assert_true(tg_tune_chosen(last)->run_queue == 1.5);
    tg_tune_done(&got);
    tg_tune_done(&file);
}

static void refuses_what_is_none_of_ours(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{\"version\":2,\"searches\":[]}",
        "{\"version\":1,\"searches\":[{}]}",
        "{\"version\":1,\"searches\":[{\"reason\":\"start\",\"threads\":-1}]}",
    };
    tg_tune_file file = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_ok(tg_file_write(path_of("bad.json"), texts[i], strlen(texts[i])));
        assert_int_equal(tg_tune_read(path_of("bad.json"), &file), TG_ERROR_INPUT);
        assert_null(file.searches);
    }
    assert_int_equal(tg_tune_read(path_of("absent.json"), &file), TG_ERROR_INPUT);
}

static void a_history_has_it(void **state)
{
    (void)state;
    tg_history h;
    tg_tune_file file = {0};
    char run[4200];
    const tg_tune_search_record search = example(2);
    snprintf(run, sizeof run, "%s", path_of("run"));
    assert_ok(tg_folder_make(run));
    assert_ok(tg_tune_append(&file, &search));
    assert_ok(tg_tune_write(path_of("run/tune.json"), &file));
    tg_tune_done(&file);
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.inputs, TG_INPUT_TUNE);
    assert_int_equal(tg_tune_last(&h.tune)->chosen, 2);
    assert_non_null(strstr(tg_history_input_name(TG_INPUT_TUNE), "tune.json"));
    tg_history_close(&h);

    assert_ok(tg_file_write(path_of("run/metrics.jsonl"), "{}\n", 3));
    assert_ok(tg_file_write(path_of("run/tune.json"), "{}", 2));
    assert_ok(tg_file_write(path_of("run/run.json"), "{}", 2));
    assert_ok(tg_history_open(run, &h));
    assert_int_equal(h.inputs, TG_INPUT_INFO);
    assert_int_equal(h.bad_lines, 2);
    tg_history_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(refuses_what_is_none_of_ours),
        cmocka_unit_test(a_history_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
