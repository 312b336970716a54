/* LowGPUUtilization, LowUtilization, BatchSize, IOBottleneck, GPUMemoryIncrease, MemoryIncrease and OverallSystemUsage:
 * runs that fire them, and runs that only look like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <string.h>

#define SAMPLES 200 /* of half a second, as long as 200 steps of that */

/* A machine of four cores whose compute threads (4) use `compute` of them; no accelerator. */
static tg_test_sample_values cores(double compute)
{
    tg_test_sample_values s = tg_test_sample();
    s.user = (float)(compute / 4);
    s.system = s.steal = s.iowait = 0;
    s.values[TG_SYSTEM_MEMORY_TOTAL_BYTES] = 16e9;
    s.values[TG_SYSTEM_JOB_RSS_BYTES] = 2e9;
    tg_test_sample_role(&s, TG_ROLE_COMPUTE, 4, compute, 0);
    tg_test_sample_role(&s, TG_ROLE_LOADER, 1, 0.1, 0);
    return s;
}

static tg_test_run with_step(const tg_step_record *step)
{
    tg_test_run run = tg_test_run_new();
    tg_test_run_options(&run, "batch-size: 32\n");
    tg_test_run_machine(&run, 4, 4, 1);
    tg_test_run_steps(&run, 200, step);
    return run;
}

/* A step of half a second of which `data` waits for photos and `once` is not of the photos. */
static tg_step_record step_of(double data, double once)
{
    tg_step_record step = tg_test_step(0.5);
    step.t_data = data;
    step.t_optimizer = once;
    step.t_forward = (0.5 - data - once) / 3;
    step.t_backward = 2 * step.t_forward;
    return step;
}

static void test_low(void **state)
{
    const tg_step_record step = step_of(0.2, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values s = cores(2.4);
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    const tg_finding *f = tg_test_fires(&run, "LowUtilization", NULL);
    assert_non_null(strstr(f->cause, "waiting for photos"));
    assert_true(fabs(f->predicted_step_s - 0.3) < 1e-9);
    tg_test_lacks(&run, "LowGPUUtilization", "accelerators");
    tg_test_run_done(&run);
}

static void test_just_enough(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values s = cores(2.84); /* 71 % */
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    tg_test_is_quiet(&run, "LowUtilization", NULL);
    tg_test_fires(&run, "LowUtilization", "LowUtilization.threshold_p95=72");
    tg_test_run_done(&run);
}

/* Up one second and down the next: one finding, of use that comes and goes. */
static void test_alternating(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values up = cores(3.9), down = cores(0.1);
    (void)state;
    for (int i = 0; i < SAMPLES / 4; i++) {
        tg_test_run_samples(&run, "a", 4, 0, 2, &up);
        tg_test_run_samples(&run, "a", 4, 0, 2, &down);
    }
    const tg_finding *f = tg_test_fires(&run, "LowUtilization", NULL);
    assert_non_null(strstr(f->title, "comes and goes"));
    tg_test_run_done(&run);
}

/* It falls only while the model is saved: that is no step. */
static void test_down_beside_steps(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values up = cores(3.9), down = cores(0.1);
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, 80, &up);
    tg_test_run_samples(&run, "a", 4, 0, 40, &down);
    tg_test_run_samples(&run, "a", 4, 0, 80, &up);
    tg_test_fires(&run, "LowUtilization", NULL);
    tg_test_run_span(&run, TG_SPAN_CHECKPOINT, TG_TEST_RUN_BEGIN + 40, 20, 80);
    tg_test_is_quiet(&run, "LowUtilization", NULL);
    tg_test_run_done(&run);
}

static void test_too_short(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values s = cores(1);
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, 58, &s); /* 29 seconds */
    tg_test_lacks(&run, "LowUtilization", "half a minute");
    tg_test_run_samples(&run, "a", 4, 0, 4, &s);
    tg_test_fires(&run, "LowUtilization", NULL);
    tg_test_run_done(&run);
}

