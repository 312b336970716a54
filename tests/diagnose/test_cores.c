/* LoaderOversubscription, LoaderStarvation, WrongAffinity, CgroupThrottling, OtherJobs, LowFrequency: runs that have it,
 * and what only looks like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <string.h>

typedef struct make {
    int cores, threads, workers;
    double step_s, data_s;
    double compute, wait, loader; /* cores, threads that wait, cores */
    double busy;                  /* share of each core; 0: what the roles take */
} make;

static tg_test_sample_values sample_of(const make *m)
{
    tg_test_sample_values s = tg_test_sample();
    const double busy = m->busy > 0 ? m->busy : (m->compute + m->loader) / m->cores;
    s.user = (float)busy;
    s.system = s.steal = s.iowait = 0;
    tg_test_sample_role(&s, TG_ROLE_COMPUTE, m->threads, m->compute, m->wait);
    tg_test_sample_role(&s, TG_ROLE_LOADER, m->workers, m->loader, 0);
    tg_test_sample_role(&s, TG_ROLE_COMMUNICATION, 0, 0, 0);
    tg_test_sample_role(&s, TG_ROLE_OTHER, 1, 0, 0);
    s.values[TG_SYSTEM_GROUP_QUOTA_CORES] = INFINITY;
    return s;
}

static tg_test_run run_of(const make *m, const tg_test_sample_values *sample)
{
    tg_test_run run = tg_test_run_new();
    tg_step_record step = tg_test_step(m->step_s);
    step.t_data = m->data_s;
    step.t_forward = (m->step_s - m->data_s) / 3;
    step.t_backward = 2 * step.t_forward;
    tg_test_run_machine(&run, m->cores, m->threads, m->workers);
    tg_test_run_steps(&run, 200, &step);
    tg_test_run_samples(&run, "a", (size_t)m->cores, 0, (size_t)(400 * m->step_s) + 20, sample);
    return run;
}

static tg_test_run make_run(const make *m)
{
    const tg_test_sample_values sample = sample_of(m);
    return run_of(m, &sample);
}

/* Two cores as measured: 48 loader threads, whose batches are always ready. */
static const make CASE = {2, 2, 48, 0.0435, 0.0009, 1.04, 0.53, 0.36, 0};

static void test_oversubscription(void **state)
{
    (void)state;
    tg_test_run run = make_run(&CASE);
    const tg_finding *f = tg_test_fires(&run, "LoaderOversubscription", NULL);
    assert_string_equal(f->option, "workers");
    assert_string_equal(f->old_value, "48");
    assert_string_equal(f->new_value, "2");
    /* measured with two: 33.0 and 36.4 ms */
    assert_true(f->predicted_step_s > 0.032 && f->predicted_step_s < 0.037);
    assert_true(fabs(tg_test_evidence(f, "cores that loaders take") - 0.36) < 1e-6);
    assert_true(fabs(tg_test_evidence(f, "time that a compute thread waits for a core") - 26.5) <
                0.1);
    tg_test_run_done(&run);
}

static void quiet_oversubscription(make m)
{
    tg_test_run run = make_run(&m);
    tg_test_is_quiet(&run, "LoaderOversubscription", NULL);
    tg_test_run_done(&run);
}

static void test_not_oversubscription(void **state)
{
    (void)state;
    make m = CASE;
    m.workers = 2; /* as many as cores */
    quiet_oversubscription(m);
    m = CASE;
    m.wait = 0.09; /* just under the limit: nobody is in the way */
    quiet_oversubscription(m);
    m = CASE;
    m.wait = 0.2;
    m.loader = 0.003; /* tiny photos: they do nothing, whoever it is that is in the way */
    quiet_oversubscription(m);
    m = CASE;
    m.cores = 64; /* cores for all of them */
    quiet_oversubscription(m);
    m = CASE;
    m.wait = NAN;
    tg_test_run run = make_run(&m);
    tg_test_lacks(&run, "LoaderOversubscription", "threads");
    tg_test_run_done(&run);
    run = make_run(&CASE);
    run.history.step_count = 15; /* a short run */
    tg_test_lacks(&run, "LoaderOversubscription", "20 steps");
    tg_test_run_done(&run);
}

