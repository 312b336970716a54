/* The run directory: layout, one job at a time, run.json, logs and the failure file. */
#include "support/check.h"

#include "os/document.h"
#include "os/file.h"
#include "run/run_dir.h"
#include "run/run_info.h"
#include "run/run_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path_of(const char *name)
{
    static char paths[8][4200];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static void assert_file(const char *name, const char *part)
{
    char *bytes;
    size_t length;
    assert_ok(tg_file_read(path_of(name), 1 << 20, &bytes, &length));
    if (!strstr(bytes, part))
        fail_msg("%s lacks \"%s\": %s", name, part, bytes);
    free(bytes);
}

static void layout_and_failure(void **state)
{
    (void)state;
    tg_run_dir dir;
    assert_ok(tg_run_dir_open(path_of("a/b"), &dir));
    const char *folders[] = {"a/b/log", "a/b/system", "a/b/trace", "a/b/checkpoints"};
    for (int i = 0; i < 4; i++)
        assert_true(tg_file_exists(path_of(folders[i])));
    assert_ok(tg_run_dir_write_job(&dir, "lr: 1\n", 6));
    assert_file("a/b/job.yaml", "lr: 1\n");
    assert_ok(tg_run_dir_write_failure(&dir, "disk full\nreally", "one\ntwo\n"));
    assert_file("a/b/failure", "disk full really\none\ntwo\n");
    assert_ok(tg_run_dir_remove_failure(&dir));
    assert_ok(tg_run_dir_remove_failure(&dir));
    assert_false(tg_file_exists(path_of("a/b/failure")));
    tg_run_dir_close(&dir);
    tg_run_dir_close(&dir);
}

static void second_job_is_refused(void **state)
{
    (void)state;
    tg_run_dir dir, other;
    char part[64];
    snprintf(part, sizeof part, "another job writes here (process %ld)", (long)getpid());
    assert_ok(tg_run_dir_open(path_of("locked"), &dir));
    assert_error(tg_run_dir_open(path_of("locked"), &other), TG_ERROR_USAGE, part);
    tg_run_dir_close(&dir);
    assert_ok(tg_run_dir_open(path_of("locked"), &dir));
    tg_run_dir_close(&dir);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) { /* a job that is killed gives the lock back */
        tg_status status = tg_run_dir_open(path_of("locked"), &dir);
        (void)!write(ready[1], status == TG_OK ? "y" : "n", 1);
        for (;;)
            pause();
    }
    char answer = 'n';
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    assert_error(tg_run_dir_open(path_of("locked"), &other), TG_ERROR_USAGE, "another job");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_ok(tg_run_dir_open(path_of("locked"), &dir));
    tg_run_dir_close(&dir);
    close(ready[0]);
    close(ready[1]);
}

static void cleans_what_killed_writers_left(void **state)
{
    (void)state;
    tg_run_dir dir;
    assert_ok(tg_run_dir_open(path_of("left"), &dir));
    tg_run_dir_close(&dir);
    assert_ok(tg_file_write(path_of("left/.run.json.tg-new-99999-0"), "half", 4));
    assert_ok(tg_run_dir_open(path_of("left"), &dir));
    assert_false(tg_file_exists(path_of("left/.run.json.tg-new-99999-0")));
    tg_run_dir_close(&dir);
}

static void run_json(void **state)
{
    (void)state;
    tg_run_dir dir;
    assert_ok(tg_run_dir_open(path_of("info"), &dir));
    const tg_run_pair libraries[] = {{"onednn", "2.6.3"}}, kernels[] = {{"norm", "avx2"}};
    tg_run_info info = {.command = "train",
                        .version = "0.1.0",
                        .libraries = libraries,
                        .library_count = 1,
                        .kernels = kernels,
                        .kernel_count = 1,
                        .ranks = 1,
                        .threads = 2,
                        .start = "2026-03-09T14:05:07.123Z"};
    tg_run_machine_read(0, &info.machine);
    for (int round = 0; round < 2; round++) {
        assert_ok(tg_run_info_write(&dir, &info));
        tg_json json;
        tg_json_node child, end;
        int64_t n = -1;
        const char *text = "";
        assert_ok(tg_json_read(path_of("info/run.json"), &json));
        tg_json_node root = tg_json_root(&json);
        assert_ok(tg_json_get_object(&root, "kernels", TG_REQUIRED, &child, NULL));
        assert_ok(tg_json_get_string(&child, "norm", TG_REQUIRED, &text));
        assert_string_equal(text, "avx2");
        assert_ok(tg_json_get_object(&root, "cgroup", TG_REQUIRED, &child, NULL));
        assert_ok(tg_json_get_int(&child, "usable_cpus", TG_REQUIRED, &n));
        assert_true(n >= 1);
        assert_true(tg_json_find(&root, "exit", &end));
        assert_int_equal(tg_json_node_kind(&end), round ? TG_JSON_INT : TG_JSON_NULL);
        tg_json_done(&json);
        info.end = "2026-03-09T14:06:07.123Z";
        info.exit_code = 4;
        info.failure = "disk \"full\"";
    }
    tg_run_dir_close(&dir);
}

