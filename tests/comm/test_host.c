/* Collectives among ranks that are threads: sums in the order of ranks, gathers, meetings, and every
 * way in which a rank can fail the others. */
#include "support/check.h"
#include "support/ranks.h"

#include "os/clock.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct plan {
    size_t count;
    tg_dtype wire;
    int rounds;
} plan;

static float value_of(int rank, int round, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)(rank * 40503 + round * 977);
    x ^= x >> 13;
    x *= 2246822519u;
    return (float)(int32_t)x * 1e-9f;
}

static float expected(int size, int round, size_t i, tg_dtype wire)
{
    float sum = 0;
    for (int r = 0; r < size; r++) {
        float v = value_of(r, round, i);
        if (wire == TG_BF16 && size > 1) /* one rank has no wire */
            v = tg_f32_from_bf16(tg_bf16_from_f32(v));
        sum = r == 0 ? v : sum + v;
    }
    return sum;
}

static float *new_data(const tg_comm *comm, const plan *p, int round)
{
    float *data = aligned_alloc(64, (p->count * 4 + 127) & ~(size_t)63);
    assert_non_null(data);
    for (size_t i = 0; i < p->count; i++)
        data[i] = value_of(comm->rank, round, i);
    return data;
}

static tg_status all_reduce(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    const plan *p = user;
    enum { MOST = 16 };
    float *data[MOST];
    tg_comm_ticket tickets[MOST];
    for (int k = 0; k < p->rounds; k++) {
        data[k] = new_data(comm, p, k);
        const tg_comm_work work = {TG_COMM_ALL_REDUCE, "values", data[k], p->count, p->wire};
        TG_TRY(tg_comm_begin(comm, &work, &tickets[k]));
    }
    for (int k = 0; k < p->rounds; k++) {
        TG_TRY(tg_comm_wait(comm, tickets[k]));
        for (size_t i = 0; i < p->count; i++)
            if (data[k][i] != expected(comm->size, k, i, p->wire))
                return tg_fail(TG_ERROR_FAILED, "round %d, element %zu: %g, not %g", k, i,
                               (double)data[k][i], (double)expected(comm->size, k, i, p->wire));
        free(data[k]);
    }
    return TG_OK;
}

/* Every rank gets the very sum that adding in the order of ranks gives. */
static void test_all_reduce(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 15, 16, 17, 100, 4096, 70001, 400000};
    for (int size = 1; size <= 5; size++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int wire = 0; wire < 2; wire++) {
                plan p = {counts[i], wire ? TG_BF16 : TG_F32, counts[i] > 10000 ? 2 : 12};
                tg_test_ranks_all_ok(size, 30, all_reduce, &p);
            }
}

static tg_status scatter_then_gather(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    const plan *p = user;
    float *data = new_data(comm, p, 0);
    tg_comm_work work = {TG_COMM_REDUCE_SCATTER, "values", data, p->count, p->wire};
    tg_comm_ticket ticket;
    size_t begin, end;
    TG_TRY(tg_comm_begin(comm, &work, &ticket));
    TG_TRY(tg_comm_wait(comm, ticket));
    tg_comm_piece(p->count, comm->size, comm->rank, &begin, &end);
    for (size_t i = begin; i < end; i++)
        if (data[i] != expected(comm->size, 0, i, p->wire))
            return tg_fail(TG_ERROR_FAILED, "piece of rank %d, element %zu", comm->rank, i);
    for (size_t i = 0; i < p->count; i++)
        if (i < begin || i >= end)
            data[i] = NAN;
    work.kind = TG_COMM_ALL_GATHER;
    TG_TRY(tg_comm_begin(comm, &work, &ticket));
    TG_TRY(tg_comm_wait(comm, ticket));
    for (size_t i = 0; i < p->count; i++)
        if (data[i] != expected(comm->size, 0, i, p->wire))
            return tg_fail(TG_ERROR_FAILED, "gathered on rank %d, element %zu", comm->rank, i);
    free(data);
    return TG_OK;
}

