/* Memory of a rank as predicted: sharding divides the optimizer's state by the ranks, and nothing else; what
 * collectives take stays below what was said. */
#include "support/check.h"
#include "support/device.h"
#include "support/ranks.h"

#include "comm/cost.h"
#include "train/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tg_stream *stream;
static tg_vit_config student, teacher;

static int open_all(void **state)
{
    (void)state;
    stream = tg_test_stream();
    assert_ok(tg_vit_config_preset("vit_tiny_patch16_224", &student));
    assert_ok(tg_vit_config_preset("vit_small_patch16_224", &teacher));
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    tg_stream_close(stream);
    return 0;
}

/* A job of `ranks`, 32 pictures a rank. */
typedef struct setting {
    tg_loader_options loader;
    tg_memory_request request;
} setting;

static void make(setting *s, int rank, int ranks, bool shard)
{
    s->loader = (tg_loader_options){.batch_size = 32 * (size_t)ranks,
                                    .rank = rank,
                                    .ranks = ranks,
                                    .workers = 2,
                                    .train = true,
                                    .preprocess = tg_preprocess_default(224),
                                    .num_classes = student.num_classes};
    s->request = (tg_memory_request){
        .student = &student,
        .kern = tg_kern_select(stream),
        .average = true,
        .loader = &s->loader,
        .photos = 1000,
        .photo_px = 1e6,
        .exchange = {.first_bucket_bytes = 1 << 20, .bucket_bytes = 4 << 20, .shard = shard}};
}

static tg_memory predict(int rank, int ranks, bool shard)
{
    setting s;
    tg_memory m;
    make(&s, rank, ranks, shard);
    assert_ok(tg_memory_predict(&s.request, &m));
    return m;
}

/* goals: 1/N + 5 % must, 1/N + 1 % aimed at */
static void test_shares(void **state)
{
    (void)state;
    const tg_memory one = predict(0, 1, true);
    for (int N = 2; N <= 9; N++) {
        double sum = 0;
        for (int r = 0; r < N; r++) {
            const tg_memory m = predict(r, N, true);
            const double ratio = tg_memory_optimizer(&m) / tg_memory_optimizer(&one);
            assert_true(ratio <= 1.0 / N + 0.01);
            assert_true(ratio >= 1.0 / N - 0.01);
            sum += ratio;
            assert_true(m.bytes[TG_MEMORY_MOMENTS] == 2 * m.bytes[TG_MEMORY_AVERAGE]);
            assert_true(m.bytes[TG_MEMORY_PARAMETERS] == one.bytes[TG_MEMORY_PARAMETERS]);
            assert_true(m.bytes[TG_MEMORY_GRADIENTS] == one.bytes[TG_MEMORY_GRADIENTS]);
            assert_true(m.bytes[TG_MEMORY_ACTIVATIONS] == one.bytes[TG_MEMORY_ACTIVATIONS]);
            assert_true(m.bytes[TG_MEMORY_BATCHES] == one.bytes[TG_MEMORY_BATCHES]);
            assert_true(m.bytes[TG_MEMORY_EXCHANGE] > 0);
            const tg_memory whole = predict(r, N, false);
            assert_true(tg_memory_optimizer(&whole) == tg_memory_optimizer(&one));
        }
        assert_true(fabs(sum - 1) < 1e-3);
    }
    assert_true(one.bytes[TG_MEMORY_EXCHANGE] == 0);
    assert_true(one.bytes[TG_MEMORY_TEACHER] == 0);
}

/* Every element of the state has one owner, whatever the number of ranks, also more than there are grains. */
static void test_owners(void **state)
{
    (void)state;
    const tg_ranks_options options = {
        .first_bucket_bytes = 1000, .bucket_bytes = 5000, .shard = true};
    const int sizes[] = {1, 2, 3, 5, 64, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t sum = 0, own;
        for (int r = 0; r < sizes[i]; r++) {
            assert_ok(tg_memory_own_elements(&options, 16 * 777, r, sizes[i], &own));
            sum += own;
        }
        assert_int_equal(sum, 16 * 777);
    }
}

