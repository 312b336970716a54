/* Ranks that share a window of micro-batches end with the weights of one rank that has all of it: any
 * shares, sharded or not; a gradient that is not finite on one rank is everyone's. */
#include "support/check.h"
#include "support/ranks.h"

#include "base/rng.h"
#include "infer/network.h"
#include "train/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 5, SIDE = 32, IMAGE = 3 * SIDE * SIDE, MICRO = 2, GROUP = 6, STEPS = 5 };

typedef struct outcome {
    float *params, *average;
    size_t elements;
    double loss[STEPS], norm[STEPS];
    bool skipped[STEPS];
    int64_t least_wait_ns, most_wait_ns; /* of a step */
} outcome;

enum { LATE_NS = 60 * 1000 * 1000 };

/* How ranks work, and what came of it. */
typedef struct trial {
    tg_ranks_options ranks;
    bool pairs;   /* shares of the samples: neighbours, or as mixing deals them */
    bool abrupt;  /* closed without waiting for the parameters of the last step */
    bool late;    /* the last rank comes LATE_NS after the others in every step */
    int poisoned; /* step in which rank 1 sees a picture that is not finite; -1: none */
    outcome of[TG_TEST_RANKS];
} trial;

static void draw_sample(int step, int micro, size_t sample, float *image, float *target)
{
    tg_rng rng = tg_rng_init(5, (uint64_t)(step * MICRO + micro), sample, TG_RNG_SYNTH);
    for (int i = 0; i < IMAGE; i++)
        image[i] = (float)tg_rng_uniform(&rng) * 2 - 1;
    memset(target, 0, K * sizeof *target);
    target[(sample + (size_t)step) % K] = 1;
}

typedef struct worker {
    tg_stream *stream;
    tg_network network, teacher;
    tg_optimizer optimizer;
    tg_arena arena, state;
    tg_ranks ranks;
    tg_step step;
    float *image, *target;
} worker;

static tg_status open_worker(worker *w, tg_comm *comm, const trial *t)
{
    const tg_optimizer_options adamw = {.beta1 = 0.9,
                                        .beta2 = 0.999,
                                        .eps = 1e-8,
                                        .weight_decay = 0.05,
                                        .layer_decay = 0.8,
                                        .clip_grad = 1,
                                        .ema_decay = 0.9};
    tg_network_request request = {.model = "vit_tiny_patch16_224",
                                  .shape = {.img_size = SIDE,
                                            .patch_size = 8,
                                            .embed_dim = 48,
                                            .depth = 3,
                                            .num_heads = 3,
                                            .reg_tokens = -1,
                                            .num_classes = K},
                                  .trainable = true,
                                  .dtype = TG_F32,
                                  .seed = 3};
    TG_TRY(tg_stream_open_cpu(1, TG_CPU_AVX2, &w->stream));
    const tg_kern *kern = tg_kern_select(w->stream);
    TG_TRY(tg_network_open(&request, kern, w->stream, &w->network));
    request.trainable = false;
    request.seed = 4;
    TG_TRY(tg_network_open(&request, kern, w->stream, &w->teacher));
    const size_t n = w->network.table.elements;
    size_t own = n;
    if (comm->size > 1) {
        TG_TRY(tg_ranks_open(&w->ranks, comm, &t->ranks, n));
        own = t->ranks.shard ? w->ranks.buckets.own_elements : n;
    }
    const size_t all_bytes = TG_ARENA_ROUND(n * sizeof(float));
    const size_t own_bytes = TG_ARENA_ROUND(own * sizeof(float));
    TG_TRY(tg_arena_init(&w->state, all_bytes + 3 * own_bytes, "state"));
    float *grads = tg_arena_alloc(&w->state, all_bytes), *m = tg_arena_alloc(&w->state, own_bytes);
    float *v = tg_arena_alloc(&w->state, own_bytes), *e = tg_arena_alloc(&w->state, own_bytes);
    for (size_t i = 0; i < n && own == n; i++)
        e[i] = w->network.params[i];
    for (size_t b = 0; b < w->ranks.buckets.count && own < n; b++)
        memcpy(e + w->ranks.buckets.items[b].shard_offset,
               w->network.params + w->ranks.buckets.items[b].own_offset,
               w->ranks.buckets.items[b].own_count * sizeof *e);
    TG_TRY(tg_optimizer_init(&w->optimizer, &adamw, kern, w->stream, &w->network.table,
                             w->network.params, m, v, e));
    w->step = (tg_step){.kern = kern,
                        .stream = w->stream,
                        .student = w->network.vit,
                        .teacher = w->teacher.vit,
                        .objective = {.kd = TG_KD_KL, .alpha = 0.5, .temperature = 2},
                        .optimizer = &w->optimizer,
                        .arena = &w->arena,
                        .grads = grads,
                        .num_classes = K,
                        .mean_over = GROUP * MICRO,
                        .seed = 1,
                        .ranks = comm->size > 1 ? &w->ranks : NULL};
    w->image = calloc(GROUP, IMAGE * sizeof *w->image);
    w->target = calloc(GROUP, K * sizeof *w->target);
    if (!w->image || !w->target)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    return tg_arena_init(&w->arena, tg_step_arena_bytes(&w->step, GROUP, TG_F32), "step");
}