/* What drivers may say: not available, 4294967295, -1. None of it is a low use. */
static void test_driver_nonsense(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    tg_test_sample_values s = cores(1);
    (void)state;
    s.device = (tg_system_device){NAN, NAN, NAN, NAN, NAN};
    tg_test_run_samples(&run, "a", 4, 2, 100, &s);
    s.device.utilisation = 4294967295.0F;
    tg_test_run_samples(&run, "a", 4, 2, 50, &s);
    s.device.utilisation = -1;
    tg_test_run_samples(&run, "a", 4, 2, 50, &s);
    tg_test_lacks(&run, "LowGPUUtilization", "samples");
    tg_test_is_quiet(&run, "LowUtilization", NULL);
    tg_test_run_done(&run);
}

static void test_low_gpu(void **state)
{
    tg_step_record step = step_of(0, 0);
    (void)state;
    step.t_reduce = 0.25;
    step.t_forward = 0.05;
    step.t_backward = 0.2;
    tg_test_run run = with_step(&step);
    tg_test_sample_values s = cores(1);
    s.device = (tg_system_device){0.4F, 0.3F, 8e9, 80e9, 200};
    tg_test_run_samples(&run, "a", 4, 2, SAMPLES, &s);
    const tg_finding *f = tg_test_fires(&run, "LowGPUUtilization", NULL);
    assert_non_null(strstr(f->cause, "other ranks"));
    tg_test_run_done(&run);
}

/* Everything is used little, and a good part of the step is done once, whatever the batch. */
static void test_batch(void **state)
{
    const tg_step_record step = step_of(0, 0.2);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values s = cores(2);
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    const tg_finding *f = tg_test_fires(&run, "BatchSize", NULL);
    assert_string_equal(f->option, "batch-size");
    assert_string_equal(f->new_value, "128"); /* a quarter of 0.125 of memory is still under 70 % */
    assert_true(fabs(f->predicted_step_s - 0.35) < 1e-9);
    tg_test_run_done(&run);
}

/* A larger batch would not fit, or photos are what it waits for, or one of the three is well used. */
static void test_batch_lookalikes(void **state)
{
    tg_step_record step = step_of(0, 0.2);
    tg_test_run run = with_step(&step);
    tg_test_sample_values s = cores(2);
    (void)state;
    s.values[TG_SYSTEM_JOB_RSS_BYTES] = 6e9;
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    tg_test_is_quiet(&run, "BatchSize", NULL);
    tg_test_run_done(&run);

    step = step_of(0.2, 0.1);
    run = with_step(&step);
    s = cores(2);
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    tg_test_is_quiet(&run, "BatchSize", NULL);
    tg_test_run_done(&run);

    step = step_of(0, 0.2);
    run = with_step(&step);
    s = cores(2.9);
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    tg_test_is_quiet(&run, "BatchSize", NULL);
    s.values[TG_SYSTEM_JOB_RSS_BYTES] = NAN;
    tg_test_run_done(&run);
    run = with_step(&step);
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    tg_test_lacks(&run, "BatchSize", "memory");
    tg_test_run_done(&run);
}

static tg_test_run disk_run(double data, double compute, float iowait, double busy)
{
    const tg_step_record step = step_of(data, 0);
    tg_test_run run = with_step(&step);
    tg_test_sample_values s = cores(compute);
    s.iowait = iowait;
    s.values[TG_SYSTEM_DISK_BUSY] = busy;
    s.values[TG_SYSTEM_DISK_READ_BYTES] = 50e6;
    tg_test_run_samples(&run, "a", 4, 0, SAMPLES, &s);
    return run;
}

static void test_disk(void **state)
{
    tg_test_run run = disk_run(0.3, 1.6, 0.5F, 0.98);
    (void)state;
    const tg_finding *f = tg_test_fires(&run, "IOBottleneck", NULL);
    assert_string_equal(f->option, ""); /* the disk is full: more readers do not help */
    assert_true(fabs(tg_test_evidence(f, "read for each photo") - 50e6 * 0.5 / 32) < 1);
    tg_test_run_done(&run);
    run = disk_run(0.3, 1.6, 0.5F, 0.3);
    f = tg_test_fires(&run, "IOBottleneck", NULL);
    assert_string_equal(f->option, "workers");
    tg_test_run_done(&run);
}