static void test_teacher(void **state)
{
    (void)state;
    setting s;
    tg_memory alone, kl, feature;
    make(&s, 0, 1, false);
    assert_ok(tg_memory_predict(&s.request, &alone));
    s.request.teacher = &teacher;
    s.loader.has_teacher = true;
    s.loader.teacher_preprocess = tg_preprocess_default(224);
    assert_ok(tg_memory_predict(&s.request, &kl));
    s.request.feature = true;
    assert_ok(tg_memory_predict(&s.request, &feature));
    /* 22.05 million weights */
    assert_true(fabs(kl.bytes[TG_MEMORY_TEACHER] / (4 * 22.05e6) - 1) < 0.01);
    assert_true(kl.bytes[TG_MEMORY_TEACHER_PREPARED] > 0);
    assert_true(kl.bytes[TG_MEMORY_ACTIVATIONS] - alone.bytes[TG_MEMORY_ACTIVATIONS] ==
                32 * 1000 * 4); /* its logits: its forward needs less than the student's tape */
    const double pictures = 3 * 32 * 3 * 224 * 224 * 4.0;
    assert_true(kl.bytes[TG_MEMORY_BATCHES] - alone.bytes[TG_MEMORY_BATCHES] == pictures);
    const double projection =
        4.0 * (double)tg_memory_projection_floats(student.embed_dim, teacher.embed_dim);
    assert_true(feature.bytes[TG_MEMORY_GRADIENTS] - kl.bytes[TG_MEMORY_GRADIENTS] == projection);
    assert_true(feature.bytes[TG_MEMORY_MOMENTS] - kl.bytes[TG_MEMORY_MOMENTS] == 2 * projection);
}

static void test_too_large(void **state)
{
    (void)state;
    setting s;
    tg_memory m;
    make(&s, 0, 1, false);
    s.loader.batch_size = (size_t)1 << 60;
    assert_int_equal(tg_memory_predict(&s.request, &m), TG_ERROR_USAGE);
}

typedef struct exchange {
    size_t count;
    tg_dtype wire;
    size_t taken[TG_TEST_RANKS];
} exchange;

/* More collectives than are under way at once, so that each place has been used. */
static tg_status reduce_and_gather(tg_comm *comm, tg_test_world *world, void *user)
{
    exchange *e = user;
    (void)world;
    float *data = aligned_alloc(64, (e->count * sizeof *data + 63) & ~(size_t)63);
    tg_comm_ticket ticket = 0;
    tg_status status = TG_OK;
    assert_non_null(data);
    memset(data, 0, e->count * sizeof *data);
    const tg_comm_work work = {TG_COMM_ALL_REDUCE, "test", data, e->count, e->wire};
    for (int i = 0; i < 13 && status == TG_OK; i++) {
        status = tg_comm_begin(comm, &work, &ticket);
        if (status == TG_OK)
            status = tg_comm_wait(comm, ticket);
    }
    e->taken[comm->rank] = tg_comm_bytes(comm);
    free(data);
    return status;
}

static void test_exchange(void **state)
{
    (void)state;
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    for (int size = 2; size <= 5; size++)
        for (int wire = 0; wire < 2; wire++) {
            exchange e = {.count = 100000, .wire = wire ? TG_BF16 : TG_F32};
            const size_t most = tg_comm_cost_memory(size, e.count, e.wire);
            tg_test_ranks_run(size, 20, reduce_and_gather, &e, status, text);
            for (int r = 0; r < size; r++) {
                assert_int_equal(status[r], TG_OK);
                assert_true(e.taken[r] <= most);
                assert_true((double)e.taken[r] >= 0.9 * (double)most);
            }
        }
}

static void test_available(void **state)
{
    (void)state;
    const double alone = tg_memory_available(1);
    assert_true(alone > 0);
    assert_true(fabs(tg_memory_available(4) / alone - 0.25) < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),   cmocka_unit_test(test_owners),
        cmocka_unit_test(test_teacher),  cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_exchange), cmocka_unit_test(test_available),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
