/* CPUBottleneck and Dataloader: the run of the case (far too many loader threads), and what only looks like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two cores; compute threads get `compute` of them and wait for `wait`, loader threads take `loader`; of a step of half
 * a second, `data` seconds wait for photos. */
static tg_test_run make_run(int workers, double compute, double wait, double loader, double data)
{
    tg_test_run run = tg_test_run_new();
    tg_step_record step = tg_test_step(0.5);
    tg_test_sample_values sample = tg_test_sample();
    step.t_data = data;
    step.t_forward = (0.5 - data) / 3;
    step.t_backward = 2 * (0.5 - data) / 3;
    tg_test_run_machine(&run, 2, 2, workers);
    tg_test_run_steps(&run, 200, &step);
    sample.user = (float)((compute + loader) / 2);
    sample.system = sample.steal = 0;
    tg_test_sample_role(&sample, TG_ROLE_COMPUTE, 2, compute, wait);
    tg_test_sample_role(&sample, TG_ROLE_LOADER, workers, loader, 0);
    tg_test_run_samples(&run, "a", 2, 0, 200, &sample);
    return run;
}

/* 48 loader threads have more than half of both cores, and no step ever waited for a photo. */
static void test_case(void **state)
{
    tg_test_run run = make_run(48, 0.8, 1.1, 1.2, 0);
    (void)state;
    const tg_finding *f = tg_test_fires(&run, "CPUBottleneck", NULL);
    assert_string_equal(f->option, "workers");
    assert_string_equal(f->old_value, "48");
    assert_true(atof(f->new_value) <= 2);
    assert_non_null(strstr(f->cause, "fewer, not more"));
    assert_true(f->predicted_step_s < f->step_s);
    f = tg_test_fires(&run, "Dataloader", NULL);
    assert_string_equal(f->option, "workers");
    assert_true(atof(f->new_value) <= 2);
    assert_true(tg_test_evidence(f, "loader threads") == 48);
    tg_test_run_done(&run);
}

/* Cores as busy, with compute threads that have them. */
static void test_busy_and_well(void **state)
{
    tg_test_run run = make_run(1, 1.8, 0.02, 0.2, 0);
    (void)state;
    tg_test_is_quiet(&run, "CPUBottleneck", NULL);
    tg_test_is_quiet(&run, "Dataloader", NULL);
    tg_test_run_done(&run);
}

/* Starved for fewer samples than half; then for more. */
static void test_share_of_time(void **state)
{
    tg_test_run run = make_run(48, 0.8, 1.1, 1.2, 0);
    tg_system_host *host = &run.history.hosts[0];
    (void)state;
    for (size_t i = 0; i < 104; i++)
        host->samples[i].values[TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_CPU)] = 1.6;
    tg_test_is_quiet(&run, "CPUBottleneck", NULL);
    tg_test_fires(&run, "CPUBottleneck", "CPUBottleneck.threshold=40");
    tg_test_run_done(&run);
}

/* A value that is unknown counts neither way, and no value at all is said to be lacking. */
static void test_unknown(void **state)
{
    tg_test_run run = make_run(48, NAN, NAN, NAN, 0);
    (void)state;
    tg_test_lacks(&run, "CPUBottleneck", "samples");
    const tg_finding *f = tg_test_fires(&run, "Dataloader", NULL); /* too many, at no known cost */
    assert_true(isnan(f->predicted_step_s));
    tg_test_run_done(&run);
    run = make_run(48, 0.8, NAN, 1.2, 0);
    f = tg_test_fires(&run, "CPUBottleneck", NULL);
    assert_true(isnan(tg_test_evidence(f, "compute threads wait for a core")));
    tg_test_run_done(&run);
    run = tg_test_run_new();
    tg_test_lacks(&run, "CPUBottleneck", "metrics.jsonl");
    tg_test_lacks(&run, "Dataloader", "run.json");
    tg_test_run_done(&run);
}

/* Others take the cores: no number of loader threads would help. */
static void test_others(void **state)
{
    tg_test_run run = make_run(1, 0.6, 1.2, 0.1, 0);
    tg_system_host *host = &run.history.hosts[0];
    (void)state;
    for (size_t i = 0; i < host->sample_count; i++)
        host->samples[i].cores[0].user = host->samples[i].cores[1].user = 0.99F;
    const tg_finding *f = tg_test_fires(&run, "CPUBottleneck", NULL);
    assert_string_equal(f->option, "");
    assert_non_null(strstr(f->cause, "other programs"));
    assert_true(f->predicted_step_s < f->step_s);
    tg_test_is_quiet(&run, "Dataloader", NULL);
    tg_test_run_done(&run);
}

/* One loader thread on eight cores, of which six have nothing to do, cannot keep up. */
static void test_too_few(void **state)
{
    tg_test_run run = tg_test_run_new();
    tg_step_record step = tg_test_step(0.5);
    tg_test_sample_values sample = tg_test_sample();
    (void)state;
    step.t_data = 0.3;
    step.t_forward = 0.1;
    step.t_backward = 0.1;
    tg_test_run_machine(&run, 8, 2, 1);
    tg_test_run_steps(&run, 200, &step);
    sample.user = 0.25F;
    tg_test_sample_role(&sample, TG_ROLE_COMPUTE, 2, 0.8, 0);
    tg_test_sample_role(&sample, TG_ROLE_LOADER, 1, 1, 0);
    tg_test_run_samples(&run, "a", 8, 0, 200, &sample);
    const tg_finding *f = tg_test_fires(&run, "Dataloader", NULL);
    assert_string_equal(f->new_value, "3"); /* half a core second in the 0.2 s that compute takes */
    assert_true(fabs(f->predicted_step_s - 0.2) < 0.01);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    tg_test_run_done(&run);
}

/* Far more threads than cores that take nothing from anybody. */
static void test_many_at_rest(void **state)
{
    tg_test_run run = make_run(8, 1.8, 0.04, 0.1, 0);
    (void)state;
    tg_test_is_quiet(&run, "Dataloader", NULL);
    tg_test_run_done(&run);
}

/* Without samples a number that cannot be right is said, but nothing is predicted. */
static void test_no_samples(void **state)
{
    tg_test_run run = tg_test_run_new();
    const tg_step_record step = tg_test_step(0.5);
    (void)state;
    tg_test_run_machine(&run, 2, 2, 48);
    tg_test_run_steps(&run, 200, &step);
    const tg_finding *f = tg_test_fires(&run, "Dataloader", NULL);
    assert_true(isnan(f->predicted_step_s));
    assert_int_equal(f->severity, TG_SEVERITY_NOTE);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case),          cmocka_unit_test(test_busy_and_well),
        cmocka_unit_test(test_share_of_time), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_others),        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_many_at_rest),  cmocka_unit_test(test_no_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
