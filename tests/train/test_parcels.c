/* Parameters on their way between ranks in no more bits than the step reads: parcels of any range, and training
 * in bf16 that ends with the same bits in shares or not. A program of its own, because oneDNN keeps to the
 * first instruction set that it is asked for. */
#include "support/buffer.h"
#include "support/check.h"
#include "support/device.h"
#include "support/trial.h"

#include <stdlib.h>
#include <string.h>

/* Odd ends, neighbours of both kinds; narrow: every other. */
static void make_table(tg_param_table *out)
{
    static const size_t counts[] = {5, 48, 16, 241, 1, 160};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char name[] = {(char)('a' + i), '\0'};
        assert_ok(tg_param_add(out, name, 1, &counts[i], 0, false));
    }
}

static bool is_padding(const tg_param_table *table, size_t at)
{
    for (size_t i = 0; i < table->count; i++)
        if (at >= table->items[i].offset && at < table->items[i].offset + table->items[i].count)
            return false;
    return true;
}

static bool is_narrow(const tg_parcels *p, size_t at)
{
    size_t i = 0;
    while (i + 1 < p->table->count && p->table->items[i + 1].offset <= at)
        i++;
    return p->narrow[i];
}

/* There and back, and nothing else is touched. */
static void check_range(const tg_parcels *p, const float *params, size_t begin, size_t end,
                        float *parcel, float *back)
{
    const size_t length = tg_parcel_length(p, begin, end), n = p->table->elements;
    size_t floats = 0;
    for (size_t i = begin; i < end; i += TG_COMM_GRAIN)
        floats += is_narrow(p, i) ? TG_COMM_GRAIN / 2 : TG_COMM_GRAIN;
    assert_int_equal(length, (floats + TG_COMM_GRAIN - 1) / TG_COMM_GRAIN * TG_COMM_GRAIN);
    for (size_t i = 0; i < n; i++)
        parcel[i] = back[i] = -7;
    tg_parcel_pack(p, params, begin, end, parcel);
    for (size_t i = length; i < n; i++)
        assert_true(parcel[i] == -7);
    tg_parcel_unpack(p, parcel, begin, end, back);
    for (size_t i = 0; i < n; i++) {
        const float want = i < begin || i >= end ? -7
                           : is_narrow(p, i)     ? tg_f32_from_bf16(tg_bf16_from_f32(params[i]))
                                                 : params[i];
        assert_true(back[i] == want);
    }
}

static void test_parcels_of_any_range(void **state)
{
    (void)state;
    tg_stream *stream = tg_test_stream();
    tg_param_table table = {0};
    tg_parcels p;
    make_table(&table);
    const size_t n = table.elements;
    assert_ok(tg_parcels_init(&p, tg_kern_select(stream), stream, &table));
    for (size_t i = 0; i < table.count; i++)
        p.narrow[i] = i % 2;
    tg_buffer params = tg_buffer_random(TG_F32, n, 1, 1), parcel = tg_buffer_new(TG_F32, n),
              back = tg_buffer_new(TG_F32, n);
    for (size_t begin = 0; begin <= n; begin += TG_COMM_GRAIN)
        for (size_t end = begin; end <= n; end += TG_COMM_GRAIN)
            check_range(&p, params.data, begin, end, parcel.data, back.data);
    float *values = params.data;
    tg_parcels_clear_padding(&p, values);
    for (size_t i = 0; i < n; i++)
        assert_true((values[i] == 0) == is_padding(&table, i));
    tg_buffer_free(&params);
    tg_buffer_free(&parcel);
    tg_buffer_free(&back);
    tg_parcels_done(&p);
    tg_param_table_done(&table);
    tg_stream_close(stream);
}

/* Of `size` ranks each has about so many weights of others, of which few are bf16 numbers by themselves. */
static void check_rounded(int size, const tg_trial *t)
{
    for (int r = 0; r < size; r++) {
        const double others = (double)t->of[r].elements * (size - 1) / size;
        assert_true((double)t->of[r].rounded > 0.8 * others);
    }
}

