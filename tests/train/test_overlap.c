/* What collectives took against backward: closed forms, a picture, clocks of ranks, and timelines of real steps. */
#include "support/bench.h"
#include "support/check.h"
#include "support/ranks.h"
#include "support/timeline.h"

#include "train/step_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)

/* Two buckets that overlap, a pause, one that ends behind backward; gathered parameters do not count. */
static void shares_in_closed_form(void **state)
{
    (void)state;
    const tg_comm_record records[] = {
        {TG_COMM_ALL_GATHER, "parameters", 64, 1 * MS, 1 * MS, 90 * MS},
        {TG_COMM_ALL_REDUCE, "gradients", 64, 110 * MS, 112 * MS, 130 * MS},
        {TG_COMM_ALL_REDUCE, "gradients", 64, 120 * MS, 121 * MS, 140 * MS},
        {TG_COMM_ALL_REDUCE, "gradients", 64, 125 * MS, 126 * MS, 135 * MS},
        {TG_COMM_ALL_REDUCE, "gradients", 64, 180 * MS, 185 * MS, 215 * MS}};
    const tg_overlap_step step = {records, 5, 100 * MS, 200 * MS};
    const tg_overlap o = tg_overlap_of(&step);
    assert_int_equal(o.buckets, 4);
    assert_true(fabs(o.exchange_s - 0.058) < 1e-9); /* 112..140 and 185..215 */
    assert_true(fabs(o.hidden_s - 0.043) < 1e-9);   /* 112..140 and 185..200 */
    assert_true(fabs(o.before_end_s - 0.088) < 1e-9);
    assert_true(fabs(o.behind_s - 0.015) < 1e-9);

    const tg_overlap_step late = {records + 4, 1, 100 * MS, 180 * MS};
    assert_true(tg_overlap_of(&late).hidden_s == 0);
    assert_true(fabs(tg_overlap_of(&late).before_end_s + 0.005) < 1e-9);
    const tg_overlap_step none = {records, 1, 100 * MS, 200 * MS};
    assert_int_equal(tg_overlap_of(&none).buckets, 0);
}

static void a_picture_is_to_scale(void **state)
{
    (void)state;
    const tg_comm_record records[] = {
        {TG_COMM_ALL_REDUCE, "gradients", 1 << 20, 1016 * MS, 1032 * MS, 1048 * MS},
        {TG_COMM_ALL_REDUCE, "gradients", 1 << 20, 1032 * MS, 1048 * MS, 1064 * MS}};
    const tg_overlap_step step = {records, 2, 1000 * MS, 1048 * MS};
    tg_text text = {0};
    tg_overlap_draw(&step, &text);
    const char *all = tg_text_string(&text);
    assert_non_null(strstr(all, "48.0  |################################################\n"));
    assert_non_null(strstr(all, "48.0  |                ................################\n"));
    assert_non_null(
        strstr(all, "64.0  |                                ................################\n"));
    tg_text_done(&text);
}

static void many_buckets_fit(void **state)
{
    (void)state;
    tg_comm_record records[40];
    for (int i = 0; i < 40; i++)
        records[i] = (tg_comm_record){TG_COMM_REDUCE_SCATTER, "gradients", 64, i, i, i + 1};
    const tg_overlap_step step = {records, 40, 0, 40};
    tg_text text = {0};
    size_t lines = 0;
    tg_overlap_draw(&step, &text);
    for (const char *at = tg_text_string(&text); *at; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 2 + 16 + 1);
    assert_non_null(strstr(tg_text_string(&text), "... 24 more"));
    assert_non_null(strstr(tg_text_string(&text), "bucket 7 "));
    assert_null(strstr(tg_text_string(&text), "bucket 8 "));
    assert_non_null(strstr(tg_text_string(&text), "bucket 32 "));
    tg_text_done(&text);
}

/* Threads have one clock, which ranks of other hosts find within what they say they may be wrong by. */
static tg_status align(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world, (void)user;
    int64_t offset = -1, error = -1;
    TG_TRY(tg_step_trace_align(comm, &offset, &error));
    if (llabs(offset) > error || error > 1000 * MS || (comm->rank == 0 && error != 0))
        return tg_fail(TG_ERROR_FAILED, "offset %lld ns, error %lld", (long long)offset,
                       (long long)error);
    return TG_OK;
}

enum { RANKS = 3, STEPS = 3, WARMUP = 2 };

static void clocks_are_found(void **state)
{
    (void)state;
    tg_test_ranks_all_ok(RANKS, 30, align, NULL);
}

typedef struct trial {
    bool shard;
    char folder[512];
    tg_bench_result result[TG_TEST_RANKS];
} trial;

static tg_status run_bench(tg_comm *comm, tg_test_world *world, void *user)
{
    trial *t = user;
    (void)world;
    tg_bench_options options = tg_test_bench_options(comm, STEPS, t->shard);
    options.warmup = WARMUP;
    options.trace = t->folder;
    return tg_bench_run(&options, &t->result[comm->rank]);
}

