/* A machine that refuses threads is an error with a status, at every point of a team's start, and
 * leaves nothing behind. */
#include "support/check.h"

#include "dev/dev.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_do_not_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