/* Unknown parts are null, never numbers. */
static void run_json_tells_what_is_trained_on_what(void **state)
{
    (void)state;
    tg_run_dir dir;
    tg_json json;
    tg_json_node root, child, view;
    int64_t images = 0;
    double mean[3], top1 = 0;
    tg_run_info info = {.command = "distill", .version = "0.1.0", .ranks = 1, .start = "then"};
    assert_ok(tg_run_dir_open(path_of("subject"), &dir));
    assert_ok(tg_run_info_write(&dir, &info));
    assert_ok(tg_json_read(path_of("subject/run.json"), &json));
    root = tg_json_root(&json);
    assert_true(tg_json_find(&root, "data", &child));
    assert_int_equal(tg_json_node_kind(&child), TG_JSON_NULL);
    assert_true(tg_json_find(&root, "teacher_score", &child));
    assert_int_equal(tg_json_node_kind(&child), TG_JSON_NULL);
    tg_json_done(&json);
    const tg_run_view student = {224, 224, 0.9, {0.5, 0.4, 0.3}, {1, 1, 1}, "bicubic", "center"};
    info.subject = (tg_run_subject){.train_images = 400,
                                    .val_images = 80,
                                    .classes = 5,
                                    .student = student,
                                    .class_least = 71,
                                    .class_most = 99};
    info.teacher_score = (tg_run_teacher_score){21.25, 100, 1.5, 80};
    assert_ok(tg_run_info_write(&dir, &info));
    assert_ok(tg_json_read(path_of("subject/run.json"), &json));
    root = tg_json_root(&json);
    assert_ok(tg_json_get_object(&root, "data", TG_REQUIRED, &child, NULL));
    assert_ok(tg_json_get_int(&child, "train_images", TG_REQUIRED, &images));
    assert_int_equal(images, 400);
    assert_ok(tg_json_get_object(&child, "class_images", TG_REQUIRED, &view, NULL));
    assert_ok(tg_json_get_int(&view, "most", TG_REQUIRED, &images));
    assert_int_equal(images, 99);
    assert_ok(tg_json_get_object(&root, "preprocess", TG_REQUIRED, &child, NULL));
    assert_ok(tg_json_get_object(&child, "student", TG_REQUIRED, &view, NULL));
    assert_ok(tg_json_get_doubles(&view, "mean", TG_REQUIRED, 3, mean));
    assert_true(mean[1] == 0.4);
    assert_true(tg_json_find(&child, "teacher", &view));
    assert_int_equal(tg_json_node_kind(&view), TG_JSON_NULL);
    assert_ok(tg_json_get_object(&root, "teacher_score", TG_REQUIRED, &child, NULL));
    assert_ok(tg_json_get_double(&child, "val_top1", TG_REQUIRED, &top1));
    assert_true(top1 == 21.25);
    tg_json_done(&json);
    tg_run_dir_close(&dir);
}

static void run_json_is_ended_by_another_rank(void **state)
{
    (void)state;
    tg_run_dir dir;
    char *open_bytes, *bytes;
    size_t open_length, length;
    assert_ok(tg_run_dir_open(path_of("ended"), &dir));
    assert_int_equal(tg_run_info_complete(&dir, "now", 5, "rank 0 is gone"), TG_END);
    assert_false(tg_file_exists(path_of("ended/run.json")));
    tg_run_info info = {.command = "train", .version = "0.1.0", .ranks = 3, .start = "then"};
    assert_ok(tg_run_info_write(&dir, &info));
    assert_ok(tg_file_read(path_of("ended/run.json"), 1 << 20, &open_bytes, &open_length));
    assert_ok(tg_run_info_complete(&dir, "now", 5, "rank 0 on \"a\" is gone"));
    info.end = "now";
    info.exit_code = 5;
    info.failure = "rank 0 on \"a\" is gone";
    assert_ok(tg_file_read(path_of("ended/run.json"), 1 << 20, &bytes, &length));
    assert_ok(tg_run_info_write(&dir, &info)); /* as the first rank would have */
    assert_file("ended/run.json", bytes);
    assert_true(length > open_length);
    assert_int_equal(tg_run_info_complete(&dir, "later", 1, NULL), TG_END);
    assert_file("ended/run.json", bytes);
    free(bytes);
    free(open_bytes);
    tg_run_dir_close(&dir);
}

static void log_keeps_the_last_lines(void **state)
{
    (void)state;
    tg_run_dir dir;
    tg_run_log log = {0};
    tg_text last = {0};
    tg_run_log_close(&log);
    assert_ok(tg_run_dir_open(path_of("log"), &dir));
    assert_ok(tg_run_log_open(&dir, 3, &log));
    for (int i = 0; i < TG_RUN_LOG_KEPT + 5; i++) {
        char line[32];
        snprintf(line, sizeof line, "line <%d>", i);
        tg_run_log_line(&log, i % 2 ? TG_LOG_WARNING : TG_LOG_INFO, line);
    }
    tg_run_log_last(&log, &last);
    assert_null(strstr(last.data, "<4>"));
    assert_non_null(strstr(last.data, "Z warning line <5>\n"));
    assert_non_null(strstr(last.data, "Z info line <24>\n"));
    assert_true(strstr(last.data, "<5>") < strstr(last.data, "<24>"));
    assert_file("log/log/rank-3.log", "info line <0>\n");
    assert_file("log/log/rank-3.log", "line <24>\n");
    tg_text_done(&last);
    tg_run_log_close(&log);
    tg_run_dir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_and_failure),
        cmocka_unit_test(second_job_is_refused),
        cmocka_unit_test(cleans_what_killed_writers_left),
        cmocka_unit_test(run_json),
        cmocka_unit_test(run_json_tells_what_is_trained_on_what),
        cmocka_unit_test(run_json_is_ended_by_another_rank),
        cmocka_unit_test(log_keeps_the_last_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
