/* Spans add up per name and thread, the ring keeps the last, and off records nothing. */
#include "support/check.h"

#include "os/clock.h"
#include "trace/trace.h"

#include <pthread.h>
#include <time.h>

static void detached_threads_record_nothing(void **state)
{
    (void)state;
    tg_trace *trace;
    assert_ok(tg_trace_new(1, 4, &trace));
    int id = tg_trace_register(trace, "forward");
    assert_int_equal(tg_trace_begin(), 0);
    tg_trace_end(id, tg_trace_begin(), 1, 1);
    tg_trace_attach(trace, 0);
    tg_trace_end(id, 0, 1, 1); /* began before it was attached */
    tg_trace_attach(NULL, 0);
    assert_int_equal(tg_trace_total(trace, id).calls, 0);
    tg_trace_free(trace);
    tg_trace_free(NULL);
}

static void totals_and_ring(void **state)
{
    (void)state;
    tg_trace *trace;
    tg_trace_span spans[8];
    assert_ok(tg_trace_new(1, 3, &trace));
    int a = tg_trace_register(trace, "a"), b = tg_trace_register(trace, "b");
    assert_int_equal(tg_trace_register(trace, "a"), a);
    assert_int_equal(tg_trace_name_count(trace), 2);
    tg_trace_attach(trace, 0);
    int64_t start = tg_clock_ns();
    for (int i = 0; i < 5; i++) {
        int64_t begin = tg_trace_begin();
        if (i == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        tg_trace_end(i % 2 ? b : a, begin, 10, 4);
    }
    int64_t all = tg_clock_ns() - start;
    tg_trace_totals total = tg_trace_total(trace, a);
    assert_string_equal(total.name, "a");
    assert_int_equal(total.calls, 3);
    assert_true(total.flops == 30 && total.bytes == 12);
    assert_true(total.ns >= 2000000 && total.ns <= all);
    assert_int_equal(tg_trace_total(trace, b).calls, 2);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 8), 3);
    assert_true(spans[0].id == a && spans[1].id == b && spans[2].id == a);
    assert_true(spans[0].begin_ns <= spans[0].end_ns && spans[0].end_ns <= spans[1].begin_ns);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 1), 1);
    assert_int_equal(spans[0].id, a);
    tg_trace_reset(trace);
    assert_int_equal(tg_trace_total(trace, a).calls, 0);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 8), 0);
    tg_trace_attach(NULL, 0);
    tg_trace_free(trace);
}

enum { THREADS = 4, ROUNDS = 10000 };
typedef struct job {
    tg_trace *trace;
    int thread, id;
} job;

static void *record(void *argument)
{
    const job *j = argument;
    tg_trace_attach(j->trace, j->thread);
    for (int i = 0; i < ROUNDS; i++)
        tg_trace_end(j->id, tg_trace_begin(), 1, 2);
    tg_trace_attach(NULL, 0);
    return NULL;
}

static void threads_add_up(void **state)
{
    (void)state;
    tg_trace *trace;
    assert_ok(tg_trace_new(THREADS, 0, &trace));
    int id = tg_trace_register(trace, "op");
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int t = 0; t < THREADS; t++) {
        jobs[t] = (job){trace, t, id};
        assert_int_equal(pthread_create(&threads[t], NULL, record, &jobs[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    tg_trace_totals total = tg_trace_total(trace, id);
    assert_int_equal(total.calls, THREADS * ROUNDS);
    assert_true(total.flops == THREADS * ROUNDS && total.bytes == 2.0 * THREADS * ROUNDS);
    tg_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detached_threads_record_nothing),
        cmocka_unit_test(totals_and_ring),
        cmocka_unit_test(threads_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
