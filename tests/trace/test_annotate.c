/* What a program says that it does is in the file: how long, inside what, on which thread; also when it is killed. */
#include "support/check.h"
#include "support/timeline.h"

#include "os/clock.h"
#include "tagine/trace.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void path_of(const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", tg_test_temp_dir(), name);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static const tg_test_event *find(const tg_test_timeline *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->events[i].name, name) == 0)
            return &t->events[i];
    fail_msg("no '%s'", name);
    return NULL;
}

/* 100 ms are 100,000 us. */
static void times_are_microseconds(void **state)
{
    (void)state;
    char path[512];
    tagine_trace *trace;
    path_of("sleep.json.gz", path);
    assert_int_equal(tagine_trace_start(path, &trace), TAGINE_OK);
    const int64_t begin = tg_clock_ns();
    tagine_annotate_begin(trace, "sleep");
    sleep_ms(100);
    tagine_annotate_end(trace);
    const double slept_us =
        (double)(tg_clock_ns() - begin) * 1e-3; /* more than asked for on a busy machine */
    assert_int_equal(tagine_trace_stop(trace), TAGINE_OK);
    tg_test_timeline t = tg_test_timeline_read(path);
    const tg_test_event *e = find(&t, "sleep");
    const double us = (double)(e->end_ns - e->begin_ns) * 1e-3;
    assert_true(us >= 100000 && us > 0.95 * slept_us && us < 1.05 * slept_us);
    assert_string_equal(e->category, "user_annotation");
    tg_test_timeline_done(&t);
}

enum { THREADS = 3, ROUNDS = 200 };

static void *annotate(void *trace)
{
    for (int i = 0; i < ROUNDS; i++) {
        tagine_annotate_begin(trace, "outer");
        tagine_annotate_begin(trace, "in\"ner\x01\xff");
        tagine_annotate_end(trace);
        tagine_annotate_begin(trace, NULL);
        tagine_annotate_end(trace);
        tagine_annotate_end(trace);
    }
    tagine_annotate_end(trace); /* one too many */
    return NULL;
}

static void threads_have_rows(void **state)
{
    (void)state;
    char path[512];
    pthread_t threads[THREADS];
    tagine_trace *trace;
    path_of("threads.json.gz", path);
    assert_int_equal(tagine_trace_start(path, &trace), TAGINE_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, annotate, trace), 0);
    for (int i = 0; i < 100; i++) /* deeper than is kept, and left open */
        tagine_annotate_begin(trace, "deep");
    for (int i = 0; i < 50; i++)
        tagine_annotate_end(trace);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tagine_trace_stop(trace), TAGINE_OK);
    tg_test_timeline t = tg_test_timeline_read(path); /* looks at the nesting */
    size_t of_row[1 + THREADS] = {0};
    for (size_t i = 0; i < t.count; i++)
        of_row[t.events[i].row]++;
    size_t deep = 0, full = 0;
    for (int i = 0; i < 1 + THREADS; i++) {
        deep += of_row[i] == 64;
        full += of_row[i] == (size_t)3 * ROUNDS;
    }
    assert_true(deep == 1 && full == THREADS);
    tg_test_timeline_done(&t);
}

/* One trace after another may lie at the same address. */
static void traces_follow_each_other(void **state)
{
    (void)state;
    char path[512];
    for (int i = 0; i < 3; i++) {
        tagine_trace *trace;
        path_of("again.json.gz", path);
        assert_int_equal(tagine_trace_start(path, &trace), TAGINE_OK);
        tagine_annotate_begin(trace, "one");
        tagine_annotate_end(trace);
        assert_int_equal(tagine_trace_stop(trace), TAGINE_OK);
        tg_test_timeline t = tg_test_timeline_read(path);
        assert_int_equal(t.count, 1);
        tg_test_timeline_done(&t);
    }
}

static void off_is_nothing(void **state)
{
    (void)state;
    enum { CALLS = 1000000 };
    const int64_t begin = tg_clock_ns();
    for (int i = 0; i < CALLS; i++) {
        tagine_annotate_begin(NULL, "x");
        tagine_annotate_end(NULL);
    }
    assert_true(tg_clock_ns() - begin < (int64_t)CALLS * 500); /* with a sanitizer, too */
    assert_int_equal(tagine_trace_stop(NULL), TAGINE_OK);
    tagine_trace *trace;
    assert_int_equal(tagine_trace_start(NULL, &trace), TAGINE_USAGE);
    assert_int_equal(tagine_trace_start("/nowhere/x.json.gz", &trace), TAGINE_MACHINE);
    assert_non_null(strstr(tagine_error(), "/nowhere"));
}

static void a_killed_program_leaves_what_it_did(void **state)
{
    (void)state;
    char path[512];
    path_of("killed.json.gz", path);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tagine_trace *trace;
        if (tagine_trace_start(path, &trace) != TAGINE_OK)
            _exit(1);
        for (;;) {
            tagine_annotate_begin(trace, "round");
            sleep_ms(2);
            tagine_annotate_end(trace);
        }
    }
    size_t written = 0;
    for (int i = 0; i < 200 && written <= 10; i++) {
        sleep_ms(50);
        tg_test_timeline now = {0};
        if (access(path, F_OK) == 0)
            now = tg_test_timeline_read(path);
        written = now.count;
        tg_test_timeline_done(&now);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    tg_test_timeline t = tg_test_timeline_read(path);
    assert_true(t.count > 10);
    tg_test_timeline_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_microseconds),
        cmocka_unit_test(threads_have_rows),
        cmocka_unit_test(traces_follow_each_other),
        cmocka_unit_test(off_is_nothing),
        cmocka_unit_test(a_killed_program_leaves_what_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
