/* StepOutlier, MaxInitializationTime and LoadBalancing: runs that fire them, and runs that only look like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <string.h>

/* A hundredth of noise, the same each time. */
static double noise(size_t i)
{
    return 0.01 * (double)((i * 7919) % 101) / 50 - 0.01;
}

static tg_test_run make_run(size_t steps)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.4);
    tg_test_run_steps(&run, steps, &step);
    for (size_t i = 0; i < steps; i++)
        run.history.steps[i].t_step += 0.4 * noise(i);
    return run;
}

static void make_slow(tg_test_run *run, size_t i, double seconds)
{
    run->history.steps[i].t_step += seconds;
    run->history.steps[i].t_backward += seconds;
}

static void test_outliers(void **state)
{
    tg_test_run run = make_run(300);
    (void)state;
    for (size_t i = 20; i < 300; i += 20)
        make_slow(&run, i, 0.6);
    const tg_finding *f = tg_test_fires(&run, "StepOutlier", NULL);
    assert_non_null(strstr(f->cause, "backward"));
    assert_non_null(strstr(f->cause, "every 20 steps"));
    assert_true(fabs(f->predicted_step_s - 0.4) < 0.01);
    tg_test_is_quiet(&run, "StepOutlier", "StepOutlier.stddev=40");
    tg_test_run_done(&run);
}

static void test_few_outliers(void **state)
{
    tg_test_run run = make_run(300);
    (void)state;
    for (size_t i = 20; i < 220; i += 20) /* ten, which are passed over */
        make_slow(&run, i, 0.4);
    tg_test_is_quiet(&run, "StepOutlier", NULL);
    make_slow(&run, 250, 0.4);
    tg_test_fires(&run, "StepOutlier", NULL);
    tg_test_run_done(&run);
}

/* One stall alone, but a long one. */
static void test_one_long_stall(void **state)
{
    tg_test_run run = make_run(300);
    (void)state;
    make_slow(&run, 150, 30);
    tg_test_fires(&run, "StepOutlier", NULL);
    tg_test_run_done(&run);
}

/* The first step warms up; noise is no outlier; a run whose steps are all slow has none. */
static void test_steady(void **state)
{
    tg_test_run run = make_run(300);
    (void)state;
    make_slow(&run, 0, 30);
    tg_test_is_quiet(&run, "StepOutlier", NULL);
    tg_test_run_done(&run);
    run = make_run(49);
    make_slow(&run, 30, 30);
    tg_test_lacks(&run, "StepOutlier", "50");
    tg_test_run_done(&run);
    run = tg_test_run_new();
    tg_test_lacks(&run, "StepOutlier", "metrics.jsonl");
    tg_test_run_done(&run);
}

/* What the machine does at these times is named. */
static void test_what_happens(void **state)
{
    tg_test_run run = make_run(300);
    tg_test_sample_values s = tg_test_sample();
    (void)state;
    for (size_t i = 20; i < 300; i += 20) {
        make_slow(&run, i, 1.6);
        for (size_t j = i; j < 300; j++)
            run.history.steps[j].time += 1.6;
    }
    s.values[TG_SYSTEM_GROUP_THROTTLED] = 0;
    tg_test_run_samples(&run, "a", 2, 0, 290, &s);
    for (size_t k = 0; k < 290; k++)
        for (size_t i = 20; i < 300; i += 20)
            if (run.history.hosts[0].samples[k].time > run.history.steps[i].time - 1.9 &&
                run.history.hosts[0].samples[k].time < run.history.steps[i].time)
                run.history.hosts[0].samples[k].values[TG_SYSTEM_GROUP_THROTTLED] = 0.9;
    const tg_finding *f = tg_test_fires(&run, "StepOutlier", NULL);
    assert_non_null(strstr(f->cause, "throttled"));
    tg_test_run_done(&run);
}

static void test_initialization(void **state)
{
    tg_test_run run = make_run(10);
    (void)state;
    tg_test_lacks(&run, "MaxInitializationTime", "spans.jsonl");
    tg_test_run_span(&run, TG_SPAN_START, TG_TEST_RUN_BEGIN - 1190, 1190, 0);
    tg_test_is_quiet(&run, "MaxInitializationTime", NULL);
    run.history.spans[0].seconds = 1300;
    tg_test_fires(&run, "MaxInitializationTime", NULL);
    tg_test_is_quiet(&run, "MaxInitializationTime", "MaxInitializationTime.threshold=30");
    tg_test_run_done(&run);
}

static tg_rank_step rank_step(double own, double wait, int64_t images)
{
    return (tg_rank_step){
        .images = images, .t_step = own + wait, .t_reduce = wait, .t_backward = own};
}

static void test_balance(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_rank_step each[4] = {rank_step(0.3, 0.3, 16), rank_step(0.3, 0.3, 16),
                                  rank_step(0.6, 0, 16), rank_step(0.3, 0.3, 16)};
    (void)state;
    tg_test_lacks(&run, "LoadBalancing", "ranks");
    tg_test_run_ranks(&run, 15, each, 4);
    tg_test_lacks(&run, "LoadBalancing", "more steps"); /* ten are passed over, ten it takes */
    tg_test_run_ranks(&run, 15, each, 4);
    const tg_finding *f = tg_test_fires(&run, "LoadBalancing", NULL);
    assert_int_equal(f->rank, 2);
    assert_true(fabs(f->predicted_step_s - 0.375) < 1e-9); /* the mean of all */
    tg_test_run_done(&run);
}

static void test_balance_lookalikes(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_rank_step near[2] = {rank_step(0.50, 0.1, 16), rank_step(0.41, 0.19, 16)};
    const tg_rank_step turns[2][2] = {{rank_step(0.6, 0, 16), rank_step(0.3, 0.3, 16)},
                                      {rank_step(0.3, 0.3, 16), rank_step(0.6, 0, 16)}};
    (void)state;
    tg_test_run_ranks(&run, 100, near, 2); /* 18 % */
    tg_test_is_quiet(&run, "LoadBalancing", NULL);
    tg_test_fires(&run, "LoadBalancing", "LoadBalancing.threshold=0.1");
    tg_test_run_done(&run);
    run = tg_test_run_new();
    for (int i = 0; i < 100; i++) /* each is the slow one every other step: no rank has more */
        tg_test_run_ranks(&run, 1, turns[i % 2], 2);
    tg_test_is_quiet(&run, "LoadBalancing", NULL);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outliers),       cmocka_unit_test(test_few_outliers),
        cmocka_unit_test(test_one_long_stall), cmocka_unit_test(test_steady),
        cmocka_unit_test(test_what_happens),   cmocka_unit_test(test_initialization),
        cmocka_unit_test(test_balance),        cmocka_unit_test(test_balance_lookalikes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
