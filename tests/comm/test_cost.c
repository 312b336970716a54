/* What a collective costs: bytes against what ranks really sent, messages against closed forms, memory against what
 * tg_comm_reserve takes, which is all that collectives need. */
#include "support/check.h"
#include "support/ranks.h"

#include "comm/cost.h"

#include <stdlib.h>
#include <string.h>

typedef struct plan {
    tg_comm_work work;
    bool reserve;
    size_t sent[TG_TEST_RANKS], reserved[TG_TEST_RANKS], taken[TG_TEST_RANKS];
} plan;

enum { MORE_THAN_AT_ONCE = 13 };

static tg_status exchange(tg_comm *comm, tg_test_world *world, void *user)
{
    plan *p = user;
    tg_comm_work work = p->work;
    tg_comm_ticket ticket = 0;
    tg_status status = TG_OK;
    (void)world;
    work.data = aligned_alloc(64, (work.count * sizeof(float) + 63) & ~(size_t)63);
    assert_non_null(work.data);
    memset(work.data, 0, work.count * sizeof(float));
    if (p->reserve)
        status = tg_comm_reserve(comm, work.count, work.wire);
    p->reserved[comm->rank] = tg_comm_bytes(comm);
    const uint64_t before = tg_comm_get_traffic(comm).sent_bytes;
    for (int i = 0; i < MORE_THAN_AT_ONCE && status == TG_OK; i++) {
        status = tg_comm_begin(comm, &work, &ticket);
        if (status == TG_OK)
            status = tg_comm_wait(comm, ticket);
    }
    p->sent[comm->rank] = tg_comm_get_traffic(comm).sent_bytes - before;
    p->taken[comm->rank] = tg_comm_bytes(comm);
    free(work.data);
    return status;
}

static void run_all(int size, plan *p)
{
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(size, 20, exchange, p, status, text);
    for (int r = 0; r < size; r++)
        assert_int_equal(status[r], TG_OK);
}

static void test_bytes(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 100, 70001};
    for (int size = 2; size <= 5; size++)
        for (int kind = TG_COMM_REDUCE_SCATTER; kind <= TG_COMM_ALL_REDUCE; kind++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                plan p = {.work = {.kind = (tg_comm_kind)kind,
                                   .what = "values",
                                   .count = counts[i],
                                   .wire = i % 2 ? TG_BF16 : TG_F32}};
                run_all(size, &p);
                for (int r = 0; r < size; r++)
                    assert_int_equal(p.sent[r],
                                     MORE_THAN_AT_ONCE * tg_comm_cost_bytes(&p.work, size, r));
            }
}

/* One message of at most 60 KiB after the other to each of the others. */
static void test_messages(void **state)
{
    (void)state;
    tg_comm_work work = {.kind = TG_COMM_ALL_GATHER, .count = 1 << 20, .wire = TG_BF16};
    assert_int_equal(tg_comm_cost_messages(&work, 1), 0);
    assert_int_equal(tg_comm_cost_messages(&work, 2), 35); /* 2 MiB to the other */
    assert_int_equal(tg_comm_cost_messages(&work, 8), 7 * 9);
    work.kind = TG_COMM_REDUCE_SCATTER;
    assert_int_equal(tg_comm_cost_messages(&work, 8), 7 * 5);
    work.kind = TG_COMM_ALL_REDUCE;
    assert_int_equal(tg_comm_cost_messages(&work, 8), 7 * 14);
    assert_int_equal(tg_comm_cost_messages(&work, 3), 2 * (12 + 23)); /* 349,536 elements at most */
    work.kind = TG_COMM_MEET;
    assert_int_equal(tg_comm_cost_messages(&work, 8), 7);
}

static void test_memory(void **state)
{
    (void)state;
    for (int size = 2; size <= 5; size++)
        for (int wire = 0; wire < 2; wire++) {
            plan p = {.work = {.kind = TG_COMM_ALL_REDUCE,
                               .what = "values",
                               .count = 100000,
                               .wire = wire ? TG_BF16 : TG_F32},
                      .reserve = true};
            const size_t most = tg_comm_cost_memory(size, p.work.count, p.work.wire);
            run_all(size, &p);
            for (int r = 0; r < size; r++) {
                assert_true(p.reserved[r] <= most);
                assert_true((double)p.reserved[r] >= 0.95 * (double)most);
                assert_int_equal(p.taken[r], p.reserved[r]);
            }
        }
    assert_ok(tg_comm_reserve(tg_comm_self(), 1000, TG_F32));
    assert_int_equal(tg_comm_bytes(tg_comm_self()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