/* 16 cores: 8 compute, 1 loader thread at its end. */
static const make STARVING = {16, 8, 1, 0.4, 0.3, 2.0, 0, 0.98, 0};

static void test_starvation(void **state)
{
    (void)state;
    tg_test_run run = make_run(&STARVING);
    const tg_finding *f = tg_test_fires(&run, "LoaderStarvation", NULL);
    assert_string_equal(f->option, "workers");
    assert_string_equal(f->new_value, "4"); /* 0.39 s of a core a step, 0.1 s of compute */
    assert_true(f->predicted_step_s >= 0.098 && f->predicted_step_s < 0.105);
    tg_test_run_done(&run);
    make m = STARVING;
    m.loader = 0.3; /* it waits itself: for a disk */
    run = make_run(&m);
    tg_test_is_quiet(&run, "LoaderStarvation", NULL);
    tg_test_run_done(&run);
    m = STARVING;
    m.data_s = 0.019; /* just under 5 % */
    run = make_run(&m);
    tg_test_is_quiet(&run, "LoaderStarvation", NULL);
    tg_test_run_done(&run);
    m = STARVING;
    m.busy = 0.99; /* no core is free */
    run = make_run(&m);
    tg_test_is_quiet(&run, "LoaderStarvation", NULL);
    tg_test_run_done(&run);
}

/* Without loader threads the thread that computes makes the photos. */
static void test_starvation_without_workers(void **state)
{
    (void)state;
    const make m = {8, 4, 0, 0.2, 0.1, 2.5, 0, 0, 0};
    tg_test_run run = make_run(&m);
    const tg_finding *f = tg_test_fires(&run, "LoaderStarvation", NULL);
    assert_string_equal(f->old_value, "0");
    assert_string_equal(f->new_value, "1");
    assert_true(fabs(f->predicted_step_s - 0.1) < 0.003);
    tg_test_run_done(&run);
}

static void test_affinity(void **state)
{
    (void)state;
    make m = {4, 4, 0, 0.2, 0, 1.0, 3.0, 0, 0.25}; /* 4 threads take turns on one core of four */
    tg_test_run run = make_run(&m);
    const tg_finding *f = tg_test_fires(&run, "WrongAffinity", NULL);
    assert_non_null(strstr(f->title, "wait for a core"));
    assert_true(f->predicted_step_s < 0.06);
    tg_test_run_done(&run);
    m.busy = 0.95; /* cores are busy: others have them */
    run = make_run(&m);
    tg_test_is_quiet(&run, "WrongAffinity", NULL);
    tg_test_run_done(&run);
    m.busy = 0.25;
    m.wait = 0.4; /* few wait */
    run = make_run(&m);
    tg_test_is_quiet(&run, "WrongAffinity", NULL);
    tg_test_run_done(&run);
    m.wait = 3;
    tg_test_sample_values s = sample_of(&m);
    s.values[TG_SYSTEM_GROUP_QUOTA_CORES] = 1; /* a quota is another rule's */
    run = run_of(&m, &s);
    tg_test_is_quiet(&run, "WrongAffinity", NULL);
    tg_test_run_done(&run);
}

/* taskset -c 0 on two cores: one thread was taken, and a core is idle. */
static void test_mask(void **state)
{
    (void)state;
    make m = {1, 1, 0, 0.2, 0, 0.98, 0, 0, 0.5};
    tg_test_run run = tg_test_run_new();
    tg_test_sample_values s = sample_of(&m);
    const tg_step_record step = tg_test_step(0.2);
    tg_test_run_machine(&run, 1, 1, 0);
    tg_test_run_steps(&run, 200, &step);
    tg_test_run_samples(&run, "a", 2, 0, 90, &s);
    const tg_finding *f = tg_test_fires(&run, "WrongAffinity", NULL);
    assert_string_equal(f->option, "threads");
    assert_string_equal(f->new_value, "2");
    assert_true(f->predicted_step_s > 0.1 && f->predicted_step_s < 0.12);
    tg_test_run_done(&run);
}