static void test_scatter_then_gather(void **state)
{
    (void)state;
    static const size_t counts[] = {3, 16, 33, 5000, 300007};
    for (int size = 1; size <= 5; size++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            plan p = {counts[i], i % 2 ? TG_BF16 : TG_F32, 1};
            tg_test_ranks_all_ok(size, 30, scatter_then_gather, &p);
        }
}

/* Pieces cover the range once, in order, at multiples of the grain; some ranks own nothing. */
static void test_pieces(void **state)
{
    (void)state;
    for (size_t count = 0; count < 200; count += 7)
        for (int size = 1; size < 9; size++) {
            size_t at = 0, begin, end;
            for (int r = 0; r < size; r++) {
                tg_comm_piece(count, size, r, &begin, &end);
                assert_int_equal(begin, at);
                assert_true(end >= begin && (begin % TG_COMM_GRAIN == 0 || begin == count));
                at = end;
            }
            assert_int_equal(at, count);
        }
}

static tg_status meet_often(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world, (void)user;
    for (int k = 0; k < 50; k++) {
        int mine[3] = {comm->rank, k, comm->rank * k}, all[TG_TEST_RANKS][3];
        TG_TRY(tg_comm_meet(comm, "numbers", mine, sizeof mine, all));
        for (int r = 0; r < comm->size; r++)
            if (all[r][0] != r || all[r][1] != k || all[r][2] != r * k)
                return tg_fail(TG_ERROR_FAILED, "meeting %d: rank %d said %d", k, r, all[r][2]);
    }
    int value = comm->rank + 5;
    TG_TRY(tg_comm_take_first(comm, "the first's", &value, sizeof value));
    if (value != 5)
        return tg_fail(TG_ERROR_FAILED, "%d is not the first rank's", value);
    return TG_OK;
}

static void test_meet(void **state)
{
    (void)state;
    for (int size = 1; size <= 6; size++)
        tg_test_ranks_all_ok(size, 30, meet_often, NULL);
}

/* That they meet once more, as to save what they have, does not make them forget it. */
static tg_status one_disagrees(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world, (void)user;
    char reason[512];
    tg_status mine = comm->rank == 2 ? tg_fail(TG_ERROR_INPUT, "photo x.jpg is broken") : TG_OK;
    tg_status status = tg_comm_agree(comm, "opening data", mine);
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    TG_TRY(tg_comm_agree(comm, "saving", TG_OK));
    (void)tg_fail(status, "%s", reason);
    return tg_comm_agreed(comm) ? status : TG_ERROR_FAILED;
}

/* One rank alone keeps its whole message and its notes. */
static void test_agree_alone(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tg_status status = tg_fail(TG_ERROR_INPUT, "%s", text);
    assert_int_equal(tg_comm_agree(tg_comm_self(), "alone", status), TG_ERROR_INPUT);
    assert_string_equal(tg_error_message(), text);
    assert_int_equal(tg_comm_agree(tg_comm_self(), "alone", TG_END), TG_END);
}

static void test_agree(void **state)
{
    (void)state;
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(4, 30, one_disagrees, NULL, status, text);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(status[r], r == 2 ? TG_ERROR_INPUT : TG_ERROR_PEER);
        assert_non_null(strstr(text[r], "photo x.jpg is broken"));
        if (r != 2)
            assert_non_null(strstr(text[r], "rank 2 on host2"));
    }
}

/* The second rank fails, too, where it is told to. */
static tg_status first_fails_for_all(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    const bool both = *(const bool *)user;
    tg_status mine = TG_OK;
    if (comm->rank == 0)
        mine = tg_fail(TG_ERROR_INPUT, "the checkpoint is damaged");
    else if (comm->rank == 1 && both)
        mine = tg_fail(TG_ERROR_MACHINE, "no memory here");
    tg_status status = tg_comm_follow(comm, "finding a checkpoint", mine);
    return tg_comm_agreed(comm) ? status : TG_ERROR_FAILED;
}