static void close_worker(worker *w)
{
    free(w->image);
    free(w->target);
    tg_optimizer_done(&w->optimizer);
    tg_ranks_close(&w->ranks);
    tg_arena_done(&w->arena);
    tg_arena_done(&w->state);
    tg_network_close(&w->teacher);
    tg_network_close(&w->network);
    tg_stream_close(w->stream);
}

/* The owner of a sample of micro-batch `micro`: of the last one the last rank has nothing. */
static int owner_of(const trial *t, int size, int micro, size_t sample)
{
    int ranks = micro == MICRO - 1 && size > 2 ? size - 1 : size;
    size_t units = t->pairs ? GROUP / 2 : GROUP;
    size_t unit = t->pairs && sample >= GROUP / 2 ? GROUP - 1 - sample : sample;
    for (int r = 0; r < ranks; r++)
        if (unit >= units * (size_t)r / (size_t)ranks &&
            unit < units * (size_t)(r + 1) / (size_t)ranks)
            return r;
    return 0;
}

static tg_status run_window(worker *w, tg_comm *comm, const trial *t, int step, tg_step_report *out)
{
    for (int micro = 0; micro < MICRO; micro++) {
        uint64_t index[GROUP];
        size_t count = 0;
        for (size_t s = 0; s < GROUP; s++) {
            if (comm->size > 1 && owner_of(t, comm->size, micro, s) != comm->rank)
                continue;
            draw_sample(step, micro, s, w->image + count * IMAGE, w->target + count * K);
            if (step == t->poisoned && comm->rank == comm->size - 1)
                w->image[count * IMAGE] = NAN;
            index[count++] = s;
        }
        const tg_batch batch = {.count = count,
                                .image = w->image,
                                .teacher_image = w->image,
                                .target = w->target,
                                .sample_index = index};
        TG_TRY(tg_step_micro(&w->step, &batch, 0, micro == MICRO - 1));
    }
    return tg_step_update(&w->step, 1e-3, comm->rank == 1 && step == 3 ? 15 : 0, out);
}

static tg_status keep(worker *w, tg_comm *comm, const trial *t, outcome *out)
{
    const size_t n = w->network.table.elements;
    if (t->abrupt)
        tg_ranks_close(&w->ranks);
    else
        TG_TRY(tg_step_settle(&w->step));
    out->elements = n;
    out->params = calloc(n, sizeof(float));
    out->average = calloc(n, sizeof(float));
    if (!out->params || !out->average)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    memcpy(out->params, w->network.params, n * sizeof(float));
    if (t->abrupt)
        return TG_OK;
    if (comm->size == 1 || !t->ranks.shard) {
        memcpy(out->average, w->optimizer.average, n * sizeof(float));
        return TG_OK;
    }
    tg_buckets *b = &w->ranks.buckets;
    for (size_t i = 0; i < b->count; i++)
        memcpy(out->average + b->items[i].own_offset,
               w->optimizer.average + b->items[i].shard_offset,
               b->items[i].own_count * sizeof(float));
    TG_TRY(tg_buckets_gather(b, out->average));
    return tg_buckets_need(b, 0, n);
}

/* What ranks spent step `step` - 1 on came with the sums of this one; and this one's is told next. */
static tg_status check_told(worker *w, const tg_comm *comm, int step)
{
    for (int r = 0; r < comm->size && step > 0; r++)
        if (w->ranks.told_step != step || w->ranks.each[r].images != 100 * step + r)
            return tg_fail(TG_ERROR_FAILED, "step %d: told step %lld, rank %d: %lld", step,
                           (long long)w->ranks.told_step, r, (long long)w->ranks.each[r].images);
    if (step == 0 && w->ranks.told_step != 0)
        return tg_fail(TG_ERROR_FAILED, "told of a step that was not");
    w->ranks.own_step = step + 1;
    w->ranks.own.images = 100 * (step + 1) + comm->rank;
    return TG_OK;
}