static void test_disk_lookalikes(void **state)
{
    tg_test_run run = disk_run(0.02, 1.6, 0.5F, 0.98); /* a backup: no step waits */
    (void)state;
    tg_test_is_quiet(&run, "IOBottleneck", NULL);
    tg_test_run_done(&run);
    run = disk_run(0.3, 1.6, 0.2F, 0.98); /* a third of the idle time alone */
    tg_test_is_quiet(&run, "IOBottleneck", NULL);
    tg_test_run_done(&run);
    run = disk_run(0.3, 3.9, 0.02F, 0.98); /* hardly any idle time to wait in */
    tg_test_is_quiet(&run, "IOBottleneck", NULL);
    tg_test_run_done(&run);
    run = disk_run(0.3, 1.6, NAN, NAN);
    tg_test_lacks(&run, "IOBottleneck", "disks");
    tg_test_run_done(&run);
}

/* `bytes` of sample i of a run of 200. */
static tg_test_run memory_run(double (*bytes)(int i), bool device)
{
    tg_test_run run = tg_test_run_new();
    tg_test_sample_values s = cores(2);
    for (int i = 0; i < 200; i++) {
        s.values[TG_SYSTEM_JOB_RSS_BYTES] = bytes(i);
        s.device = (tg_system_device){0.9F, NAN, bytes(i), 80e9, NAN};
        tg_test_run_samples(&run, "a", 4, device, 1, &s);
    }
    return run;
}

static double growing(int i)
{
    return 2e9 + 1e7 * i + 1e6 * (i % 7);
}

static double warming(int i)
{
    return i < 30 ? 1e9 + 5e7 * i : 2.5e9;
}

static double jumping(int i)
{
    return i < 100 ? 2e9 : 3e9;
}

static double sawtooth(int i)
{
    return 2e9 + 5e7 * (i % 20);
}

static double slowly(int i)
{
    return 2e9 + 9e5 * i; /* under a tenth in all */
}

static double unknown(int i)
{
    (void)i;
    return NAN;
}

static void test_memory_grows(void **state)
{
    tg_test_run run = memory_run(growing, false);
    (void)state;
    const tg_finding *f = tg_test_fires(&run, "MemoryIncrease", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS); /* full in a few minutes */
    assert_non_null(strstr(f->title, "full in"));
    tg_test_lacks(&run, "GPUMemoryIncrease", "accelerators");
    tg_test_run_done(&run);
    run = memory_run(growing, true);
    tg_test_fires(&run, "GPUMemoryIncrease", NULL);
    tg_test_run_done(&run);
}

static void test_memory_lookalikes(void **state)
{
    static double (*const SHAPES[])(int i) = {warming, jumping, sawtooth, slowly};
    (void)state;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        tg_test_run run = memory_run(SHAPES[s], true);
        tg_test_is_quiet(&run, "MemoryIncrease", NULL);
        tg_test_is_quiet(&run, "GPUMemoryIncrease", NULL);
        tg_test_run_done(&run);
    }
    tg_test_run run = memory_run(unknown, true);
    tg_test_lacks(&run, "MemoryIncrease", "memory");
    tg_test_lacks(&run, "GPUMemoryIncrease", "memory");
    tg_test_run_done(&run);
}

static void test_usage(void **state)
{
    const tg_step_record step = step_of(0, 0);
    tg_test_run run = with_step(&step);
    const tg_test_sample_values s = cores(2);
    (void)state;
    tg_test_run_samples(&run, "a", 4, 0, 20, &s);
    const tg_finding *f = tg_test_fires(&run, "OverallSystemUsage", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_NOTE);
    assert_true(fabs(tg_test_evidence(f, "cores, median") - 0.5) < 1e-6);
    tg_test_fires(&run, "OverallFrameworkMetrics", NULL);
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_low),
        cmocka_unit_test(test_just_enough),
        cmocka_unit_test(test_alternating),
        cmocka_unit_test(test_down_beside_steps),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_driver_nonsense),
        cmocka_unit_test(test_low_gpu),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_batch_lookalikes),
        cmocka_unit_test(test_disk),
        cmocka_unit_test(test_disk_lookalikes),
        cmocka_unit_test(test_memory_grows),
        cmocka_unit_test(test_memory_lookalikes),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