static void test_follow(void **state)
{
    (void)state;
    for (int both = 0; both <= 1; both++) {
        tg_status status[TG_TEST_RANKS];
        char text[TG_TEST_RANKS][512];
        bool second = both;
        tg_test_ranks_run(3, 30, first_fails_for_all, &second, status, text);
        for (int r = 0; r < 3; r++) {
            const bool own = both && r == 1;
            assert_int_equal(status[r], own ? TG_ERROR_MACHINE : TG_ERROR_INPUT);
            assert_string_equal(text[r], own ? "no memory here" : "the checkpoint is damaged");
        }
    }
}

/* What the faulty rank 1 does before the others wait for it. */
typedef enum fault { MUTED, LEAVES, ENDS, BREAKS, ELSEWHERE, NO_MEMORY } fault;

/* More than there are addresses; nothing is touched before that is found. */
static tg_status reduce_too_much(tg_comm *comm)
{
    float few[TG_COMM_GRAIN];
    const tg_comm_work work = {TG_COMM_ALL_REDUCE, "values", few, (size_t)1 << 50, TG_F32};
    tg_comm_ticket ticket;
    TG_TRY(tg_comm_begin(comm, &work, &ticket));
    return tg_comm_wait(comm, ticket);
}

static tg_status fail_in_reduction(tg_comm *comm, tg_test_world *world, void *user)
{
    const fault what = *(const fault *)user;
    plan p = {100000, TG_F32, 3};
    int all[TG_TEST_RANKS], mine = 0;
    TG_TRY(tg_comm_meet(comm, "before", &mine, sizeof mine, all));
    if (comm->rank == 1 && what == MUTED)
        tg_test_world_mute(world, 1);
    if (comm->rank == 1 && what == BREAKS)
        tg_test_world_break(world, 1, TG_TEST_SENDS);
    if (comm->rank == 1 && what == LEAVES) {
        tg_comm_leave(comm, "the disk of this rank is full");
        return TG_OK;
    }
    if (comm->rank == 1 && what == ENDS)
        return TG_OK;
    if (comm->rank == 1 && what == NO_MEMORY)
        return reduce_too_much(comm);
    if (what == ELSEWHERE)
        return tg_comm_meet(comm, comm->rank == 1 ? "saving" : "stepping", &mine, sizeof mine, all);
    return all_reduce(comm, world, &p);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        fault what;
        const char *others_say;
        tg_status faulty;
    } cases[] = {{MUTED, "rank 1 on host1", TG_ERROR_PEER},
                 {LEAVES, "rank 1 on host1 left: the disk of this rank is full", TG_OK},
                 {ENDS, "rank 1 on host1 has ended", TG_OK},
                 {BREAKS, "rank 1 on host1", TG_ERROR_PEER},
                 {ELSEWHERE, "rank 1 on host1 is at 'saving' (collective ", TG_ERROR_PEER},
                 {NO_MEMORY, "rank 1 on host1 left: out of memory: ", TG_ERROR_MACHINE}};
    const char *sanitizer =
        getenv("TAGINE_SANITIZE"); /* which ends a process that asks for too much */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_status status[TG_TEST_RANKS];
        char text[TG_TEST_RANKS][512];
        fault what = cases[i].what;
        if (what == NO_MEMORY && sanitizer && sanitizer[0])
            continue;
        int64_t begin = tg_clock_ns();
        tg_test_ranks_run(3, 1, fail_in_reduction, &what, status, text);
        assert_true(tg_clock_ns() - begin < 10000000000);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(status[r], r == 1 ? cases[i].faulty : TG_ERROR_PEER);
            if (r == 1)
                continue;
            if (!strstr(text[r], cases[i].others_say))
                print_error("case %zu, rank %d: %s\n", i, r, text[r]);
            assert_non_null(strstr(text[r], cases[i].others_say));
        }
    }
}

/* What rank 1 says when the transport fails it, and when. */
typedef struct breakage {
    int calls;
    bool meet;
    const char *say[4];
} breakage;

static tg_status break_transport(tg_comm *comm, tg_test_world *world, void *user)
{
    const breakage *b = user;
    plan p = {100000, TG_F32, 1};
    int all[TG_TEST_RANKS], mine = 0;
    TG_TRY(tg_comm_meet(comm, "before", &mine, sizeof mine, all));
    if (comm->rank == 1)
        tg_test_world_break(world, 1, b->calls);
    if (comm->rank == 1 && b->calls == TG_TEST_TESTS) /* finds it in what it hears from others */
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    return b->meet ? tg_comm_meet(comm, "counting", &mine, sizeof mine, all)
                   : all_reduce(comm, world, &p);
}