static void test_throttling(void **state)
{
    (void)state;
    make m = {4, 4, 1, 0.2, 0, 1.4, 0.1, 0.1, 0};
    tg_test_sample_values s = sample_of(&m);
    s.values[TG_SYSTEM_GROUP_QUOTA_CORES] = 1.5;
    s.values[TG_SYSTEM_GROUP_THROTTLED] = 0.8;
    s.values[TG_SYSTEM_GROUP_THROTTLED_S] = 1.9;
    tg_test_run run = run_of(&m, &s);
    const tg_finding *f = tg_test_fires(&run, "CgroupThrottling", NULL);
    assert_string_equal(f->option, "threads");
    assert_string_equal(f->new_value, "1");
    assert_true(tg_test_evidence(f, "quota") == 1.5);
    tg_test_run_done(&run);
    s.values[TG_SYSTEM_GROUP_THROTTLED] = 0.09; /* now and then */
    run = run_of(&m, &s);
    tg_test_is_quiet(&run, "CgroupThrottling", NULL);
    tg_test_run_done(&run);
    s.values[TG_SYSTEM_GROUP_QUOTA_CORES] = INFINITY; /* no quota: there is nothing to know */
    s.values[TG_SYSTEM_GROUP_THROTTLED] = s.values[TG_SYSTEM_GROUP_THROTTLED_S] = NAN;
    run = run_of(&m, &s);
    tg_test_is_quiet(&run, "CgroupThrottling", NULL);
    tg_test_run_done(&run);
    s.values[TG_SYSTEM_GROUP_QUOTA_CORES] = NAN;
    run = run_of(&m, &s);
    tg_test_lacks(&run, "CgroupThrottling", "quota");
    tg_test_run_done(&run);
}

static void test_other_jobs(void **state)
{
    (void)state;
    make m = {4, 4, 1, 0.2, 0, 2.0, 1.0, 0.2, 0.98};
    tg_test_run run = make_run(&m);
    const tg_finding *f = tg_test_fires(&run, "OtherJobs", NULL);
    assert_true(fabs(tg_test_evidence(f, "cores that other programs take") - 1.72) < 0.01);
    assert_string_equal(f->host, "a");
    assert_true(f->predicted_step_s < 0.17);
    tg_test_run_done(&run);
    m.wait = 0.1; /* they are there, and in nobody's way */
    run = make_run(&m);
    tg_test_is_quiet(&run, "OtherJobs", NULL);
    tg_test_run_done(&run);
    m.wait = 1;
    m.busy = 0; /* the job's own threads wait for one another */
    run = make_run(&m);
    tg_test_is_quiet(&run, "OtherJobs", NULL);
    tg_test_run_done(&run);
    m.wait = NAN;
    run = make_run(&m);
    tg_test_lacks(&run, "OtherJobs", "threads");
    tg_test_run_done(&run);
}

/* MHz in the first and the second half. */
static tg_test_run cooled(double first, double second, float busy)
{
    const make m = {4, 4, 1, 0.2, 0, 3.8, 0, 0.1, 0};
    tg_test_sample_values s = sample_of(&m);
    s.user = busy;
    s.values[TG_SYSTEM_FREQUENCY_MHZ] = first;
    tg_test_run run = run_of(&m, &s);
    tg_system_host *host = &run.history.hosts[0];
    for (size_t i = host->sample_count / 3; i < host->sample_count; i++)
        host->samples[i].values[TG_SYSTEM_FREQUENCY_MHZ] = second;
    return run;
}

static void test_frequency(void **state)
{
    (void)state;
    tg_test_run run = cooled(3000, 2000, 0.97F);
    const tg_finding *f = tg_test_fires(&run, "LowFrequency", NULL);
    assert_true(fabs(f->predicted_step_s - 0.2 * 2 / 3) < 1e-3);
    tg_test_run_done(&run);
    run = cooled(3000, 2600, 0.97F); /* just above */
    tg_test_is_quiet(&run, "LowFrequency", NULL);
    tg_test_run_done(&run);
    run = cooled(3000, 2000, 0.2F); /* cores at rest clock down */
    tg_test_lacks(&run, "LowFrequency", "frequency");
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oversubscription), cmocka_unit_test(test_not_oversubscription),
        cmocka_unit_test(test_starvation),       cmocka_unit_test(test_starvation_without_workers),
        cmocka_unit_test(test_affinity),         cmocka_unit_test(test_mask),
        cmocka_unit_test(test_throttling),       cmocka_unit_test(test_other_jobs),
        cmocka_unit_test(test_frequency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