/* The last step's are told when asked for, once. */
static tg_status check_told_last(worker *w, const tg_comm *comm)
{
    TG_TRY(tg_ranks_tell(&w->ranks));
    if (w->ranks.told_step != STEPS ||
        w->ranks.each[comm->size - 1].images != 100 * STEPS + comm->size - 1)
        return tg_fail(TG_ERROR_FAILED, "the last step was not told");
    TG_TRY(tg_ranks_tell(&w->ranks));
    return w->ranks.told_step == 0 ? TG_OK : tg_fail(TG_ERROR_FAILED, "told twice");
}

static tg_status work(tg_comm *comm, tg_test_world *world, void *user)
{
    trial *t = user;
    outcome *out = &t->of[comm->rank];
    worker w = {0};
    tg_status status = open_worker(&w, comm, t);
    for (int step = 0; step < STEPS && status == TG_OK; step++) {
        tg_step_report report;
        if (t->abrupt && step == STEPS - 1)
            tg_test_world_delay(world, comm->rank, LATE_NS);
        if (t->late && comm->rank == comm->size - 1)
            nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
        status = run_window(&w, comm, t, step, &report);
        if (status == TG_OK && comm->size > 1)
            status = check_told(&w, comm, step);
        if (status == TG_OK && report.images != GROUP * MICRO)
            status = tg_fail(TG_ERROR_FAILED, "%zu images in a window", report.images);
        if (status == TG_OK && comm->size > 1 && report.stop != (step == 3 ? 15 : 0))
            status = tg_fail(TG_ERROR_FAILED, "step %d: wish to stop %d", step, report.stop);
        if (status != TG_OK)
            break;
        out->loss[step] = report.loss;
        out->norm[step] = report.grad_norm;
        out->skipped[step] = report.skipped;
        const int64_t wait_ns = report.phases.reduce_ns;
        out->least_wait_ns = step && out->least_wait_ns < wait_ns ? out->least_wait_ns : wait_ns;
        out->most_wait_ns = out->most_wait_ns > wait_ns ? out->most_wait_ns : wait_ns;
    }
    if (status == TG_OK && comm->size > 1 && !t->abrupt)
        status = check_told_last(&w, comm);
    if (status == TG_OK)
        status = keep(&w, comm, t, out);
    close_worker(&w);
    return status;
}

static void run(int size, trial *t)
{
    tg_status status[TG_TEST_RANKS];
    char text[TG_TEST_RANKS][512];
    tg_test_ranks_run(size, 60, work, t, status, text);
    for (int r = 0; r < size; r++) {
        if (status[r] != TG_OK)
            print_error("rank %d: %s\n", r, text[r]);
        assert_int_equal(status[r], TG_OK);
    }
}

static void done(int size, trial *t)
{
    for (int r = 0; r < size; r++) {
        free(t->of[r].params);
        free(t->of[r].average);
    }
}

/* Every rank holds the same bits. */
static void check_alike(int size, const trial *t)
{
    for (int r = 1; r < size; r++) {
        assert_memory_equal(t->of[r].params, t->of[0].params, t->of[0].elements * sizeof(float));
        assert_memory_equal(t->of[r].average, t->of[0].average, t->of[0].elements * sizeof(float));
        assert_memory_equal(t->of[r].loss, t->of[0].loss, sizeof t->of[0].loss);
    }
}

static double distance(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(difference / size);
}

/* Where AdamW divides by the root of a tiny second moment, the rounding of a sum in another order
 * moves a weight by more than itself; over all weights the promise is 1e-5. */
