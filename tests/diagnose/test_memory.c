/* Float32WhereBfloat16, LargerBatch, OptimizerNotSharded, MemoryNearLimit, SwapUsed: runs that have it, and what only looks
 * like it. */
#include "support/check.h"
#include "support/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB 1073741824.0

/* A job of 32 photos on cores of this instruction set: memory of 2 GiB, half of it by photos, of `available`. */
static tg_test_run make_run(const char *set, int ranks, double available, const char *options)
{
    char json[2048];
    tg_test_run run = tg_test_run_new();
    snprintf(json, sizeof json,
             "{\"machine\":{\"host\":\"a\"},\"cgroup\":{\"usable_cpus\":4},\"kernels\":{"
             "\"instruction_set\":\"%s\"},\"ranks\":%d,\"threads\":4,\"workers\":1,"
             "\"data\":{\"train_images\":100000,\"val_images\":10,\"classes\":5},"
             "\"memory\":{\"moments_bytes\":{\"most\":536870912},\"average_bytes\":{\"most\":0},"
             "\"activations_bytes\":{\"most\":1000000000},\"batches_bytes\":{\"most\":73741824},"
             "\"predicted_bytes\":2147483648,\"available_bytes\":%.0f}}",
             set, ranks, available);
    tg_test_run_info(&run, json);
    tg_test_run_options(&run, options);
    run.history.ranks = ranks;
    return run;
}

static void add_steps(tg_test_run *run, double optimizer, double data)
{
    tg_step_record step = tg_test_step(0.2);
    const double rest = 0.2 - optimizer - data;
    step.t_data = data;
    step.t_optimizer = optimizer;
    step.t_forward = rest / 3;
    step.t_backward = rest - step.t_forward;
    tg_test_run_steps(run, 100, &step);
}

#define PLAIN "batch-size: 32\nglobal-batch-size: 0\namp: false\namp-dtype: bfloat16\nzero: 0\n"
#define NARROW "batch-size: 32\nglobal-batch-size: 0\namp: true\namp-dtype: bfloat16\nzero: 0\n"
#define WIDE "batch-size: 32\nglobal-batch-size: 0\namp: true\namp-dtype: float32\nzero: 1\n"

static void quiet(const char *rule, const char *set, const char *options, double optimizer,
                  double data)
{
    tg_test_run run = make_run(set, 1, 20 * GIB, options);
    add_steps(&run, optimizer, data);
    tg_test_is_quiet(&run, rule, NULL);
    tg_test_run_done(&run);
}

static void test_bfloat16(void **state)
{
    (void)state;
    tg_test_run run = make_run("avx512_bf16", 1, 20 * GIB, PLAIN);
    add_steps(&run, 0.01, 0);
    const tg_finding *f = tg_test_fires(&run, "Float32WhereBfloat16", NULL);
    assert_string_equal(f->option, "amp");
    assert_string_equal(f->new_value, "true");
    /* bench train, ViT-Ti/16, batch 16: 0.640 and 0.358 s a step */
    assert_true(fabs(f->predicted_step_s / 0.2 - 0.358 / 0.640) < 0.08);
    tg_test_run_done(&run);
    run = make_run("amx", 1, 20 * GIB, WIDE);
    add_steps(&run, 0.01, 0);
    f = tg_test_fires(&run, "Float32WhereBfloat16", NULL);
    assert_string_equal(f->option, "amp-dtype");
    assert_true(f->predicted_step_s < 0.07);
    tg_test_run_done(&run);
    quiet("Float32WhereBfloat16", "avx512_bf16", NARROW, 0.01, 0);
    quiet("Float32WhereBfloat16", "avx512", PLAIN, 0.01, 0); /* the cores have no such products */
    quiet("Float32WhereBfloat16", "avx512_bf16", PLAIN, 0.01,
          0.17); /* it waits for photos anyway */
}

/* What was recorded counts more than the table. */
static void test_bfloat16_recorded(void **state)
{
    (void)state;
    tg_operation each[2] = {{.name = "linear_forward", .phase = "forward", .dtype = "float32"},
                            {.name = "norm", .phase = "backward"}};
    each[0].seconds = 5;
    each[0].flops = 1e12;
    each[1].seconds = 5;
    const tg_operations ops = {.steps = 100,
                               .seconds = 10,
                               .peak_flops_f32 = 1e11,
                               .peak_flops_bf16 = 4e11,
                               .each = each,
                               .count = 2};
    tg_test_run run = make_run("avx512_bf16", 1, 20 * GIB, PLAIN);
    add_steps(&run, 0, 0);
    tg_test_run_operations(&run, &ops);
    const tg_finding *f = tg_test_fires(&run, "Float32WhereBfloat16", NULL);
    assert_true(fabs(f->predicted_step_s - (0.1 + 0.1 / 4)) < 1e-6);
    assert_true(tg_test_evidence(f, "products in float32, of these") == 50);
    tg_test_run_done(&run);
}

