/* A machine that refuses threads is an error with a status, at every point of a team's start, and
 * leaves nothing behind. */
#include "support/check.h"

#include "dev/dev.h"

#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int threads_allowed = -1; /* -1: any number */

/* Stands before the C library's, also for the OpenMP runtime. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (threads_allowed == 0)
        return EAGAIN;
    if (threads_allowed > 0)
        threads_allowed--;
    return real(thread, attributes, run, argument);
}

static void test_threads_do_not_start(void **state)
{
    (void)state;
    tg_stream *stream = NULL;
    for (int allowed = 0; allowed < 3; allowed++) {
        char part[64];
        snprintf(part, sizeof part, "compute thread %d of 4", allowed + 2);
        threads_allowed = allowed;
        assert_error(tg_stream_open_cpu(4, TG_CPU_AMX, &stream), TG_ERROR_MACHINE, part);
        assert_null(stream);
    }
    threads_allowed = 0;
    assert_error(tg_stream_open_cpu(0, TG_CPU_AMX, &stream), TG_ERROR_USAGE, "at least 1");
    assert_ok(tg_stream_open_cpu(1, TG_CPU_AMX, &stream)); /* needs none */
    tg_stream_close(stream);
    threads_allowed = -1;
    assert_ok(tg_stream_open_cpu(4, TG_CPU_AMX, &stream));
    assert_int_equal(tg_stream_threads(stream), 4);
    tg_stream_close(stream);
    tg_stream_close(NULL);
}

static void *adopt(void *argument)
{
    static tg_status status;
    threads_allowed = 1;
    status = tg_stream_adopt(argument);
    if (status == TG_ERROR_MACHINE && strstr(tg_error_message(), "compute thread 3 of 3")) {
        threads_allowed = -1;
        status = tg_stream_adopt(argument);
    } else {
        status = TG_ERROR_FAILED;
    }
    return &status;
}

/* Another thread needs a team of its own, which may be refused as well. */
static void test_another_thread_takes_over(void **state)
{
    (void)state;
    tg_stream *stream;
    pthread_t thread;
    void *status;
    assert_ok(tg_stream_open_cpu(3, TG_CPU_AMX, &stream));
    threads_allowed = 0;
    assert_ok(tg_stream_adopt(stream)); /* its team is there */
    threads_allowed = -1;
    for (int i = 0; i < 2; i++) { /* the second may get the first one's number */
        assert_int_equal(pthread_create(&thread, NULL, adopt, stream), 0);
        assert_int_equal(pthread_join(thread, &status), 0);
        assert_int_equal(*(tg_status *)status, TG_OK);
    }
    assert_ok(tg_stream_adopt(stream));
    tg_stream_close(stream);
}

typedef struct shared_work {
    int done[10];
} shared_work;

static tg_status mark(tg_stream *part, size_t begin, size_t end, void *user)
{
    shared_work *work = user;
    (void)part;
    for (size_t i = begin; i < end; i++)
        work->done[i]++;
    return TG_OK;
}

/* Each part is done once, with teams of every size. */
static void test_parts_need_no_full_team(void **state)
{
    (void)state;
    tg_stream *stream;
    assert_ok(tg_stream_open_cpu(4, TG_CPU_AMX, &stream));
    const int levels = omp_get_max_active_levels();
    for (int most = 0; most < 2; most++) {
        shared_work work = {{0}};
        omp_set_max_active_levels(most);
        assert_ok(tg_stream_share(stream, 10, 1, mark, &work));
        for (int i = 0; i < 10; i++)
            assert_int_equal(work.done[i], 1);
    }
    omp_set_max_active_levels(levels);
    tg_stream_close(stream);
}

/* Whatever the caller's OpenMP is set to, or within a team of the caller's own. */
static void test_teams_are_as_large_as_asked_for(void **state)
{
    (void)state;
    tg_caller_mode saved;
    omp_set_dynamic(1);
    omp_set_max_active_levels(0);
    tg_caller_mode_enter(&saved);
    int team = 0, failed = 0;
#pragma omp parallel num_threads(3)
#pragma omp master
    team = omp_get_num_threads();
    assert_int_equal(team, 3);
    tg_caller_mode_leave(&saved);
    assert_int_equal(omp_get_dynamic(), 1);
    assert_int_equal(omp_get_max_active_levels(), 0);
    omp_set_dynamic(0);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2) reduction(+ : failed)
    {
        tg_caller_mode mode;
        tg_stream *stream = NULL;
        tg_caller_mode_enter(&mode);
        failed += tg_stream_open_cpu(3, TG_CPU_AMX, &stream) < 0;
        tg_stream_close(stream);
        tg_caller_mode_leave(&mode);
    }
    assert_int_equal(failed, 0);
}

/* Run as a process of its own: the runtime reads the size of its threads' stacks when it is loaded. */
static int open_with_small_stacks(void)
{
    tg_stream *stream = NULL;
    tg_status status = tg_stream_open_cpu(2, TG_CPU_AMX, &stream);
    /* libomp's stacks are a little larger than it is told to make them */
    return status == TG_ERROR_MACHINE && !stream &&
                   strstr(tg_error_message(), "has a stack of 12") &&
                   strstr(tg_error_message(), " KiB, and 256 are needed")
               ? 0
               : 1;
}

static void test_small_stacks_are_refused(void **state)
{
    (void)state;
    int end;
    pid_t child = fork();
    if (child == 0) {
        setenv("OMP_STACKSIZE", "128K", 1);
        execl("/proc/self/exe", "test_stream", "small", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFEXITED(end));
    assert_int_equal(WEXITSTATUS(end), 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return open_with_small_stacks();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_do_not_start),
                                       cmocka_unit_test(test_another_thread_takes_over),
                                       cmocka_unit_test(test_parts_need_no_full_team),
                                       cmocka_unit_test(test_teams_are_as_large_as_asked_for),
                                       cmocka_unit_test(test_small_stacks_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