/* Whether the broken rank says what it has to; whom it names is the exchange's affair. */
static bool breaks_with(const breakage *b)
{
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    breakage copy = *b;
    tg_test_ranks_run(3, 1, break_transport, &copy, status, text);
    assert_int_equal(status[1], TG_ERROR_PEER);
    bool all = strstr(text[1], " on host");
    assert_true(all);
    for (int k = 0; k < 3; k++)
        all = all && strstr(text[1], b->say[k]);
    if (!all)
        print_message("%s\n", text[1]);
    return all;
}

/* An error of the library that carries messages names collective, rank, host and bytes. A sign of life may be what
 * fails first, which is a word outside of collectives: then once more. */
static void test_transport_errors(void **state)
{
    (void)state;
    static const breakage cases[] = {
        {TG_TEST_SENDS, false, {"sending to rank ", "the all-reduce of 0.38 MiB (values)", "7"}},
        {TG_TEST_RECEIVES, false, {"receiving from rank ", "(values), with ", "letter error 8"}},
        {TG_TEST_TESTS, false, {"receiving from rank ", "a word outside of", "letter error 9"}},
        {TG_TEST_SENDS, true, {"sending to rank ", "the meeting 'counting' of 256 bytes", " 7"}},
        {TG_TEST_RECEIVES, true, {"receiving from rank ", "with 256 bytes to come", "error 8"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool said = false;
        for (int tries = 0; tries < 5 && !said; tries++)
            said = breaks_with(&cases[i]);
        assert_true(said);
    }
}

/* Rank 2 dies when all that rank 0 wants of it has come, and not all that rank 1 wants: then rank 0 waits for rank 1
 * alone, which is well. */
static tg_status die_between_two(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)user;
    plan p = {3000, TG_F32, 1};
    int all[TG_TEST_RANKS], mine = 0;
    TG_TRY(tg_comm_meet(comm, "before", &mine, sizeof mine, all));
    if (comm->rank != 2)
        return all_reduce(comm, world, &p);
    tg_test_world_cut(world, 2, 1);
    const tg_comm_work work = {TG_COMM_ALL_REDUCE, "values", new_data(comm, &p, 0), p.count,
                               TG_F32};
    tg_comm_ticket ticket;
    TG_TRY(tg_comm_begin(comm, &work, &ticket));
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    tg_test_world_mute(world, 2);
    return tg_comm_wait(comm, ticket);
}

static void test_dead_for_another(void **state)
{
    (void)state;
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(3, 2, die_between_two, NULL, status, text);
    for (int r = 0; r < 2; r++) {
        const char *named = strstr(text[r], "waiting for rank 2 on host2");
        assert_int_equal(status[r], TG_ERROR_PEER);
        if (!named)
            print_error("rank %d: %s\n", r, text[r]);
        assert_non_null(named);
        assert_non_null(strstr(named, "no sign of life for"));
    }
}

/* Slower than the look between messages, faster than the stall time: nothing fails. */
static tg_status with_a_slow_rank(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)user;
    plan p = {300000, TG_F32, 4};
    tg_test_world_delay(world, comm->size - 1, 50000000);
    return all_reduce(comm, world, &p);
}

static void test_slow_rank(void **state)
{
    (void)state;
    tg_test_ranks_all_ok(3, 5, with_a_slow_rank, NULL);
}

/* Messages move while the caller computes: nobody waits until long after the last has come. */
static tg_status compute_meanwhile(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world, (void)user;
    plan p = {400000, TG_F32, 1};
    float *data = new_data(comm, &p, 0);
    const tg_comm_work work = {TG_COMM_ALL_REDUCE, "values", data, p.count, TG_F32};
    tg_comm_ticket ticket;
    TG_TRY(tg_comm_begin(comm, &work, &ticket));
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    tg_comm_traffic traffic = tg_comm_get_traffic(comm);
    size_t sent = (size_t)(comm->size - 1) * 2 * p.count / (size_t)comm->size;
    if (traffic.calls != 1 || traffic.sent_bytes < sent * 4 - 1000)
        return tg_fail(TG_ERROR_FAILED, "only %llu bytes went out while rank %d computed",
                       (unsigned long long)traffic.sent_bytes, comm->rank);
    TG_TRY(tg_comm_wait(comm, ticket));
    free(data);
    return TG_OK;
}

