/* Which numbers of workers are tried, and which is taken, on machines that are made up: knees, ties, drift, short runs,
 * short epochs, bounds; and when a run that goes on asks for new trials. */
#include "support/check.h"

#include "train/worker_trials.h"

#include <math.h>
#include <string.h>

/* A machine: workers give so much each, compute takes at most `compute`, and each worker costs a share of it. */
typedef struct machine {
    double each, compute, cost, drift; /* images/s; share a worker; factor a trial */
    double jitter;                     /* every fourth trial is so much faster */
    int calls;
} machine;

static double rate_of(const machine *m, int workers)
{
    const double compute = m->compute * (1 - m->cost * workers);
    if (workers == 0)
        return 1 / (1 / m->each + 1 / compute);
    return fmin(m->each * workers, compute);
}

static tg_worker_plan plan_of(int most, int64_t left)
{
    return (tg_worker_plan){.first = 1,
                            .most = most,
                            .left = left,
                            .epoch = 1000,
                            .settle = TG_WORKERS_SETTLE,
                            .step_s = 0.1};
}

static tg_tune_search_record search(machine *m, const tg_worker_plan *plan)
{
    tg_worker_trials t;
    tg_tune_search_record out = {0};
    int workers;
    assert_true(tg_worker_trials_begin(&t, plan));
    while (tg_worker_trials_next(&t, &workers)) {
        double rate = rate_of(m, workers) * pow(m->drift, m->calls++);
        if (m->calls % 4 == 0)
            rate *= 1 + m->jitter;
        const int64_t steps = t.settle + t.timed;
        const double step_s = 16 / rate;
        const tg_tune_point p = {.workers = workers,
                                 .trials = 1,
                                 .steps = t.timed,
                                 .images = 16 * t.timed,
                                 .seconds = step_s * (double)t.timed,
                                 .images_per_s = rate,
                                 .noise = NAN,
                                 .wait_share =
                                     fmax(0, 1 - rate / (m->compute * (1 - m->cost * workers))),
                                 .pressure = NAN,
                                 .run_queue = workers + 1};
        tg_worker_trials_add(&t, &p, steps, step_s * (double)steps);
    }
    tg_worker_trials_decide(&t, &out);
    return out;
}

/* The fewest workers that keep up; more would only take from the cores. */
static void finds_the_knee(void **state)
{
    (void)state;
    machine m = {.each = 30, .compute = 100, .cost = 0.01, .drift = 1};
    tg_worker_plan plan = plan_of(64, 10000);
    tg_tune_search_record s = search(&m, &plan);
    assert_int_equal(s.chosen, 4);
    assert_int_equal(s.point_count, 4); /* 0 1 2 4: at 4 nothing was waited for */
    assert_non_null(strstr(s.why, "4 workers: the fastest; 2 give"));
    assert_true(s.cost_s > 0 && s.cost_s < s.seconds);
    assert_int_equal(s.points[3].run_queue, 5);
    assert_true(isnan(s.points[3].pressure));
    /* the hopeless ones had two trials, the best all of them */
    assert_int_equal(s.points[0].trials, 2);
    assert_int_equal(s.points[3].trials, TG_WORKERS_ROUNDS);
}

/* Workers that take the cores from what they feed: none, or one, is best. */
static void takes_few_where_more_harm(void **state)
{
    (void)state;
    machine m = {.each = 400, .compute = 100, .cost = 0.2, .drift = 1};
    tg_worker_plan plan = plan_of(2, 10000);
    tg_tune_search_record s = search(&m, &plan);
    assert_true(s.chosen < 2);
    assert_true(s.points[s.point_count - 1].workers < 2 || s.best < 2);
}

/* Within the noise the fewest are taken. */
static void a_tie_goes_to_the_fewest(void **state)
{
    (void)state;
    machine m = {.each = 99, .compute = 100, .cost = 0, .drift = 1};
    tg_worker_plan plan = plan_of(4, 10000);
    tg_tune_search_record s = search(&m, &plan);
    assert_int_equal(s.chosen, 1);
    assert_int_equal(s.best, 2);
    assert_non_null(strstr(s.why, "1 worker: the fewest within the noise"));
    m = (machine){.each = 90, .compute = 100, .cost = 0, .drift = 1, .jitter = 0.5};
    s = search(&m, &plan); /* however noisy, a tenth is not given away */
    assert_int_equal(s.chosen, 2);
    assert_true(s.points[s.point_count - 1].trials > TG_WORKERS_ROUNDS); /* noise asks for more */
}

