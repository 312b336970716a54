/* Operations of several ranks in one table: what makes a row, sums, rates, shares, and what is left. */
#include "support/check.h"

#include "profile/operation_table.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static tg_operation first[] = {
    {.name = "linear_forward",
     .phase = "forward",
     .dtype = "bfloat16",
     .shape = {8, 16, 32},
     .calls = 10,
     .seconds = 1,
     .flops = 1e9},
    {.name = "linear_forward",
     .phase = "forward",
     .dtype = "bfloat16",
     .shape = {8, 16, 64},
     .calls = 20,
     .seconds = 2,
     .flops = 4e9},
    {.name = "linear_forward",
     .phase = "teacher",
     .dtype = "bfloat16",
     .shape = {8, 16, 32},
     .calls = 10,
     .seconds = 0.5,
     .flops = 1e9},
    {.name = "norm_forward", .phase = "forward", .calls = 10, .seconds = 0.25, .bytes = 1e9},
    {.name = "decode", .phase = "loader", .calls = 80, .seconds = 9},
};
static tg_operation second[] = {
    {.name = "linear_forward",
     .phase = "forward",
     .dtype = "bfloat16",
     .shape = {8, 16, 32},
     .calls = 5,
     .seconds = 1.5,
     .flops = 1e9},
    {.name = "linear_forward",
     .phase = "forward",
     .dtype = "float32",
     .shape = {8, 16, 32},
     .calls = 5,
     .seconds = 0.5,
     .flops = 1e9},
};
/* The second rank has half as many steps. */
static tg_operations files[] = {
    {.rank = 0,
     .first_step = 1,
     .last_step = 10,
     .steps = 10,
     .seconds = 5,
     .recording_s = 0.05,
     .peak_flops_bf16 = 4e9,
     .peak_flops_f32 = NAN,
     .each = first,
     .count = COUNT(first)},
    {.rank = 3,
     .first_step = 6,
     .last_step = 10,
     .steps = 5,
     .seconds = 5,
     .recording_s = 0.05,
     .peak_flops_bf16 = 4e9,
     .peak_flops_f32 = NAN,
     .each = second,
     .count = COUNT(second)},
    {.rank = 7},
};
static const tg_history history = {.operations = files, .operation_ranks = COUNT(files)};

static const tg_operation_row *find(const tg_operation_table *t, const char *name,
                                    const char *phase, const char *dtype)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].key.name, name) == 0 && strcmp(t->rows[i].key.phase, phase) == 0 &&
            strcmp(t->rows[i].key.dtype, dtype) == 0)
            return &t->rows[i];
    fail_msg("no row %s, %s, %s", name, phase, dtype);
    return NULL;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("%.12g, not %.12g", got, want);
}

static void test_by_operation(void **state)
{
    tg_operation_table t;
    double sum = 0;
    (void)state;
    assert_ok(tg_operation_table_make(&history, TG_BY_OPERATION, &t));
    assert_int_equal(t.ranks, 2);
    assert_int_equal(t.steps, 10);
    assert_true(t.first_step == 1 && t.last_step == 10);
    assert_near(t.step_s, 0.75);
    assert_near(t.recording_share, 0.01);
    assert_int_equal(t.count, 5);
    for (size_t i = 0; i < t.count; i++) {
        assert_true(i == 0 || t.rows[i - 1].step_s >= t.rows[i].step_s);
        sum += t.rows[i].in_steps ? t.rows[i].step_s : 0;
    }
    assert_near(sum + t.rest_s, t.step_s);

    const tg_operation_row *linear = find(&t, "linear_forward", "forward", "bfloat16");
    assert_int_equal(linear->shapes, 2);
    assert_int_equal(linear->key.shape[0], 0);
    assert_near(linear->step_s, 0.3);
    assert_near(linear->calls, 2);
    assert_near(linear->share, 0.4);
    assert_near(linear->flops_per_s, 6e9 / 4.5);
    assert_near(linear->peak_share, 6e9 / 4.5 / 4e9);
    assert_near(linear->least_s, 0.3);
    assert_near(linear->most_s, 0.3);
    const tg_operation_row *single = find(&t, "linear_forward", "forward", "float32");
    assert_true(isnan(single->peak_share) && !isnan(single->flops_per_s));
    assert_near(single->least_s, 0);
    assert_int_equal(single->least_rank, 0);
    assert_int_equal(single->most_rank, 3);
    const tg_operation_row *norm = find(&t, "norm_forward", "forward", "");
    assert_true(isnan(norm->flops_per_s) && norm->bytes_per_s == 4e9);
    assert_false(find(&t, "decode", "loader", "")->in_steps);
    (void)find(&t, "linear_forward", "teacher", "bfloat16");
    tg_operation_table_done(&t);
}

static void test_by_shape_and_phase(void **state)
{
    tg_operation_table t;
    (void)state;
    assert_ok(tg_operation_table_make(&history, TG_BY_SHAPE, &t));
    assert_int_equal(t.count, 6);
    tg_operation_table_done(&t);
    assert_ok(tg_operation_table_make(&history, TG_BY_PHASE, &t));
    assert_int_equal(t.count, 3);
    const tg_operation_row *forward = NULL;
    for (size_t i = 0; i < t.count; i++)
        if (strcmp(t.rows[i].key.phase, "forward") == 0)
            forward = &t.rows[i];
    assert_non_null(forward);
    assert_string_equal(forward->key.name, "");
    assert_string_equal(forward->key.dtype, "");
    assert_near(forward->step_s, (0.325 + 0.4) / 2);
    assert_near(forward->calls, (4 + 2) / 2.0);
    assert_true(isnan(forward->peak_share)); /* one of its types has no peak */
    tg_operation_table_done(&t);
}

static void test_nothing(void **state)
{
    const tg_history none = {.ranks = 1};
    tg_operation_table t;
    (void)state;
    assert_ok(tg_operation_table_make(&none, TG_BY_OPERATION, &t));
    assert_int_equal(t.ranks + t.count, 0);
    tg_operation_table_done(&t);
    const tg_history empty = {.operations = &files[2], .operation_ranks = 1};
    assert_ok(tg_operation_table_make(&empty, TG_BY_PHASE, &t));
    assert_int_equal(t.ranks + t.count, 0);
    tg_operation_table_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_operation),
        cmocka_unit_test(test_by_shape_and_phase),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