static void test_progress(void **state)
{
    (void)state;
    tg_test_ranks_all_ok(2, 30, compute_meanwhile, NULL);
}

/* What collectives took: queued before posted before done, posted in the order of tickets, known once waited
 * for and until hundreds more have been. */
static tg_status keep_records(tg_comm *comm, tg_test_world *world, void *user)
{
    enum { ROUNDS = 8, MORE = 1100 };
    (void)world;
    atomic_int *looked = user;
    plan p = {20000, TG_F32, 1}, whole = {ROUNDS * p.count, TG_F32, 1};
    float *data = new_data(comm, &whole, 0); /* each round's own range */
    tg_comm_work work = {TG_COMM_ALL_REDUCE, "values", data, p.count, TG_F32};
    tg_comm_ticket tickets[ROUNDS];
    tg_comm_record r, before = {0};
    while (comm->rank > 0 &&
           !atomic_load(looked)) /* so the first rank's are not done before it looks */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    const int64_t begin = tg_clock_ns();
    for (int k = 0; k < ROUNDS; k++) {
        work.data = data + (size_t)k * p.count;
        TG_TRY(tg_comm_begin(comm, &work, &tickets[k]));
    }
    const bool early = comm->rank == 0 && tg_comm_get_record(comm, tickets[0], &r);
    atomic_store(looked, 1);
    TG_TRY(tg_comm_wait(comm, tickets[ROUNDS - 1]));
    const int64_t end = tg_clock_ns();
    if (early || tg_comm_get_record(comm, 0, &r))
        return tg_fail(TG_ERROR_FAILED, "a record of what has not been");
    for (int k = 0; k < ROUNDS; k++) {
        if (!tg_comm_get_record(comm, tickets[k], &r))
            return tg_fail(TG_ERROR_FAILED, "no record of round %d", k);
        if (r.kind != work.kind || strcmp(r.what, work.what) != 0 || r.bytes != 4 * p.count)
            return tg_fail(TG_ERROR_FAILED, "round %d: %s, %zu bytes", k, r.what, r.bytes);
        if (r.queued_ns < begin || r.begun_ns < r.queued_ns || r.done_ns < r.begun_ns ||
            r.done_ns > end || r.queued_ns < before.queued_ns || r.begun_ns < before.begun_ns)
            return tg_fail(TG_ERROR_FAILED, "round %d: times out of order", k);
        before = r;
    }
    for (int k = 0; k < MORE; k++) {
        tg_comm_ticket ticket;
        TG_TRY(tg_comm_begin(comm, &(tg_comm_work){TG_COMM_ALL_REDUCE, "few", data, 16, TG_F32},
                             &ticket));
        TG_TRY(tg_comm_wait(comm, ticket));
    }
    if (tg_comm_get_record(comm, tickets[0], &r))
        return tg_fail(TG_ERROR_FAILED, "an old record is taken for one that is kept");
    if (tg_comm_get_traffic(comm).cpu_ns <= 0)
        return tg_fail(TG_ERROR_FAILED, "the thread took no time of a core");
    free(data);
    return TG_OK;
}

static void test_records(void **state)
{
    (void)state;
    atomic_int looked = 0;
    tg_comm_record r;
    tg_test_ranks_all_ok(3, 30, keep_records, &looked);
    assert_false(tg_comm_get_record(tg_comm_self(), 1, &r));
    assert_int_equal(tg_comm_get_traffic(tg_comm_self()).cpu_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_all_reduce),
        cmocka_unit_test(test_scatter_then_gather),
        cmocka_unit_test(test_meet),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_agree_alone),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_transport_errors),
        cmocka_unit_test(test_dead_for_another),
        cmocka_unit_test(test_slow_rank),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
