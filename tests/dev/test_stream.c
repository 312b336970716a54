/* A machine that refuses threads is an error with a status, at every point of a team's start, and
 * leaves nothing behind. */
#include "support/check.h"

#include "dev/dev.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_do_not_start),
                                       cmocka_unit_test(test_another_thread_takes_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
