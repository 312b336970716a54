#include "support/trial.h"

#include "support/check.h"
#include "support/device.h"

#include "base/rng.h"
#include "infer/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { K = 5, SIDE = 32, IMAGE = 3 * SIDE * SIDE, MICRO = 2, GROUP = 6 };

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

static tg_status open_worker(worker *w, tg_comm *comm, const tg_trial *t)
{
    const tg_optimizer_options adamw = {.beta1 = 0.9,
                                        .beta2 = 0.999,
                                        .eps = 1e-8,
                                        .weight_decay = 0.05,
                                        .layer_decay = 0.8,
                                        .clip_grad = 1,
                                        .ema_decay = 0.9};
    tg_network_request request = {
        .model = "vit_tiny_patch16_224",
        .shape = {.img_size = SIDE,
                  .patch_size = 8,
                  .embed_dim = 40, /* no multiple of the placing: there is padding */
                  .depth = 3,
                  .num_heads = 5,
                  .reg_tokens = -1,
                  .num_classes = K},
        .trainable = true,
        .dtype = t->dtype,
        .seed = 3};
    const tg_cpu_level level = t->dtype == TG_BF16 ? tg_test_cpu_cap() : TG_CPU_AVX2;
    TG_TRY(tg_stream_open_cpu(1, level, &w->stream));
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
    if (comm->size > 1 && t->ranks.shard)
        tg_ranks_pack(&w->ranks, w->stream, w->network.params, e);
    else
        memcpy(e, w->network.params, n * sizeof *e);
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
                        .mean_over = t->mean_over ? t->mean_over : GROUP * MICRO,
                        .seed = 1,
                        .ranks = comm->size > 1 ? &w->ranks : NULL};
    TG_TRY(tg_step_narrow(&w->step, &w->network.table));
    w->image = calloc(GROUP, IMAGE * sizeof *w->image);
    w->target = calloc(GROUP, K * sizeof *w->target);
    if (!w->image || !w->target)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    return tg_arena_init(&w->arena, tg_step_arena_bytes(&w->step, GROUP, t->dtype), "step");
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
static int owner_of(const tg_trial *t, int size, int micro, size_t sample)
{
    int ranks = t->idle || (micro == MICRO - 1 && size > 2) ? size - 1 : size;
    size_t units = t->pairs ? GROUP / 2 : GROUP;
    size_t unit = t->pairs && sample >= GROUP / 2 ? GROUP - 1 - sample : sample;
    for (int r = 0; r < ranks; r++)
        if (unit >= units * (size_t)r / (size_t)ranks &&
            unit < units * (size_t)(r + 1) / (size_t)ranks)
            return r;
    return 0;
}

static int micros_of(const tg_trial *t, int step)
{
    return t->short_last && step == TG_TRIAL_STEPS - 1 ? 1 : MICRO;
}

static tg_status run_window(worker *w, tg_comm *comm, const tg_trial *t, int step,
                            tg_step_report *out)
{
    const int micros = micros_of(t, step);
    for (int micro = 0; micro < micros; micro++) {
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
        TG_TRY(tg_step_micro(&w->step, &batch, 0, micro == micros - 1));
    }
    return tg_step_update(&w->step, 1e-3, comm->rank == 1 && step == 3 ? 15 : 0, out);
}

/* The parameters as their owners have them, and whether those here were what is to be had of them. */
static tg_status complete(worker *w, tg_trial_outcome *out)
{
    const tg_param_table *table = &w->network.table;
    TG_TRY(tg_ranks_complete(&w->ranks, w->network.params));
    for (size_t i = 0; i < table->count; i++) {
        const tg_param *p = &table->items[i];
        const float *exact = w->network.params + p->offset, *here = out->params + p->offset;
        for (size_t k = 0; k < p->count; k++) {
            if (here[k] == exact[k])
                continue;
            if (!tg_vit_reads_bf16(w->network.vit, p->offset) ||
                here[k] != tg_f32_from_bf16(tg_bf16_from_f32(exact[k])))
                return tg_fail(TG_ERROR_FAILED, "%s, element %zu: %a, of %a", p->name, k,
                               (double)here[k], (double)exact[k]);
            out->rounded++;
        }
    }
    memcpy(out->params, w->network.params, table->elements * sizeof *out->params);
    return TG_OK;
}

static tg_status keep(worker *w, tg_comm *comm, const tg_trial *t, tg_trial_outcome *out)
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
    if (comm->size > 1)
        TG_TRY(complete(w, out));
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
    if (w->ranks.told_step != TG_TRIAL_STEPS ||
        w->ranks.each[comm->size - 1].images != 100 * TG_TRIAL_STEPS + comm->size - 1)
        return tg_fail(TG_ERROR_FAILED, "the last step was not told");
    TG_TRY(tg_ranks_tell(&w->ranks));
    return w->ranks.told_step == 0 ? TG_OK : tg_fail(TG_ERROR_FAILED, "told twice");
}

static tg_status work(tg_comm *comm, tg_test_world *world, void *user)
{
    tg_trial *t = user;
    tg_trial_outcome *out = &t->of[comm->rank];
    worker w = {0};
    tg_status status = open_worker(&w, comm, t);
    for (int step = 0; step < TG_TRIAL_STEPS && status == TG_OK; step++) {
        tg_step_report report;
        if (t->abrupt && step == TG_TRIAL_STEPS - 1)
            tg_test_world_delay(world, comm->rank, TG_TRIAL_LATE_NS);
        if (t->late && comm->rank == comm->size - 1)
            nanosleep(&(struct timespec){.tv_nsec = TG_TRIAL_LATE_NS}, NULL);
        status = run_window(&w, comm, t, step, &report);
        if (status == TG_OK && comm->size > 1)
            status = check_told(&w, comm, step);
        if (status == TG_OK && report.images != (size_t)(GROUP * micros_of(t, step)))
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

void tg_trial_run(int size, tg_trial *t)
{
    tg_test_ranks_all_ok(size, 60, work, t);
}

void tg_trial_done(int size, tg_trial *t)
{
    for (int r = 0; r < size; r++) {
        free(t->of[r].params);
        free(t->of[r].average);
    }
}

void tg_trial_check_alike(int size, const tg_trial *t)
{
    for (int r = 1; r < size; r++) {
        assert_memory_equal(t->of[r].params, t->of[0].params, t->of[0].elements * sizeof(float));
        assert_memory_equal(t->of[r].average, t->of[0].average, t->of[0].elements * sizeof(float));
        assert_memory_equal(t->of[r].loss, t->of[0].loss, sizeof t->of[0].loss);
    }
}

double tg_trial_distance(const float *a, const float *b, size_t n)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(difference / size);
}
