/* A bench on ranks whose messages are slow gives its memory back only when nobody sends to it any more. */
#include "support/bench.h"
#include "support/check.h"
#include "support/ranks.h"

#include <string.h>

enum { RANKS = 3, STEPS = 3 };

typedef struct trial {
    bool stop; /* the last rank asks for it */
    tg_bench_result result[TG_TEST_RANKS];
} trial;

static int wants_stop(void *user)
{
    (void)user;
    return 15;
}

static tg_status run_bench(tg_comm *comm, tg_test_world *world, void *user)
{
    trial *t = user;
    tg_bench_options options = tg_test_bench_options(comm, STEPS, true);
    options.stop = t->stop && comm->rank == RANKS - 1 ? wants_stop : NULL;
    tg_test_world_delay(world, 1, 20 * 1000 * 1000);
    return tg_bench_run(&options, &t->result[comm->rank]);
}

static void run(trial *t, tg_status out_status[TG_TEST_RANKS])
{
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(RANKS, 20, run_bench, t, out_status, text);
}

static void test_slow_peer(void **state)
{
    (void)state;
    trial t = {0};
    tg_status status[TG_TEST_RANKS];
    run(&t, status);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(status[r], TG_OK);
        assert_true(t.result[r].step_s >= 0.02); /* it waited for rank 1 */
        assert_true(t.result[r].reduce_s > 0);
        tg_text_done(&t.result[r].picture);
    }
}

static void test_stopped(void **state)
{
    (void)state;
    trial t = {.stop = true};
    tg_status status[TG_TEST_RANKS];
    run(&t, status);
    for (int r = 0; r < RANKS; r++)
        assert_true(status[r] == TG_ERROR_STOPPED || status[r] == TG_ERROR_PEER);
    assert_int_equal(status[RANKS - 1], TG_ERROR_STOPPED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_peer),
        cmocka_unit_test(test_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