static size_t count_of(const tg_test_timeline *t, const char *prefix, const char *category)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += strncmp(t->events[i].name, prefix, strlen(prefix)) == 0 &&
                 strcmp(t->events[i].category, category) == 0;
    return count;
}

static const tg_test_event *find(const tg_test_timeline *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->events[i].name, name) == 0)
            return &t->events[i];
    fail_msg("no '%s'", name);
    return NULL;
}

/* Exchanges, and what computes, are kernels on rows of their own; operations that belong to a block lie in one of their row
 * and number. */
static void check_operations(const tg_test_timeline *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const tg_test_event *e = &t->events[i];
        const bool exchange = strncmp(e->name, "ncclKernel:", 11) == 0;
        char block[32];
        bool held = false;
        assert_true(strcmp(e->category, "kernel") != 0 || e->row > 0);
        assert_true(exchange == (e->queued_us >= 0));
        if (isnan(e->layer))
            continue;
        snprintf(block, sizeof block, "block %d", (int)e->layer);
        for (size_t k = 0; k < t->count && !held; k++)
            held = t->events[k].row == e->row && strcmp(t->events[k].name, block) == 0 &&
                   t->events[k].begin_ns <= e->begin_ns && e->end_ns <= t->events[k].end_ns;
        assert_true(held);
    }
}

/* Of one rank: every bucket of every step, in rows of its own, and the phases inside the steps. */
static void check_rank(const trial *t, int rank)
{
    char path[600];
    const size_t buckets = t->result[rank].overlap.buckets;
    snprintf(path, sizeof path, "%s/rank-%d.json.gz", t->folder, rank);
    tg_test_timeline line = tg_test_timeline_read(path);
    assert_int_equal(line.rank, rank);
    assert_int_equal(line.ranks, RANKS);
    assert_string_equal(line.rows[0], "compute");
    assert_string_equal(line.rows[1], "operations, thread 0");
    assert_int_equal(count_of(&line, "ProfilerStep#", "user_annotation"), STEPS);
    assert_int_equal(count_of(&line, "forward", "user_annotation"), STEPS);
    assert_int_equal(count_of(&line, "backward", "user_annotation"), STEPS);
    assert_int_equal(count_of(&line, "optimizer", "user_annotation"), STEPS);
    assert_int_equal(count_of(&line, "wait for gradients", "user_annotation"), STEPS);
    assert_int_equal(count_of(&line, "meeting", "user_annotation"), STEPS);
    assert_true(buckets >= 4);
    assert_int_equal(
        count_of(&line, t->shard ? "ncclKernel:reduce_scatter gradients " : "ncclKernel:all_reduce gradients ",
                 "kernel"),
        STEPS * buckets);
    assert_int_equal(count_of(&line, "ncclKernel:all_gather parameters ", "kernel"),
                     t->shard ? STEPS * buckets : 0);
    assert_true((count_of(&line, "wait for parameters", "user_annotation") > 0) == t->shard);
    assert_true(count_of(&line, "attention_forward", "kernel") >= STEPS);
    assert_true(count_of(&line, "block ", "user_annotation") >= STEPS);
    check_operations(&line);
    /* the first bucket's gradients were final, and with them queued, while backward went on */
    const tg_test_event *first = find(&line, t->shard ? "ncclKernel:reduce_scatter gradients 0"
                                                      : "ncclKernel:all_reduce gradients 0"),
                        *backward = find(&line, "backward");
    const int64_t final_ns = first->begin_ns - llround(first->queued_us * 1e3);
    assert_true(final_ns > backward->begin_ns && final_ns < backward->end_ns);
    assert_int_equal((int)first->step, WARMUP + 1);
    tg_test_timeline_done(&line);
}

static void run_and_check(bool shard)
{
    trial t = {.shard = shard};
    snprintf(t.folder, sizeof t.folder, "%s/trace%d", tg_test_temp_dir(), shard);
    tg_test_ranks_all_ok(RANKS, 30, run_bench, &t);
    for (int r = 0; r < RANKS; r++) {
        const tg_bench_result *b = &t.result[r];
        assert_true(b->overlap.exchange_s > 0 && b->overlap.hidden_s <= b->overlap.exchange_s);
        assert_true(b->exchange_cpu_s > 0);
        assert_non_null(strstr(tg_text_string(&b->picture), "bucket 0 "));
        check_rank(&t, r);
        tg_text_done(&t.result[r].picture);
    }
}

static void timelines_of_steps(void **state)
{
    (void)state;
    run_and_check(false);
    run_and_check(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_in_closed_form), cmocka_unit_test(a_picture_is_to_scale),
        cmocka_unit_test(many_buckets_fit),      cmocka_unit_test(clocks_are_found),
        cmocka_unit_test(timelines_of_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