/* The same training on all ranks, and in shares or not, to the bit. */
static void check_same(int size, const tg_trial *whole, const tg_trial *shard)
{
    const tg_trial_outcome *a = &whole->of[0], *b = &shard->of[0];
    tg_trial_check_alike(size, whole);
    tg_trial_check_alike(size, shard);
    assert_memory_equal(a->params, b->params, a->elements * sizeof *a->params);
    assert_memory_equal(a->average, b->average, a->elements * sizeof *a->average);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
}

static void test_in_shares_or_not(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size++)
        for (int i = 0; i < 4; i++) {
            const tg_ranks_options ranks = {2000, 16000, i & 1 ? TG_BF16 : TG_F32, false};
            tg_trial whole = {
                .ranks = ranks, .dtype = TG_BF16, .poisoned = -1, .idle = i / 2, .pairs = i & 1};
            tg_trial shard = whole;
            shard.ranks.shard = true;
            tg_trial_run(size, &whole);
            tg_trial_run(size, &shard);
            check_same(size, &whole, &shard);
            check_rounded(size, &shard);
            assert_int_equal(whole.of[0].rounded, 0);
            tg_trial_done(size, &whole);
            tg_trial_done(size, &shard);
        }
}

/* One rank trains as several do, to what bf16 leaves of the difference. */
static void test_like_one_rank(void **state)
{
    (void)state;
    tg_trial one = {.dtype = TG_BF16, .poisoned = -1};
    tg_trial shard = {.ranks = {2000, 16000, TG_F32, true}, .dtype = TG_BF16, .poisoned = -1};
    tg_trial_run(1, &one);
    tg_trial_run(3, &shard);
    assert_true(tg_trial_distance(shard.of[0].params, one.of[0].params, one.of[0].elements) < 1e-2);
    tg_trial_done(1, &one);
    tg_trial_done(3, &shard);
}

/* One bucket for all; and, with small ones, a first one that a parcel would not make shorter. */
static void test_bucket_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1 << 30, 3000};
    for (size_t i = 0; i < 2; i++) {
        const tg_ranks_options ranks = {i ? 64 : sizes[i], sizes[i], TG_F32, false};
        tg_trial whole = {.ranks = ranks, .dtype = TG_BF16, .poisoned = -1};
        tg_trial shard = whole;
        shard.ranks.shard = true;
        tg_trial_run(2, &whole);
        tg_trial_run(2, &shard);
        check_same(2, &whole, &shard);
        check_rounded(2, &shard);
        tg_trial_done(2, &whole);
        tg_trial_done(2, &shard);
    }
}

/* A step that is skipped sends nothing, and the next one goes on from what is here. */
static void test_one_bad_rank(void **state)
{
    (void)state;
    const tg_ranks_options ranks = {2000, 16000, TG_F32, false};
    tg_trial whole = {.ranks = ranks, .dtype = TG_BF16, .poisoned = 2};
    tg_trial shard = whole;
    shard.ranks.shard = true;
    tg_trial_run(3, &whole);
    tg_trial_run(3, &shard);
    for (int s = 0; s < TG_TRIAL_STEPS; s++)
        assert_int_equal(shard.of[0].skipped[s], s == 2);
    assert_memory_equal(whole.of[0].params, shard.of[0].params,
                        whole.of[0].elements * sizeof(float));
    tg_trial_check_alike(3, &shard);
    check_rounded(3, &shard);
    tg_trial_done(3, &whole);
    tg_trial_done(3, &shard);
}

int main(void)
{
    const struct CMUnitTest any[] = {cmocka_unit_test(test_parcels_of_any_range)};
    const struct CMUnitTest bf16[] = {
        cmocka_unit_test(test_in_shares_or_not),
        cmocka_unit_test(test_like_one_rank),
        cmocka_unit_test(test_bucket_sizes),
        cmocka_unit_test(test_one_bad_rank),
    };
    tg_stream *stream = tg_test_stream();
    const bool has_bf16 = tg_stream_has_bf16(stream);
    tg_stream_close(stream);
    const int failed = cmocka_run_group_tests(any, NULL, NULL);
    if (has_bf16 || failed)
        return failed ? failed : cmocka_run_group_tests(bf16, NULL, NULL);
    print_message("skipped: this machine does not compute in bfloat16\n");
    return 77;
}
