/* The search for the fastest setting, on machines that are made up: what fits, what is tried, ties, time, stops.
 * Then the bed: trials of a tiny network, whose memory is predicted. */
#include "support/check.h"

#include "train/tune_bed.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0

/* A machine: rates are a curve over the batch, times factors; time passes as steps take it. */
typedef struct machine {
    double base_bytes, image_bytes; /* of the prediction */
    double refuses_from;            /* bytes that memory really gives; 0: all */
    double rate;                    /* of an endless batch */
    double half;                    /* the batch that has half of it */
    double noise;                   /* a trial is up to so much faster */
    double now, set_up;
    int ranks;
    double worker_rate; /* photos/s that a worker gives; 0: no loader */
    int cores;
    size_t trials, stop_at;
    int64_t largest_tried;
} machine;

static double rate_of(const machine *m, const tg_tune_setting *s)
{
    const double B = (double)s->batch_size;
    double rate = m->rate * B / (B + m->half);
    if (s->threads < m->cores)
        rate *= (double)s->threads / m->cores;
    if (m->worker_rate > 0) {
        rate *= 1 - 0.02 * s->workers;
        rate = fmin(rate, m->worker_rate * s->workers);
    }
    if (m->ranks > 1)
        rate *= m->ranks / (1 + fabs(log2(s->bucket_mib / 16)) / 20);
    return rate;
}

static tg_status predict(void *user, const tg_tune_setting *s, double *out_bytes)
{
    const machine *m = user;
    *out_bytes = m->base_bytes + m->image_bytes * (double)s->batch_size;
    return TG_OK;
}

static tg_status measure(void *user, const tg_tune_setting *s, double seconds, tg_tune_trial *out)
{
    machine *m = user;
    m->trials++;
    if (m->stop_at && m->trials >= m->stop_at)
        return tg_fail(TG_ERROR_STOPPED, "stopped");
    *out = (tg_tune_trial){.setting = *s, .fits = true};
    (void)!predict(m, s, &out->predicted_bytes);
    if (m->refuses_from > 0 && out->predicted_bytes > m->refuses_from) {
        out->fits = false;
        return TG_OK;
    }
    if (s->batch_size > m->largest_tried)
        m->largest_tried = s->batch_size;
    out->images_per_s =
        rate_of(m, s) * (1 + m->noise * (double)(m->trials * 2654435761U % 1000) / 1000);
    out->step_s = (double)s->batch_size * m->ranks / out->images_per_s;
    out->steps = (int64_t)fmax(1, ceil(seconds / out->step_s));
    out->seconds = (double)out->steps * out->step_s;
    out->rss_bytes = out->predicted_bytes;
    m->now += m->set_up + (seconds < 0 ? 0 : out->step_s) + out->seconds;
    return TG_OK;
}

static double elapsed(void *user)
{
    return ((const machine *)user)->now;
}

static tg_tune_ops ops_of(machine *m)
{
    return (tg_tune_ops){.user = m, .predict = predict, .measure = measure, .elapsed = elapsed};
}

static machine fast_machine(void)
{
    return (machine){.base_bytes = 100 * MIB,
                     .image_bytes = 10 * MIB,
                     .rate = 1000,
                     .half = 16,
                     .set_up = 0.1,
                     .ranks = 1,
                     .cores = 8};
}

static tg_tune_plan plan_of(const machine *m)
{
    return (tg_tune_plan){.given = {.batch_size = 128, .threads = 8, .workers = 2, .bucket_mib = 4},
                          .find = {[TG_TUNE_BATCH] = true, [TG_TUNE_THREADS] = true},
                          .most_batch_size = 1 << 20,
                          .cores = m->cores,
                          .ranks = m->ranks,
                          .limit_bytes = 2100 * MIB,
                          .seconds_per_trial = 1,
                          .max_seconds = 1e6};
}

static const tg_tune_setting *best_of(const tg_tune_result *r)
{
    assert_true(r->best < r->row_count);
    return &r->rows[r->best].setting;
}

