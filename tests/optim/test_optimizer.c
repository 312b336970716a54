/* An update in ranges, with moments kept apart for each, is the same bits as one update of the whole,
 * wherever the ranges are cut; and the groups' decay and rates are what the table says. */
#include "support/buffer.h"
#include "support/check.h"
#include "support/device.h"

#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 3 };

static const tg_optimizer_options OPTIONS = {.beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .eps = 1e-8,
                                             .weight_decay = 0.05,
                                             .layer_decay = 0.7,
                                             .clip_grad = 1,
                                             .ema_decay = 0.99};

/* Tensors of four layers, with and without decay, most with padding behind them. */
static void make_table(tg_param_table *out)
{
    *out = (tg_param_table){0};
    for (int layer = 0; layer < 4; layer++) {
        char name[TG_PARAM_NAME_BYTES];
        snprintf(name, sizeof name, "%d.weight", layer);
        assert_ok(tg_param_add(out, name, 2, (size_t[]){37, 29}, layer, true));
        snprintf(name, sizeof name, "%d.bias", layer);
        assert_ok(tg_param_add(out, name, 1, (size_t[]){37}, layer, false));
        snprintf(name, sizeof name, "%d.other", layer);
        assert_ok(tg_param_add(out, name, 1, (size_t[]){5}, layer, false));
    }
}

typedef struct state {
    tg_buffer params, m, v, average;
    tg_optimizer optimizer;
} state;

static void state_open(const tg_kern *kern, tg_stream *stream, const tg_param_table *table,
                       bool average, const tg_optimizer_options *options, state *out)
{
    const size_t n = table->elements;
    out->params = tg_buffer_random(TG_F32, n, 1, 1);
    out->m = tg_buffer_random(TG_F32, n, 2, 0);
    out->v = tg_buffer_random(TG_F32, n, 3, 0);
    out->average = tg_buffer_copy(&out->params);
    assert_ok(tg_optimizer_init(&out->optimizer, options, kern, stream, table, out->params.data,
                                out->m.data, out->v.data, average ? out->average.data : NULL));
}

static void state_close(state *s)
{
    tg_optimizer_done(&s->optimizer);
    tg_buffer *all[] = {&s->params, &s->m, &s->v, &s->average};
    for (int i = 0; i < 4; i++)
        tg_buffer_free(all[i]);
}

/* One range of an update: everything but the parameters in storage of its own while it lasts. */
static void update_apart(state *s, const tg_buffer *grads, size_t offset, size_t count,
                         double grad_scale, double lr)
{
    const tg_buffer *whole[] = {grads, &s->m, &s->v, &s->average};
    tg_buffer piece[4];
    const size_t bytes = count * sizeof(float);
    for (int i = 0; i < 4; i++) {
        piece[i] = tg_buffer_new(TG_F32, count);
        memcpy(piece[i].data, (float *)whole[i]->data + offset, bytes);
    }
    tg_optimizer_update_range(&s->optimizer, offset, count, piece[0].data, piece[1].data,
                              piece[2].data, s->optimizer.average ? piece[3].data : NULL,
                              grad_scale, lr);
    for (int i = 1; i < 4; i++)
        memcpy((float *)whole[i]->data + offset, piece[i].data, bytes);
    for (int i = 0; i < 4; i++)
        tg_buffer_free(&piece[i]);
}

/* A step like tg_optimizer_step's, from the last range down to the first. */
static void step_in_ranges(state *s, const tg_buffer *grads, size_t length, double lr)
{
    const tg_optimizer *o = &s->optimizer;
    const double squares = o->kern->optim.sum_squares(o->stream, grads->n, grads->data);
    const double scale = tg_optimizer_clip(o, 0.5, 0.5 * sqrt(squares));
    tg_optimizer_begin_step(&s->optimizer);
    for (size_t left = grads->n; left > 0;) {
        const size_t offset = (left - 1) / length * length;
        update_apart(s, grads, offset, left - offset, scale, lr);
        left = offset;
    }
}