/* A machine that becomes slower, or faster, all the while: by a tenth until the end. */
static void drift_does_not_decide(void **state)
{
    (void)state;
    static const double drifts[] = {0.99, 1.01};
    for (int i = 0; i < 2; i++) {
        machine m = {.each = 60, .compute = 100, .cost = 0.0, .drift = drifts[i]};
        tg_worker_plan plan = plan_of(4, 10000);
        assert_int_equal(search(&m, &plan).chosen, 2);
    }
}

static void short_runs_are_not_measured(void **state)
{
    (void)state;
    tg_worker_trials t;
    tg_worker_plan plan = plan_of(2, 83);
    assert_false(tg_worker_trials_begin(&t, &plan));
    plan.left = 84;
    assert_true(tg_worker_trials_begin(&t, &plan));
    assert_int_equal(t.settle + t.timed, TG_WORKERS_SETTLE + TG_WORKERS_TIMED);
    plan.epoch = 0;
    assert_false(tg_worker_trials_begin(&t, &plan));
    /* no more than a third of a short run, nor ten minutes of a long one */
    machine m = {.each = 50, .compute = 100, .cost = 0, .drift = 1};
    plan = plan_of(8, 84);
    assert_true(search(&m, &plan).steps <= 28);
    m = (machine){.each = 0.5, .compute = 1, .cost = 0, .drift = 1};
    plan = plan_of(8, 1000000);
    plan.step_s = 16;
    assert_true(search(&m, &plan).seconds <= TG_WORKERS_MOST_S);
}

static void short_epochs_are_tried_whole(void **state)
{
    (void)state;
    tg_worker_trials t;
    tg_worker_plan plan = plan_of(2, 1000);
    plan.epoch = 3;
    plan.step_s = 10;
    assert_true(tg_worker_trials_begin(&t, &plan));
    assert_true(t.by_epoch);
    assert_int_equal(t.settle, 0);
    assert_int_equal(t.timed, 6);
    plan.epoch = 13;
    assert_true(tg_worker_trials_begin(&t, &plan));
    assert_true(t.by_epoch);
    assert_int_equal(t.timed, 13);
    plan.epoch = 14;
    assert_true(tg_worker_trials_begin(&t, &plan));
    assert_false(t.by_epoch);
}

/* Cores that are no power of two, and a rule that is none. */
static void tries_up_to_the_cores(void **state)
{
    (void)state;
    tg_worker_trials t;
    tg_worker_plan plan = plan_of(6, 1000);
    plan.first = 3;
    assert_true(tg_worker_trials_begin(&t, &plan));
    static const int want[] = {0, 1, 2, 3, 4};
    assert_int_equal(t.count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(t.candidates[i], want[i]);
    plan.most = 0;
    assert_true(tg_worker_trials_begin(&t, &plan));
    assert_int_equal(t.count, 1);
}

/* Seconds until new trials are asked for, of a run that waits so much; 0: not in so many hours. */
static double asks_after(double base, double share, int searches, double hours)
{
    tg_worker_watch w;
    tg_worker_watch_begin(&w, base, searches);
    for (double s = 0; s < 3600 * hours; s += 0.5)
        if (tg_worker_watch_add(&w, 0.5, 0.5 * share))
            return s;
    return 0;
}

static void asks_again_when_photos_are_waited_for(void **state)
{
    (void)state;
    assert_true(asks_after(0.01, 0.05, 1, 2) == 0);
    assert_true(asks_after(0.4, 0.45, 1, 2) == 0); /* as when it was measured */
    const double first = asks_after(0.01, 0.3, 1, 2), third = asks_after(0.01, 0.3, 3, 2);
    assert_true(first >= 890 && first < 960);
    assert_true(third >= 3590 && third < 3660);
    assert_true(asks_after(NAN, 0.3, 1, 2) == first);
    tg_worker_watch w;
    tg_worker_watch_begin(&w, 0, 1);
    int asked = 0; /* a burst of 30 s now and then is none of it */
    for (int i = 0; i < 7200; i++)
        asked += tg_worker_watch_add(&w, 1, i % 300 < 30 ? 0.9 : 0);
    assert_int_equal(asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_knee),
        cmocka_unit_test(takes_few_where_more_harm),
        cmocka_unit_test(a_tie_goes_to_the_fewest),
        cmocka_unit_test(drift_does_not_decide),
        cmocka_unit_test(short_runs_are_not_measured),
        cmocka_unit_test(short_epochs_are_tried_whole),
        cmocka_unit_test(tries_up_to_the_cores),
        cmocka_unit_test(asks_again_when_photos_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