static void test_equal_to_one_rank(void **state)
{
    (void)state;
    trial one = {.poisoned = -1};
    run(1, &one);
    for (int size = 2; size <= 4; size++)
        for (int pairs = 0; pairs < 2; pairs++) {
            trial whole = {.ranks = {2000, 16000, TG_F32, false}, .pairs = pairs, .poisoned = -1};
            trial shard = {.ranks = {2000, 16000, TG_F32, true}, .pairs = pairs, .poisoned = -1};
            run(size, &whole);
            run(size, &shard);
            check_alike(size, &whole);
            check_alike(size, &shard);
            assert_memory_equal(whole.of[0].params, shard.of[0].params,
                                one.of[0].elements * sizeof(float));
            assert_memory_equal(whole.of[0].average, shard.of[0].average,
                                one.of[0].elements * sizeof(float));
            assert_true(distance(whole.of[0].params, one.of[0].params, one.of[0].elements) < 1e-5);
            for (int s = 0; s < STEPS; s++) {
                assert_true(fabs(whole.of[0].loss[s] / one.of[0].loss[s] - 1) < 1e-5);
                assert_true(fabs(whole.of[0].norm[s] / one.of[0].norm[s] - 1) < 1e-5);
                assert_true(whole.of[0].norm[s] == shard.of[0].norm[s]);
            }
            done(size, &whole);
            done(size, &shard);
        }
    done(1, &one);
}

/* Parameters on their way when a job ends arrive before their memory is given back. */
static void test_closed_while_gathering(void **state)
{
    (void)state;
    trial settled = {.ranks = {2000, 16000, TG_F32, true}, .poisoned = -1};
    trial abrupt = {.ranks = {2000, 16000, TG_F32, true}, .poisoned = -1, .abrupt = true};
    run(3, &settled);
    run(3, &abrupt);
    for (int r = 0; r < 3; r++)
        assert_memory_equal(abrupt.of[r].params, settled.of[r].params,
                            settled.of[r].elements * sizeof(float));
    done(3, &settled);
    done(3, &abrupt);
}

/* The cuts change nothing: they only say what travels when. */
static void test_bucket_sizes(void **state)
{
    (void)state;
    trial large = {.ranks = {1 << 30, 1 << 30, TG_F32, true}, .poisoned = -1};
    trial small = {.ranks = {64, 3000, TG_F32, true}, .poisoned = -1};
    run(2, &large);
    run(2, &small);
    assert_true(distance(small.of[0].params, large.of[0].params, large.of[0].elements) < 1e-6);
    check_alike(2, &small);
    done(2, &large);
    done(2, &small);
}

/* bf16 on the wire: close to fp32, and ranks still hold the same bits. */
static void test_bf16_wire(void **state)
{
    (void)state;
    trial exact = {.ranks = {2000, 16000, TG_F32, false}, .poisoned = -1};
    trial whole = {.ranks = {2000, 16000, TG_BF16, false}, .poisoned = -1};
    trial shard = {.ranks = {2000, 16000, TG_BF16, true}, .poisoned = -1};
    run(3, &exact);
    run(3, &whole);
    run(3, &shard);
    check_alike(3, &whole);
    check_alike(3, &shard);
    assert_memory_equal(whole.of[0].params, shard.of[0].params,
                        exact.of[0].elements * sizeof(float));
    double d = distance(whole.of[0].params, exact.of[0].params, exact.of[0].elements);
    assert_true(d > 0 && d < 1e-2);
    done(3, &exact);
    done(3, &whole);
    done(3, &shard);
}

/* Who waits for a rank that is late shows it as waiting, the late one does not. One step of several has to show
 * it: on a busy machine any rank may be late now and then. */
static void test_late_rank(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        trial t = {.ranks = {2000, 16000, TG_F32, zero}, .poisoned = -1, .late = true};
        run(3, &t);
        for (int r = 0; r < 2; r++)
            assert_true(t.of[r].most_wait_ns > (int64_t)LATE_NS * 8 / 10);
        assert_true(t.of[2].least_wait_ns < LATE_NS / 2);
        done(3, &t);
    }
}

/* One rank's picture is not finite: all skip that step and stay alike. */
static void test_one_bad_rank(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        trial t = {.ranks = {2000, 16000, TG_F32, zero}, .poisoned = 2};
        run(3, &t);
        check_alike(3, &t);
        for (int s = 0; s < STEPS; s++)
            for (int r = 0; r < 3; r++)
                assert_int_equal(t.of[r].skipped[s], s == 2);
        for (size_t i = 0; i < t.of[0].elements; i++)
            assert_true(isfinite(t.of[0].params[i]));
        done(3, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_one_rank), cmocka_unit_test(test_closed_while_gathering),
        cmocka_unit_test(test_bucket_sizes),      cmocka_unit_test(test_bf16_wire),
        cmocka_unit_test(test_late_rank),         cmocka_unit_test(test_one_bad_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