static void test_batch(void **state)
{
    (void)state;
    tg_test_run run = make_run("amx", 1, 20 * GIB, NARROW);
    add_steps(&run, 0.04, 0);
    const tg_finding *f = tg_test_fires(&run, "LargerBatch", NULL);
    assert_string_equal(f->option, "batch-size");
    assert_string_equal(f->old_value, "32");
    assert_string_equal(f->new_value, "128");
    assert_true(fabs(f->predicted_step_s - (0.2 - 0.04 * 1.3 * 0.75)) < 1e-6);
    tg_test_run_done(&run);
    run = make_run("amx", 1, 4.2 * GIB, NARROW); /* one doubling fits */
    add_steps(&run, 0.04, 0);
    f = tg_test_fires(&run, "LargerBatch", NULL);
    assert_string_equal(f->new_value, "64");
    tg_test_run_done(&run);
    run = make_run("amx", 1, 3.7 * GIB, NARROW); /* none does */
    add_steps(&run, 0.04, 0);
    tg_test_is_quiet(&run, "LargerBatch", NULL);
    tg_test_run_done(&run);
    quiet("LargerBatch", "amx", NARROW, 0.004, 0); /* little is to be gained */
}

static void test_sharding(void **state)
{
    (void)state;
    tg_test_run run = make_run("amx", 4, 20 * GIB, NARROW);
    const tg_finding *f = tg_test_fires(&run, "OptimizerNotSharded", NULL);
    assert_string_equal(f->option, "zero");
    assert_true(tg_test_evidence(f, "of it freed by shares") == 536870912 * 0.75);
    assert_true(tg_test_evidence(f, "photos that fit into what is freed") == 12);
    tg_test_run_done(&run);
    run = make_run("amx", 1, 20 * GIB, NARROW); /* nobody to share with */
    tg_test_is_quiet(&run, "OptimizerNotSharded", NULL);
    tg_test_run_done(&run);
    run = make_run("amx", 4, 20 * GIB, WIDE); /* shared already */
    tg_test_is_quiet(&run, "OptimizerNotSharded", NULL);
    tg_test_is_quiet(&run, "OptimizerNotSharded", "OptimizerNotSharded.saved=1");
    tg_test_run_done(&run);
}

/* Samples with so much used of a machine of 10 GiB, and of a group's limit (INFINITY: none). */
static tg_test_run used(double machine, double group, double limit)
{
    tg_test_run run = tg_test_run_new();
    tg_test_sample_values s = tg_test_sample();
    s.values[TG_SYSTEM_MEMORY_TOTAL_BYTES] = 10 * GIB;
    s.values[TG_SYSTEM_MEMORY_USED_BYTES] = machine * GIB;
    s.values[TG_SYSTEM_GROUP_LIMIT_BYTES] = limit * GIB;
    s.values[TG_SYSTEM_GROUP_USED_BYTES] = group * GIB;
    tg_test_run_samples(&run, "a", 2, 0, 100, &s);
    return run;
}

static void test_limit(void **state)
{
    (void)state;
    tg_test_run run = used(9.2, NAN, NAN);
    const tg_finding *f = tg_test_fires(&run, "MemoryNearLimit", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_WARNING);
    tg_test_run_done(&run);
    run = used(5, 3.95, 4); /* half of the machine, nearly all of the container */
    f = tg_test_fires(&run, "MemoryNearLimit", NULL);
    assert_int_equal(f->severity, TG_SEVERITY_SERIOUS);
    assert_non_null(strstr(f->title, "group"));
    tg_test_run_done(&run);
    run = used(8.9, 1, INFINITY);
    tg_test_is_quiet(&run, "MemoryNearLimit", NULL);
    run.history.hosts[0].samples[50].values[TG_SYSTEM_MEMORY_USED_BYTES] = 9.9 * GIB; /* once */
    tg_test_is_quiet(&run, "MemoryNearLimit", NULL);
    tg_test_run_done(&run);
    run = used(NAN, NAN, NAN);
    tg_test_lacks(&run, "MemoryNearLimit", "memory");
    tg_test_run_done(&run);
}

static tg_test_run swapped(double before, double after, double faults)
{
    tg_test_run run = tg_test_run_new();
    tg_test_sample_values s = tg_test_sample();
    s.values[TG_SYSTEM_SWAP_USED_BYTES] = before * GIB;
    s.values[TG_SYSTEM_MAJOR_FAULTS] = faults;
    tg_test_run_samples(&run, "a", 2, 0, 20, &s);
    s.values[TG_SYSTEM_SWAP_USED_BYTES] = after * GIB;
    tg_test_run_samples(&run, "a", 2, 0, 20, &s);
    return run;
}

static void test_swap(void **state)
{
    (void)state;
    tg_test_run run = swapped(1, 1.2, 0);
    tg_test_fires(&run, "SwapUsed", NULL);
    tg_test_run_done(&run);
    run = swapped(1, 1, 100);
    tg_test_fires(&run, "SwapUsed", NULL);
    tg_test_run_done(&run);
    run = swapped(1, 1, 5); /* old swap that nobody asks for */
    tg_test_is_quiet(&run, "SwapUsed", NULL);
    tg_test_run_done(&run);
    run = swapped(0, 0, 100); /* a program is read from its file */
    tg_test_is_quiet(&run, "SwapUsed", NULL);
    tg_test_run_done(&run);
    run = swapped(NAN, NAN, 100);
    tg_test_lacks(&run, "SwapUsed", "swap");
    tg_test_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bfloat16), cmocka_unit_test(test_bfloat16_recorded),
        cmocka_unit_test(test_batch),    cmocka_unit_test(test_sharding),
        cmocka_unit_test(test_limit),    cmocka_unit_test(test_swap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