static void check_ranges(const tg_kern *kern, tg_stream *stream, size_t length, bool average,
                         const tg_optimizer_options *options)
{
    tg_param_table table;
    make_table(&table);
    state whole, ranges;
    state_open(kern, stream, &table, average, options, &whole);
    state_open(kern, stream, &table, average, options, &ranges);
    tg_buffer start = tg_buffer_copy(&whole.average);
    for (int step = 1; step <= STEPS; step++) {
        tg_buffer grads = tg_buffer_random(TG_F32, table.elements, 10 + (uint64_t)step, 1);
        double norm;
        assert_int_equal(tg_optimizer_step(&whole.optimizer, grads.data, 0.5, 0.01 * step, &norm),
                         TG_OK);
        assert_true(norm > options->clip_grad); /* clipping has its part */
        step_in_ranges(&ranges, &grads, length, 0.01 * step);
        tg_buffer_free(&grads);
    }
    assert_int_equal(whole.optimizer.updates, STEPS);
    assert_int_equal(ranges.optimizer.updates, STEPS);
    assert_same(&ranges.params, &whole.params, "params");
    assert_same(&ranges.m, &whole.m, "m");
    assert_same(&ranges.v, &whole.v, "v");
    assert_same(&ranges.average, &whole.average, "average");
    if (average)
        assert_memory_not_equal(whole.average.data, start.data, start.n * sizeof(float));
    else
        assert_same(&whole.average, &start, "average that is off");
    tg_buffer_free(&start);
    state_close(&whole);
    state_close(&ranges);
    tg_param_table_done(&table);
}

/* Lengths that cut tensors (1088 floats), groups, and neither. */
static void ranges_make_one_step(void **unused)
{
    (void)unused;
    const size_t lengths[] = {16, 48, 528, 1088, 1600, 1 << 20};
    tg_optimizer_options one_rate = OPTIONS;
    one_rate.layer_decay = 1;
    one_rate.clip_grad = 0;
    tg_stream *stream = tg_test_stream();
    const tg_kern *kerns[] = {tg_kern_ref(), tg_kern_select(stream)};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            for (int average = 0; average < 2; average++) {
                check_ranges(kerns[k], stream, lengths[i], average, &OPTIONS);
                check_ranges(kerns[k], stream, lengths[i], average, &one_rate);
            }
    tg_stream_close(stream);
}

/* Without a gradient only decay moves a parameter: by lr layer_decay^(top - layer) wd of itself where
 * the table says so, to two roundings of fp32. */
static void groups_decay_as_the_table_says(void **unused)
{
    (void)unused;
    tg_param_table table;
    make_table(&table);
    state s;
    state_open(tg_kern_ref(), NULL, &table, false, &OPTIONS, &s);
    tg_buffer before = tg_buffer_copy(&s.params);
    tg_buffer grads = tg_buffer_random(TG_F32, table.elements, 9, 0);
    tg_optimizer_begin_step(&s.optimizer);
    for (size_t offset = 0; offset < table.elements; offset += 16) /* of one tensor each */
        update_apart(&s, &grads, offset, 16, 1, 0.5);
    for (size_t i = 0; i < table.count; i++) {
        const tg_param *p = &table.items[i];
        const double rate = 0.5 * pow(0.7, 3 - p->layer), keep = p->decay ? 1 - rate * 0.05 : 1;
        for (size_t k = p->offset; k < p->offset + p->count; k++) {
            const double want = keep * (double)tg_buffer_get(&before, k);
            assert_true(fabs((double)tg_buffer_get(&s.params, k) - want) <= 0x1p-22 * fabs(want));
        }
    }
    tg_buffer_free(&before);
    tg_buffer_free(&grads);
    state_close(&s);
    tg_param_table_done(&table);
}

/* A gradient that is not finite changes nothing, not even the count. */
static void bad_gradients_are_no_step(void **unused)
{
    (void)unused;
    tg_param_table table;
    make_table(&table);
    state s;
    state_open(tg_kern_ref(), NULL, &table, true, &OPTIONS, &s);
    tg_buffer before = tg_buffer_copy(&s.params);
    tg_buffer grads = tg_buffer_random(TG_F32, table.elements, 9, 1);
    tg_buffer_set(&grads, 100, INFINITY);
    double norm;
    assert_int_equal(tg_optimizer_step(&s.optimizer, grads.data, 1, 0.1, &norm), TG_AGAIN);
    assert_int_equal(s.optimizer.updates, 0);
    assert_same(&s.params, &before, "params");
    assert_same(&s.average, &before, "average");
    tg_buffer_free(&before);
    tg_buffer_free(&grads);
    state_close(&s);
    tg_param_table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_make_one_step),
        cmocka_unit_test(groups_decay_as_the_table_says),
        cmocka_unit_test(bad_gradients_are_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
