/* The flat gradient in buckets: cuts, reduction in any grain of readiness, gathering. */
#include "support/check.h"
#include "support/ranks.h"

#include "comm/buckets.h"

#include <math.h>
#include <stdlib.h>

/* Buckets cover the buffer once from its tail; shards are packed; sizes are as asked for. */
static void test_cuts(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 32, 160, 4096, 100000 / 16 * 16};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t bytes = 64; bytes < 70000; bytes = bytes * 5 + 4) {
            tg_buckets b;
            assert_int_equal(tg_buckets_init(&b, tg_comm_self(), sizes[i], bytes / 3, bytes),
                             TG_OK);
            size_t end = sizes[i], shard = 0;
            for (size_t k = 0; k < b.count; k++) {
                assert_int_equal(b.items[k].offset + b.items[k].count, end);
                assert_int_equal(b.items[k].offset % TG_COMM_GRAIN, 0);
                assert_true(b.items[k].count > 0);
                assert_true(b.items[k].count <= TG_COMM_GRAIN || b.items[k].count * 4 <= bytes);
                assert_int_equal(b.items[k].shard_offset, shard);
                shard += b.items[k].own_count;
                end = b.items[k].offset;
            }
            assert_int_equal(end, 0);
            assert_int_equal(shard, sizes[i]);
            assert_int_equal(b.own_elements, sizes[i]);
            tg_buckets_done(&b);
        }
}

enum { N = 5008 };

typedef struct plan {
    bool scatter;
    size_t step; /* elements that become ready at once */
} plan;

static tg_status reduce(tg_comm *comm, tg_test_world *world, void *user)
{
    (void)world;
    const plan *p = user;
    static _Thread_local float grads[N] __attribute__((aligned(64)));
    tg_buckets b;
    for (size_t i = 0; i < N; i++)
        grads[i] = (float)((comm->rank + 1) * (int)(i % 97));
    TG_TRY(tg_buckets_init(&b, comm, N, 200, 3000));
    tg_buckets_reduce(&b, grads, p->scatter, TG_F32);
    for (size_t end = N; end > 0;) {
        size_t begin = end > p->step ? end - p->step : 0;
        tg_buckets_ready(&b, begin, end - begin);
        end = begin;
    }
    TG_TRY(tg_buckets_finish(&b));
    const int sum = comm->size * (comm->size + 1) / 2;
    for (size_t k = 0; k < b.count; k++)
        for (size_t i = 0; i < b.items[k].own_count; i++) {
            size_t at = b.items[k].own_offset + i;
            if (grads[at] != (float)(sum * (int)(at % 97)))
                return tg_fail(TG_ERROR_FAILED, "element %zu: %g", at, (double)grads[at]);
        }
    if (p->scatter) {
        for (size_t k = 0; k < b.count; k++)
            for (size_t i = b.items[k].offset; i < b.items[k].offset + b.items[k].count; i++)
                if (i < b.items[k].own_offset || i >= b.items[k].own_offset + b.items[k].own_count)
                    grads[i] = NAN;
        TG_TRY(tg_buckets_gather(&b, grads));
    }
    for (size_t begin = 0; begin < N; begin += 1000) {
        size_t count = N - begin < 1000 ? N - begin : 1000;
        if (p->scatter)
            TG_TRY(tg_buckets_need(&b, begin, count));
        for (size_t i = begin; i < begin + count; i++)
            if (grads[i] != (float)(sum * (int)(i % 97)))
                return tg_fail(TG_ERROR_FAILED, "element %zu at last: %g", i, (double)grads[i]);
    }
    TG_TRY(tg_buckets_need(&b, 0, N)); /* nothing may be under way when the buffer goes */
    tg_buckets_done(&b);
    return TG_OK;
}

static void test_reduce(void **state)
{
    (void)state;
    static const size_t steps[] = {16, 48, 1600, N};
    for (int size = 1; size <= 4; size++)
        for (int scatter = 0; scatter < 2; scatter++)
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                plan p = {scatter, steps[i]};
                tg_status status[TG_TEST_RANKS];
                char text[TG_TEST_RANKS][512];
                tg_test_ranks_run(size, 30, reduce, &p, status, text);
                for (int r = 0; r < size; r++) {
                    if (status[r] != TG_OK)
                        print_error("size %d rank %d: %s\n", size, r, text[r]);
                    assert_int_equal(status[r], TG_OK);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts), cmocka_unit_test(test_reduce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
