/* Straggler, ExposedCommunication, DiskSlow, Stall: runs that have it, and what only looks like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

/* Three ranks on hosts a, b, c. */
static tg_test_run make_run(const char *options)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.3);
    tg_test_run_info(&run,
                     "{\"machine\":{\"host\":\"a\"},\"ranks\":3,\"threads\":2,\"workers\":1,"
                     "\"cgroup\":{\"usable_cpus\":2},\"each\":[{\"host\":\"a\",\"cores\":\"0-1\"},"
                     "{\"host\":\"b\",\"cores\":\"0-1\"},{\"host\":\"c\",\"cores\":\"0-1\"}],"
                     "\"memory\":{\"gradients_bytes\":{\"most\":83886080}}}");
    tg_test_run_options(&run, options);
    tg_test_run_steps(&run, 100, &step);
    return run;
}

#define USUAL "bucket-mib: 4\nzero: 0\nreduce-dtype: float32\namp: true\n"

static tg_rank_step rank_step(double backward, double reduce)
{
    return (tg_rank_step){.images = 32,
                          .t_step = 0.3,
                          .t_forward = 0.3 - backward - reduce,
                          .t_backward = backward,
                          .t_reduce = reduce};
}

/* Rank 1 has `more` seconds of backward than the others, which wait for it. */
static void add_rows(tg_test_run *run, size_t count, double more, double wire)
{
    const tg_rank_step even = rank_step(0.1, wire + more), late = rank_step(0.1 + more, wire);
    const tg_rank_step each[RANKS] = {even, late, even};
    tg_test_run_ranks(run, count, each, RANKS);
}

static void test_straggler(void **state)
{
    (void)state;
    tg_test_run run = make_run(USUAL);
    tg_test_sample_values s = tg_test_sample();
    s.user = 1;
    s.system = s.iowait = s.steal = 0;
    tg_test_sample_role(&s, TG_ROLE_COMPUTE, 2, 1.2, 0.8);
    tg_test_sample_role(&s, TG_ROLE_LOADER, 1, 0.1, 0);
    tg_test_sample_role(&s, TG_ROLE_COMMUNICATION, 1, 0, 0);
    tg_test_sample_role(&s, TG_ROLE_OTHER, 1, 0, 0);
    tg_test_run_samples(&run, "b", 2, 0, 60, &s);
    add_rows(&run, 100, 0.1, 0.01);
    const tg_finding *f = tg_test_fires(&run, "Straggler", NULL);
    assert_int_equal(f->rank, 1);
    assert_string_equal(f->host, "b");
    assert_non_null(strstr(f->title, "backward"));
    assert_non_null(strstr(f->cause, "other programs take 0.7 cores"));
    assert_true(fabs(f->predicted_step_s - 0.2) < 1e-6);
    tg_test_run_done(&run);
}

static void test_no_straggler(void **state)
{
    (void)state;
    tg_test_run run = make_run(USUAL);
    add_rows(&run, 100, 0.028, 0.01); /* just under 10 % */
    tg_test_is_quiet(&run, "Straggler", NULL);
    tg_test_run_done(&run);
    run = make_run(USUAL);
    add_rows(&run, 70, 0, 0.01);
    add_rows(&run, 30, 0.15, 0.01); /* for a while */
    tg_test_is_quiet(&run, "Straggler", NULL);
    tg_test_run_done(&run);
    run = make_run(USUAL);
    add_rows(&run, 10, 0.1, 0.01); /* a short run */
    tg_test_lacks(&run, "Straggler", "20 steps");
    tg_test_run_done(&run);
}

static void test_uneven_photos(void **state)
{
    (void)state;
    tg_test_run run = make_run(USUAL);
    tg_rank_step each[RANKS] = {rank_step(0.05, 0.06), rank_step(0.1, 0.01), rank_step(0.05, 0.06)};
    each[1].images = 48;
    tg_test_run_ranks(&run, 100, each, RANKS);
    const tg_finding *f = tg_test_fires(&run, "Straggler", NULL);
    assert_non_null(strstr(f->cause, "48 photos a step, the others 32"));
    tg_test_run_done(&run);
}

static void test_exposed(void **state)
{
    (void)state;
    tg_test_run run = make_run(USUAL);
    add_rows(&run, 100, 0, 0.12);
    const tg_finding *f = tg_test_fires(&run, "ExposedCommunication", NULL);
    assert_string_equal(f->option, "reduce-dtype");
    assert_string_equal(f->new_value, "bfloat16");
    assert_true(fabs(tg_test_evidence(f, "waited for in a step by all ranks") - 0.12) < 1e-9);
    /* what is hidden in backward stays hidden: of 0.12 + 0.19 s half goes, 0.19 s of which backward hides */
    assert_true(f->predicted_step_s >= 0.18 - 1e-9 && f->predicted_step_s < 0.2);
    tg_test_run_done(&run);
    run = make_run("bucket-mib: 64\nzero: 0\nreduce-dtype: float32\namp: true\n");
    add_rows(&run, 100, 0, 0.12);
    f = tg_test_fires(&run, "ExposedCommunication", NULL);
    assert_string_equal(f->option, "bucket-mib");
    assert_string_equal(f->new_value, "10");
    tg_test_run_done(&run);
    run = make_run("bucket-mib: 4\nzero: 0\nreduce-dtype: bfloat16\namp: true\n");
    add_rows(&run, 100, 0, 0.12);
    f = tg_test_fires(&run, "ExposedCommunication", NULL);
    assert_string_equal(f->option, "zero");
    tg_test_run_done(&run);
    run = make_run(USUAL);
    add_rows(&run, 100, 0, 0.014); /* just under 5 % */
    tg_test_is_quiet(&run, "ExposedCommunication", NULL);
    tg_test_run_done(&run);
    run = make_run(USUAL);
    add_rows(&run, 100, 0.15, 0.005); /* a late rank is no wire */
    tg_test_is_quiet(&run, "ExposedCommunication", NULL);
    tg_test_run_done(&run);
}