static bool was_tried(const tg_tune_result *r, int64_t batch)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (r->rows[i].setting.batch_size == batch)
            return true;
    return false;
}

static void test_largest(void **state)
{
    (void)state;
    machine m = fast_machine();
    const tg_tune_ops ops = ops_of(&m);
    const tg_tune_setting s = {.threads = 1};
    const struct {
        double limit_mib;
        int64_t most, want;
    } cases[] = {
        {99, 1000, 0},     {109, 1000, 0},    {110, 1000, 1},  {249, 1000, 14},
        {250, 1000, 15},   {269, 1000, 16},   {340, 1000, 24}, {339, 1000, 16},
        {1e9, 1000, 1000}, {1e9, 1003, 1000}, {1e9, 7, 7},     {2100, 1 << 20, 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t got = -1;
        assert_ok(tg_tune_largest(&ops, &s, cases[i].most, cases[i].limit_mib * MIB, &got));
        assert_int_equal(got, cases[i].want);
    }
    assert_int_equal(m.trials, 0); /* nothing is run for it */
}

/* A curve that rises: the largest wins, it has been tried, and powers of two and the given batch before it. */
static void test_rising(void **state)
{
    (void)state;
    machine m = fast_machine();
    m.half = 100;
    const tg_tune_ops ops = ops_of(&m);
    const tg_tune_plan plan = plan_of(&m);
    tg_tune_result r;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_int_equal(r.largest_batch_size, 200);
    assert_true(r.largest_bytes == 2100 * MIB);
    assert_true(r.largest < r.row_count);
    assert_int_equal(best_of(&r)->batch_size, 200);
    assert_int_equal(best_of(&r)->threads, 8);
    for (int64_t b = 4; b <= 128; b *= 2)
        assert_true(was_tried(&r, b));
    assert_int_equal(r.rows[r.given].setting.batch_size, 128);
    assert_int_equal(r.rows[r.best].trials, TG_TUNE_REPEATS);
    assert_int_equal(r.rows[r.given].trials, TG_TUNE_REPEATS);
    assert_int_equal(m.largest_tried, 200);
    assert_true(r.given_fits && !r.short_of_time && !r.stopped);
}

/* A flat curve: what differs less than its spread is a tie, and the smaller batch wins it. */
static void test_tie(void **state)
{
    (void)state;
    machine m = fast_machine();
    m.half = 0;
    m.noise = 0.04;
    const tg_tune_ops ops = ops_of(&m);
    tg_tune_plan plan = plan_of(&m);
    plan.find[TG_TUNE_THREADS] = false;
    tg_tune_result r;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    const tg_tune_verdict *v = &r.verdicts[TG_TUNE_BATCH];
    assert_true(v->decided);
    for (size_t i = 0; i < r.row_count; i++) /* none that was repeated is smaller and as fast */
        if (r.rows[i].trials == TG_TUNE_REPEATS && i != r.best)
            assert_true(r.rows[i].setting.batch_size > best_of(&r)->batch_size ||
                        r.rows[i].images_per_s <
                            r.rows[v->fastest].images_per_s -
                                fmax(r.rows[i].noise, r.rows[v->fastest].noise));
    assert_true(best_of(&r)->batch_size < 200);

    m = fast_machine(); /* without noise 3 % are no tie */
    m.half = 0.5;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_true(best_of(&r)->batch_size >= 32);
    assert_true(best_of(&r)->batch_size < 200); /* within the least noise, 1 % */
    assert_true(r.verdicts[TG_TUNE_BATCH].chosen != r.verdicts[TG_TUNE_BATCH].fastest);
}

/* Memory that refuses what was predicted to fit: a smaller largest batch, and no failure. */
static void test_refused(void **state)
{
    (void)state;
    machine m = fast_machine();
    m.half = 100;
    m.refuses_from = 1800 * MIB;
    const tg_tune_ops ops = ops_of(&m);
    const tg_tune_plan plan = plan_of(&m);
    tg_tune_result r;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_true(r.largest_batch_size <= 170 && r.largest_batch_size >= 128);
    assert_true(r.largest < r.row_count && r.rows[r.largest].fits);
    assert_true(was_tried(&r, 200));
    assert_int_equal(best_of(&r)->batch_size, r.largest_batch_size);
}

static void test_too_large(void **state)
{
    (void)state;
    machine m = fast_machine();
    const tg_tune_ops ops = ops_of(&m);
    tg_tune_plan plan = plan_of(&m);
    tg_tune_result r;
    plan.limit_bytes = 105 * MIB;
    assert_error(tg_tune_search(&plan, &ops, &r), TG_ERROR_MACHINE,
                 "needs 110 MiB already, and 105 MiB may be used");
    plan.limit_bytes = 500 * MIB;
    plan.find[TG_TUNE_BATCH] = false; /* 128 is to stay */
    assert_error(tg_tune_search(&plan, &ops, &r), TG_ERROR_MACHINE, "the largest that fits is 40");
    assert_int_equal(m.trials, 0);

    plan.find[TG_TUNE_BATCH] = true; /* the given batch does not fit, smaller ones do */
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_false(r.given_fits);
    assert_true(r.given == TG_TUNE_NO_ROW);
    assert_int_equal(best_of(&r)->batch_size, 40);
}

/* Time: it is never exceeded by more than the first trial, and what was left out is said. */
static void test_time(void **state)
{
    (void)state;
    for (double most = 1; most < 300; most *= 1.7) {
        machine m = fast_machine();
        m.rate = 20;
        m.half = 4;
        const tg_tune_ops ops = ops_of(&m);
        tg_tune_plan plan = plan_of(&m);
        tg_tune_result r;
        plan.max_seconds = most;
        assert_ok(tg_tune_search(&plan, &ops, &r));
        assert_true(r.best != TG_TUNE_NO_ROW);
        assert_true(m.now <= fmax(most * 1.1, 3)); /* steps of a trial are whole */
        assert_true(r.short_of_time || most > 100);
        if (most < 10)
            assert_true(r.largest == TG_TUNE_NO_ROW); /* 200 pictures take 10 s a step */
        else if (most > 40) /* one step of it is done, whatever it is worth */
            assert_true(r.largest != TG_TUNE_NO_ROW && r.rows[r.largest].fits);
    }
}

/* A stop ends it with what is known. */
static void test_stop(void **state)
{
    (void)state;
    for (size_t stop_at = 1; stop_at < 20; stop_at++) {
        machine m = fast_machine();
        m.stop_at = stop_at;
        const tg_tune_ops ops = ops_of(&m);
        const tg_tune_plan plan = plan_of(&m);
        tg_tune_result r;
        assert_error(tg_tune_search(&plan, &ops, &r), TG_ERROR_STOPPED, "stopped");
        assert_true(r.stopped);
        assert_int_equal(m.trials, stop_at);
        assert_true((r.best == TG_TUNE_NO_ROW) == (stop_at == 1));
        for (size_t i = 0; i < r.row_count; i++)
            if (stop_at < 6) /* before anything is repeated the fastest is best */
                assert_true(r.rows[i].images_per_s <= r.rows[r.best].images_per_s);
    }
}

/* Workers: as few as keep up; threads and buckets: where the machine has its optimum. */
static void test_all(void **state)
{
    (void)state;
    machine m = fast_machine();
    m.worker_rate = 250;
    m.half = 32;
    m.ranks = 2;
    const tg_tune_ops ops = ops_of(&m);
    tg_tune_plan plan = plan_of(&m);
    tg_tune_result r;
    plan.find[TG_TUNE_WORKERS] = plan.find[TG_TUNE_BUCKET] = true;
    plan.given.threads = 4;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_int_equal(best_of(&r)->threads, 8);
    assert_true(best_of(&r)->bucket_mib == 16);
    const tg_tune_setting optimum = {
        .batch_size = 200, .threads = 8, .workers = 4, .bucket_mib = 16};
    assert_true(best_of(&r)->workers >= 3);    /* 2 cannot feed 8 threads */
    assert_true(best_of(&r)->batch_size > 64); /* with 2 workers all from 48 on were alike */
    assert_true(r.rows[r.best].images_per_s > 0.9 * rate_of(&m, &optimum));
    for (int stage = 0; stage < TG_TUNE_COMPARE; stage++)
        assert_true(r.verdicts[stage].decided);
    assert_true(r.rows[r.best].images_per_s > r.rows[r.given].images_per_s);

    plan.find[TG_TUNE_BATCH] = false; /* what is not asked for stays */
    plan.find[TG_TUNE_BUCKET] = false;
    assert_ok(tg_tune_search(&plan, &ops, &r));
    assert_int_equal(best_of(&r)->batch_size, 128);
    assert_true(best_of(&r)->bucket_mib == 4);
}

static int never(void *user)
{
    (void)user;
    return 0;
}

static int now(void *user)
{
    (void)user;
    return 15;
}

static tg_train_options tiny_options(void)
{
    tg_train_options o = tg_train_options_default();
    o.model.img_size = 32;
    o.model.patch_size = 8;
    o.model.embed_dim = 64;
    o.model.depth = 2;
    o.model.num_heads = 2;
    o.model.num_classes = 5;
    o.recipe.model_ema = true;
    o.recipe.grad_accum_steps = 2;
    o.ranks = (tg_ranks_options){.first_bucket_bytes = 1 << 20, .bucket_bytes = 4 << 20};
    return o;
}

/* Trials of the real thing, with other threads each time: counts that fit each other, memory near its prediction. */
static void test_bed(void **state)
{
    (void)state;
    const tg_train_options options = tiny_options();
    tg_tune_bed *bed;
    double available;
    assert_ok(tg_tune_bed_open(&options, never, NULL, &bed));
    tg_tune_ops ops = tg_tune_bed_ops(bed);
    assert_int_equal(tg_tune_bed_photos(bed), 0);
    assert_int_equal(tg_tune_bed_given(bed).batch_size, 128);
    assert_ok(tg_tune_bed_available(bed, &available));
    assert_true(available > 10 * MIB);
    for (int threads = 1; threads <= 3; threads++) {
        const tg_tune_setting s = {
            .batch_size = 8 * threads, .threads = threads, .workers = 1, .bucket_mib = 4};
        tg_tune_trial t = {0};
        double bytes;
        assert_ok(ops.predict(ops.user, &s, &bytes));
        assert_ok(ops.measure(ops.user, &s, 0, &t));
        assert_true(t.fits && t.steps == 1);
        assert_int_equal(t.images, 2 * s.batch_size); /* a window of two */
        assert_true(fabs(t.images_per_s * t.seconds / (double)t.images - 1) < 1e-9);
        assert_true(t.predicted_bytes == bytes && t.rss_bytes > 1 * MIB);
        assert_true(isnan(t.loader_images_per_s) && t.wait_s == 0);
        assert_true(ops.elapsed(ops.user) > 0);
    }
    const tg_tune_setting huge = {
        .batch_size = 1 << 28, .threads = 1, .workers = 1, .bucket_mib = 4};
    tg_tune_trial t = {.fits = true};
    assert_ok(ops.measure(ops.user, &huge, 0, &t)); /* no memory is asked for */
    assert_false(t.fits);
    const tg_tune_setting once = {.batch_size = 4, .threads = 2, .workers = 1, .bucket_mib = 4};
    assert_ok(ops.measure(ops.user, &once, -1, &t));
    assert_true(t.fits && t.steps == 1 && t.images == 8);
    tg_tune_bed_close(bed);

    assert_ok(tg_tune_bed_open(&options, now, NULL, &bed));
    ops = tg_tune_bed_ops(bed);
    const tg_tune_setting s = {.batch_size = 2, .threads = 1, .workers = 1, .bucket_mib = 4};
    assert_error(ops.measure(ops.user, &s, 60, &t), TG_ERROR_STOPPED, "stopped");
    tg_tune_bed_close(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest),   cmocka_unit_test(test_rising),
        cmocka_unit_test(test_tie),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_time),
        cmocka_unit_test(test_stop),      cmocka_unit_test(test_all),
        cmocka_unit_test(test_bed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
