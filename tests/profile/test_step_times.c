/* Times of steps: quantiles, parts, ranks, what stood out and why. */
#include "support/check.h"

#include "profile/exchange.h"
#include "profile/step_times.h"

#include <math.h>

enum { STEPS = 21 };

/* 1.00, 1.01, ... 1.20 s in some other order; step 7 takes 3 s, of which the loader 2 more than ever. */
static void make_steps(tg_step_record steps[STEPS])
{
    for (int i = 0; i < STEPS; i++) {
        const double length = 1 + 0.01 * (i * 8 % STEPS);
        steps[i] = (tg_step_record){.step = i + 1,
                                    .images = 10,
                                    .t_step = length,
                                    .t_data = 0.1,
                                    .t_backward = length - 0.1,
                                    .time = 1000 + i};
    }
    steps[6].t_data = 2.1;
    steps[6].t_step = 3;
    steps[6].t_backward = 0.9;
}

static void test_spread(void **state)
{
    tg_step_record steps[STEPS];
    const tg_history h = {.steps = steps, .step_count = STEPS, .ranks = 1};
    tg_step_times t;
    (void)state;
    make_steps(steps);
    assert_ok(tg_step_times_make(&h, &t));
    assert_int_equal(t.steps, STEPS);
    assert_true(fabs(t.step.median - 1.11) < 0.011 && t.step.least == 1 && t.step.most == 3);
    assert_true(t.step.p5 >= 1 && t.step.p5 < 1.03 && t.step.p95 > 1.17 &&
                t.step.p95 <= 1.2 + 1e-9);
    assert_true(t.parts[TG_PART_DATA].median == 0.1 && t.parts[TG_PART_TEACHER].mean == 0);
    assert_true(fabs(t.images_per_s - 10 / t.step.mean) < 1e-9);
    assert_int_equal(t.slow, 1);
    assert_int_equal(t.worst_count, 1);
    assert_int_equal(t.worst[0].step, 7);
    assert_int_equal(t.worst[0].part, TG_PART_DATA);
    assert_true(fabs(t.worst[0].beyond_s - 2) < 1e-9 && t.worst[0].time == 1006);
    assert_true(fabs(t.slow_beyond_s - (3 - t.step.median)) < 1e-9);
    assert_int_equal(t.ranks, 0);
    assert_true(isnan(t.part_ranks[0].mean));
}

static void test_many_slow(void **state)
{
    tg_step_record steps[40];
    const tg_history h = {.steps = steps, .step_count = 40, .ranks = 1};
    tg_step_times t;
    (void)state;
    for (int i = 0; i < 40; i++)
        steps[i] = (tg_step_record){.step = i + 1, .t_step = i % 4 == 3 ? 3 + i : 1, .time = NAN};
    assert_ok(tg_step_times_make(&h, &t));
    assert_int_equal(t.slow, 10);
    assert_int_equal(t.worst_count, TG_STEP_WORST);
    for (int i = 0; i < TG_STEP_WORST; i++)
        assert_int_equal(t.worst[i].step, 40 - 4 * i);
}

static void test_nothing(void **state)
{
    const tg_history h = {.ranks = 1};
    tg_step_times t;
    (void)state;
    assert_ok(tg_step_times_make(&h, &t));
    assert_int_equal(t.steps, 0);
    assert_true(isnan(t.step.median) && isnan(t.images_per_s));
    assert_int_equal(tg_exchange_of(&h).ranks, 0);
}

/* Rank 1 loads slowly, so rank 0 waits: the wait is of the exchange only as long as both wait. */
static void test_ranks(void **state)
{
    tg_rank_step alone[] = {{.t_step = 9}};
    tg_rank_step each[] = {{.t_step = 1, .t_data = 0.125, .t_reduce = 0.5},
                           {.t_step = 1, .t_data = 0.5, .t_reduce = 0.125}};
    tg_history_rank_row rows[] = {{1, alone, 1}, {2, each, 2}, {3, each, 2}};
    tg_operation operations[] = {
        {.name = "gradients", .phase = "exchange", .calls = 4, .seconds = 0.5, .bytes = 64},
        {.name = "linear_forward", .phase = "forward", .calls = 4, .seconds = 1}};
    tg_operations files[] = {{.rank = 0, .steps = 2, .seconds = 2, .each = operations, .count = 2},
                             {.rank = 1}};
    tg_step_record steps[] = {{.step = 1, .t_step = 9}, {.step = 2, .t_step = 1}, {.step = 3}};
    tg_history h = {
        .steps = steps, .step_count = 3, .rank_rows = rows, .rank_row_count = 3, .ranks = 2};
    tg_step_times t;
    (void)state;
    assert_ok(tg_step_times_make(&h, &t));
    assert_int_equal(t.ranks, 2);
    const tg_part_ranks *data = &t.part_ranks[TG_PART_DATA];
    assert_true(data->least == 0.125 && data->least_rank == 0);
    assert_true(data->most == 0.5 && data->most_rank == 1 && data->mean == 0.3125);

    tg_exchange x = tg_exchange_of(&h);
    assert_int_equal(x.ranks, 2);
    assert_int_equal(x.steps, 2);
    assert_true(x.waited_s == 0.3125 && x.exposed_s == 0.125 && x.slower_s == 0.1875);
    assert_int_equal(x.slowest_rank, 1);
    assert_true(x.slowest_s == 0.875 && x.others_s == 0.5);
    assert_true(isnan(x.hidden) && isnan(x.exchange_s));
    h.operations = files;
    h.operation_ranks = 2;
    x = tg_exchange_of(&h);
    assert_true(x.exchange_s == 0.25 && x.bytes == 32 && x.hidden == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_many_slow),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
