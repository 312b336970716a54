/* Ranks that share a window of micro-batches end with the weights of one rank that has all of it: any
 * shares, sharded or not; a gradient that is not finite on one rank is everyone's. */
#include "support/check.h"
#include "support/trial.h"

#include <math.h>

/* Where AdamW divides by the root of a tiny second moment, the rounding of a sum in another order
 * moves a weight by more than itself; over all weights the promise is 1e-5. */
static void test_equal_to_one_rank(void **state)
{
    (void)state;
    tg_trial one = {.poisoned = -1};
    tg_trial_run(1, &one);
    for (int size = 2; size <= 4; size++)
        for (int pairs = 0; pairs < 2; pairs++) {
            tg_trial whole = {
                .ranks = {2000, 16000, TG_F32, false}, .pairs = pairs, .poisoned = -1};
            tg_trial shard = {.ranks = {2000, 16000, TG_F32, true}, .pairs = pairs, .poisoned = -1};
            tg_trial_run(size, &whole);
            tg_trial_run(size, &shard);
            tg_trial_check_alike(size, &whole);
            tg_trial_check_alike(size, &shard);
            assert_memory_equal(whole.of[0].params, shard.of[0].params,
                                one.of[0].elements * sizeof(float));
            assert_memory_equal(whole.of[0].average, shard.of[0].average,
                                one.of[0].elements * sizeof(float));
            assert_true(
                tg_trial_distance(whole.of[0].params, one.of[0].params, one.of[0].elements) < 1e-5);
            for (int s = 0; s < TG_TRIAL_STEPS; s++) {
                assert_true(fabs(whole.of[0].loss[s] / one.of[0].loss[s] - 1) < 1e-5);
                assert_true(fabs(whole.of[0].norm[s] / one.of[0].norm[s] - 1) < 1e-5);
                assert_true(whole.of[0].norm[s] == shard.of[0].norm[s]);
            }
            tg_trial_done(size, &whole);
            tg_trial_done(size, &shard);
        }
    tg_trial_done(1, &one);
}

/* The last window of an epoch has fewer micro-batches than the others: it is divided by the photos that it has, also
 * where each rank has a part of them, and not by those of a whole window. */
static void test_short_window(void **state)
{
    (void)state;
    const int last = TG_TRIAL_STEPS - 1;
    tg_trial joined = {.poisoned = -1, .short_last = true, .mean_over = 6};
    tg_trial_run(1, &joined); /* the mean of these six photos from the start */
    for (int size = 1; size <= 4; size++)
        for (int zero = 0; zero < 2; zero++) {
            tg_trial t = {.ranks = {2000, 16000, TG_F32, zero}, .poisoned = -1, .short_last = true};
            tg_trial_run(size, &t);
            assert_true(fabs(t.of[0].norm[last] / joined.of[0].norm[last] - 1) < 1e-5);
            assert_true(fabs(t.of[0].loss[last] / joined.of[0].loss[last] - 1) < 1e-5);
            assert_true(tg_trial_distance(t.of[0].params, joined.of[0].params,
                                          joined.of[0].elements) < 1e-5);
            tg_trial_done(size, &t);
        }
    tg_trial_done(1, &joined);
}

/* Parameters on their way when a job ends arrive before their memory is given back. */
static void test_closed_while_gathering(void **state)
{
    (void)state;
    tg_trial settled = {.ranks = {2000, 16000, TG_F32, true}, .poisoned = -1};
    tg_trial abrupt = {.ranks = {2000, 16000, TG_F32, true}, .poisoned = -1, .abrupt = true};
    tg_trial_run(3, &settled);
    tg_trial_run(3, &abrupt);
    for (int r = 0; r < 3; r++)
        assert_memory_equal(abrupt.of[r].params, settled.of[r].params,
                            settled.of[r].elements * sizeof(float));
    tg_trial_done(3, &settled);
    tg_trial_done(3, &abrupt);
}

/* The cuts change nothing: they only say what travels when. */
static void test_bucket_sizes(void **state)
{
    (void)state;
    tg_trial large = {.ranks = {1 << 30, 1 << 30, TG_F32, true}, .poisoned = -1};
    tg_trial small = {.ranks = {64, 3000, TG_F32, true}, .poisoned = -1};
    tg_trial_run(2, &large);
    tg_trial_run(2, &small);
    assert_true(tg_trial_distance(small.of[0].params, large.of[0].params, large.of[0].elements) <
                1e-6);
    tg_trial_check_alike(2, &small);
    tg_trial_done(2, &large);
    tg_trial_done(2, &small);
}

/* bf16 on the wire: close to fp32, and ranks still hold the same bits. */
static void test_bf16_wire(void **state)
{
    (void)state;
    tg_trial exact = {.ranks = {2000, 16000, TG_F32, false}, .poisoned = -1};
    tg_trial whole = {.ranks = {2000, 16000, TG_BF16, false}, .poisoned = -1};
    tg_trial shard = {.ranks = {2000, 16000, TG_BF16, true}, .poisoned = -1};
    tg_trial_run(3, &exact);
    tg_trial_run(3, &whole);
    tg_trial_run(3, &shard);
    tg_trial_check_alike(3, &whole);
    tg_trial_check_alike(3, &shard);
    assert_memory_equal(whole.of[0].params, shard.of[0].params,
                        exact.of[0].elements * sizeof(float));
    double d = tg_trial_distance(whole.of[0].params, exact.of[0].params, exact.of[0].elements);
    assert_true(d > 0 && d < 1e-2);
    tg_trial_done(3, &exact);
    tg_trial_done(3, &whole);
    tg_trial_done(3, &shard);
}

/* Who waits for a rank that is late shows it as waiting, the late one does not. One step of several has to show
 * it: on a busy machine any rank may be late now and then. */
static void test_late_rank(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        tg_trial t = {.ranks = {2000, 16000, TG_F32, zero}, .poisoned = -1, .late = true};
        tg_trial_run(3, &t);
        for (int r = 0; r < 2; r++)
            assert_true(t.of[r].most_wait_ns > (int64_t)TG_TRIAL_LATE_NS * 8 / 10);
        assert_true(t.of[2].least_wait_ns < TG_TRIAL_LATE_NS / 2);
        tg_trial_done(3, &t);
    }
}

/* One rank's picture is not finite: all skip that step and stay alike. */
static void test_one_bad_rank(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        tg_trial t = {.ranks = {2000, 16000, TG_F32, zero}, .poisoned = 2};
        tg_trial_run(3, &t);
        tg_trial_check_alike(3, &t);
        for (int s = 0; s < TG_TRIAL_STEPS; s++)
            for (int r = 0; r < 3; r++)
                assert_int_equal(t.of[r].skipped[s], s == 2);
        for (size_t i = 0; i < t.of[0].elements; i++)
            assert_true(isfinite(t.of[0].params[i]));
        tg_trial_done(3, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_one_rank),
        cmocka_unit_test(test_short_window),
        cmocka_unit_test(test_closed_while_gathering),
        cmocka_unit_test(test_bucket_sizes),
        cmocka_unit_test(test_bf16_wire),
        cmocka_unit_test(test_late_rank),
        cmocka_unit_test(test_one_bad_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