/* One loader thread: it computes `busy` of the time, and `blocked` threads wait for a disk. */
static tg_test_run slow_disk(double busy, double blocked, double data)
{
    tg_test_run run = tg_test_run_new();
    tg_step_record step = tg_test_step(0.2);
    tg_test_sample_values s = tg_test_sample();
    step.t_data = data;
    step.t_forward = (0.2 - data) / 3;
    step.t_backward = 2 * step.t_forward;
    s.user = 0.5;
    s.system = s.steal = 0;
    s.iowait = 0.3F;
    s.values[TG_SYSTEM_BLOCKED] = blocked;
    tg_test_sample_role(&s, TG_ROLE_COMPUTE, 2, 0.8, 0);
    tg_test_sample_role(&s, TG_ROLE_LOADER, 1, busy, 0);
    tg_test_run_machine(&run, 2, 2, 1);
    tg_test_run_steps(&run, 100, &step);
    tg_test_run_samples(&run, "a", 2, 0, 40, &s);
    return run;
}

static void test_disk(void **state)
{
    (void)state;
    tg_test_run run = slow_disk(0.1, 0.9, 0.1);
    const tg_finding *f = tg_test_fires(&run, "DiskSlow", NULL);
    assert_string_equal(f->option, "workers");
    assert_string_equal(f->new_value, "3"); /* 0.2 s of one of them, in 0.1 s */
    assert_true(fabs(f->predicted_step_s - 0.1) < 1e-6);
    tg_test_run_done(&run);
    run = slow_disk(0.9, 0.9, 0.1); /* it computes: cores are what it lacks */
    tg_test_is_quiet(&run, "DiskSlow", NULL);
    tg_test_run_done(&run);
    run = slow_disk(0.1, 0.1, 0.1); /* it waits, and for no disk */
    tg_test_is_quiet(&run, "DiskSlow", NULL);
    tg_test_run_done(&run);
    run = slow_disk(0.1, 0.9, 0.009); /* nobody waits for it */
    tg_test_is_quiet(&run, "DiskSlow", NULL);
    tg_test_run_done(&run);
    run = slow_disk(0.1, 0.9, 0.1); /* others wait for it: this job's photos come from memory */
    for (size_t i = 0; i < run.history.hosts[0].sample_count; i++)
        run.history.hosts[0].samples[i].values[TG_SYSTEM_JOB_READ_BYTES] = 100;
    tg_test_is_quiet(&run, "DiskSlow", NULL);
    tg_test_run_done(&run);
    run = slow_disk(0.1, NAN, 0.1);
    tg_test_lacks(&run, "DiskSlow", "disks");
    tg_test_run_done(&run);
}

static tg_test_run with_gap(double seconds)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.2), gap = tg_test_step(seconds);
    tg_test_run_machine(&run, 2, 2, 1);
    tg_test_run_steps(&run, 60, &step);
    tg_test_run_steps(&run, 1, &gap);
    tg_test_run_steps(&run, 60, &step);
    return run;
}

static void test_stall(void **state)
{
    (void)state;
    tg_test_run run = with_gap(30);
    tg_test_sample_values s = tg_test_sample();
    tg_test_sample_role(&s, TG_ROLE_COMPUTE, 2, 0.01, 0);
    tg_test_run_samples(&run, "a", 2, 0, 100, &s);
    const tg_finding *f = tg_test_fires(&run, "Stall", NULL);
    assert_int_equal(f->first_step, 61);
    assert_true(fabs(f->end - f->begin - 30) < 1e-3);
    assert_non_null(strstr(f->cause, "paused"));
    tg_test_run_done(&run);
    run = with_gap(9.5);
    tg_test_is_quiet(&run, "Stall", NULL);
    tg_test_is_quiet(&run, "Stall", "Stall.medians=60,Stall.seconds=5");
    tg_test_run_done(&run);
}

/* It is sampled, and no step is written any more. */
static void test_still(void **state)
{
    (void)state;
    tg_test_run run = with_gap(0.2);
    tg_test_sample_values s = tg_test_sample();
    tg_test_run_samples(&run, "a", 2, 0, 120, &s);
    const tg_finding *f = tg_test_fires(&run, "Stall", NULL);
    assert_non_null(strstr(f->title, "lives"));
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    tg_test_run_span(&run, TG_SPAN_EVALUATION, TG_TEST_RUN_BEGIN + 24.3, NAN,
                     121); /* it is scored */
    tg_test_is_quiet(&run, "Stall", NULL);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straggler),     cmocka_unit_test(test_no_straggler),
        cmocka_unit_test(test_uneven_photos), cmocka_unit_test(test_exposed),
        cmocka_unit_test(test_disk),          cmocka_unit_test(test_stall),
        cmocka_unit_test(test_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
