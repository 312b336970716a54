/* Spans add up per key and thread, the ring keeps the last, and off records nothing. */
#include "support/check.h"

#include "os/clock.h"
#include "trace/trace.h"

#include <pthread.h>
#include <time.h>

static void detached_threads_record_nothing(void **state)
{
    (void)state;
    const tg_trace_key forward = {.name = "forward"};
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace *trace;
    assert_ok(tg_trace_new(1, 4, &trace));
    assert_int_equal(tg_trace_begin(), 0);
    tg_trace_end(&forward, tg_trace_begin(), 1, 1);
    tg_trace_attach(trace, 0);
    tg_trace_end(&forward, 0, 1, 1); /* began before it was attached */
    tg_trace_attach(NULL, 0);
    assert_int_equal(tg_trace_collect(trace, totals), 0);
    tg_trace_free(trace);
    tg_trace_free(NULL);
}

static void totals_and_ring(void **state)
{
    (void)state;
    /* the same letters at another address are the same name; another shape is another key */
    char name[] = "a";
    const tg_trace_key wide = {.name = "a", .shape = {4, 8}};
    const tg_trace_key again = {.name = name, .shape = {4, 8}};
    const tg_trace_key narrow = {.name = "a", .shape = {4, 2}};
    const tg_trace_key *order[5] = {&wide, &narrow, &again, &narrow, &again};
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace_span spans[8];
    tg_trace *trace;
    assert_ok(tg_trace_new(1, 3, &trace));
    tg_trace_attach(trace, 0);
    int64_t start = tg_clock_ns();
    for (int i = 0; i < 5; i++) {
        int64_t begin = tg_trace_begin();
        if (i == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        tg_trace_end(order[i], begin, 10, 4);
    }
    int64_t all = tg_clock_ns() - start;
    assert_int_equal(tg_trace_collect(trace, totals), 2);
    assert_string_equal(totals[0].key.name, "a");
    assert_int_equal(totals[0].key.shape[1], 8);
    assert_int_equal(totals[0].calls, 3);
    assert_true(totals[0].flops == 30 && totals[0].bytes == 12);
    assert_true(totals[0].ns >= 2000000 && totals[0].ns + totals[1].ns <= all);
    assert_int_equal(totals[1].key.shape[1], 2);
    assert_int_equal(totals[1].calls, 2);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 8), 3);
    assert_int_equal(spans[0].key.shape[1], 8);
    assert_int_equal(spans[1].key.shape[1], 2);
    assert_true(spans[0].begin_ns <= spans[0].end_ns && spans[0].end_ns <= spans[1].begin_ns);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 1), 1);
    assert_int_equal(spans[0].key.shape[1], 8);
    tg_trace_reset(trace);
    assert_int_equal(tg_trace_collect(trace, totals), 0);
    assert_int_equal(tg_trace_spans(trace, 0, spans, 8), 0);
    tg_trace_attach(NULL, 0);
    tg_trace_free(trace);
}

static void groups_are_in_the_ring_alone(void **state)
{
    (void)state;
    const tg_trace_key step = {.name = "step", .group = true}, product = {.name = "product"};
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace_span spans[4];
    tg_trace *trace;
    assert_ok(tg_trace_new(1, 4, &trace));
    tg_trace_attach(trace, 0);
    const int64_t begin = tg_trace_begin();
    tg_trace_end(&product, begin, 10, 0);
    tg_trace_end(&step, begin, 0, 0);
    tg_trace_attach(NULL, 0);
    assert_int_equal(tg_trace_collect(trace, totals), 1);
    assert_string_equal(totals[0].key.name, "product");
    assert_int_equal(tg_trace_spans(trace, 0, spans, 4), 2);
    assert_string_equal(spans[1].key.name, "step");
    tg_trace_free(trace);
}

static void too_many_keys_are_counted_together(void **state)
{
    (void)state;
    enum { KEYS = TG_TRACE_KEYS + 10 };
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace *trace;
    assert_ok(tg_trace_new(1, 0, &trace));
    tg_trace_attach(trace, 0);
    for (size_t i = 0; i < KEYS; i++)
        tg_trace_end(&(tg_trace_key){.name = "op", .shape = {i + 1}}, tg_trace_begin(), 1, 0);
    tg_trace_attach(NULL, 0);
    assert_int_equal(tg_trace_collect(trace, totals), TG_TRACE_KEYS);
    assert_string_equal(totals[TG_TRACE_KEYS - 1].key.name, TG_TRACE_MORE);
    assert_int_equal(totals[TG_TRACE_KEYS - 1].calls, KEYS - (TG_TRACE_KEYS - 1));
    assert_int_equal(totals[TG_TRACE_KEYS - 2].calls, 1);
    tg_trace_free(trace);
}

enum { THREADS = 4, ROUNDS = 10000 };
typedef struct job {
    tg_trace *trace;
    int thread;
} job;

static void *record(void *argument)
{
    const job *j = argument;
    const tg_trace_key shared = {.name = "op"};
    const tg_trace_key own = {.name = "own", .shape = {(size_t)j->thread + 1}};
    tg_trace_attach(j->trace, j->thread);
    for (int i = 0; i < ROUNDS; i++)
        tg_trace_end(&shared, tg_trace_begin(), 1, 2);
    tg_trace_end(&own, tg_trace_begin(), 0, 0);
    tg_trace_attach(NULL, 0);
    return NULL;
}

static void threads_add_up(void **state)
{
    (void)state;
    tg_trace_totals totals[TG_TRACE_KEYS];
    tg_trace *trace;
    assert_ok(tg_trace_new(THREADS, 0, &trace));
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int t = 0; t < THREADS; t++) {
        jobs[t] = (job){trace, t};
        assert_int_equal(pthread_create(&threads[t], NULL, record, &jobs[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(tg_trace_collect(trace, totals), 1 + THREADS);
    assert_int_equal(totals[0].calls, THREADS * ROUNDS);
    assert_true(totals[0].flops == THREADS * ROUNDS && totals[0].bytes == 2.0 * THREADS * ROUNDS);
    assert_int_equal(totals[THREADS].key.shape[0], THREADS);
    tg_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detached_threads_record_nothing),
        cmocka_unit_test(totals_and_ring),
        cmocka_unit_test(groups_are_in_the_ring_alone),
        cmocka_unit_test(too_many_keys_are_counted_together),
        cmocka_unit_test(threads_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
