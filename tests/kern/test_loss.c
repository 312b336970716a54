/* Losses: the reference against central differences and known values, every instruction set
 * against the reference, infinite logits and very large ones. */
#include "support/buffer.h"
#include "support/check.h"

#include "kern/kern.h"

#include <math.h>

typedef enum kind { CROSS_ENTROPY, KL, SQUARED_ERROR, KIND_COUNT } kind;

static const float TEMPERATURE = 2.5f;

static void run(const tg_kern *kern, tg_stream *stream, kind what, size_t B, size_t K,
                const tg_buffer *x, const tg_buffer *y, float weight, tg_buffer *loss, tg_buffer *d,
                bool accumulate)
{
    float *out_d = d ? d->data : NULL;
    if (what == CROSS_ENTROPY)
        kern->loss.cross_entropy(stream, B, K, x->data, y->data, weight, loss->data, out_d,
                                 accumulate);
    else if (what == KL)
        kern->loss.kl(stream, B, K, x->data, y->data, TEMPERATURE, weight, loss->data, out_d,
                      accumulate);
    else
        kern->loss.squared_error(stream, B, K, x->data, y->data, weight, loss->data, out_d,
                                 accumulate);
}

/* Logits of size 5; targets are soft labels that sum to 1 but not exactly. */
static void inputs(kind what, size_t B, size_t K, tg_buffer *x, tg_buffer *y)
{
    *x = tg_buffer_random(TG_F32, B * K, 1, 5);
    *y = tg_buffer_random(TG_F32, B * K, 2, 5);
    for (size_t i = 0; what == CROSS_ENTROPY && i < B * K; i++)
        tg_buffer_set(y, i, i % K % 3 == 0 ? fabsf(tg_buffer_get(y, i)) / (float)K : 0);
}

/* (f(x + h) - f(x - h)) / 2h: fp32 rounding of the loss, size 100, over 2h, and h^2/6 f'''. */
static void reference_gradient_is_the_slope(void **state)
{
    (void)state;
    enum { K = 7 };
    for (int what = 0; what < KIND_COUNT; what++) {
        tg_buffer x, y, loss = tg_buffer_new(TG_F32, 1), d = tg_buffer_new(TG_F32, K);
        inputs((kind)what, 1, K, &x, &y);
        run(tg_kern_ref(), NULL, (kind)what, 1, K, &x, &y, 1, &loss, &d, false);
        const float h = 0x1p-6f;
        for (size_t k = 0; k < K; k++) {
            float old = tg_buffer_get(&x, k);
            tg_buffer_set(&x, k, old + h);
            run(tg_kern_ref(), NULL, (kind)what, 1, K, &x, &y, 1, &loss, NULL, false);
            double up = tg_buffer_get(&loss, 0);
            tg_buffer_set(&x, k, old - h);
            run(tg_kern_ref(), NULL, (kind)what, 1, K, &x, &y, 1, &loss, NULL, false);
            double slope = (up - tg_buffer_get(&loss, 0)) / (2 * h);
            tg_buffer_set(&x, k, old);
            assert_true(fabs(slope - tg_buffer_get(&d, k)) < 100 * 0x1p-24 / h + h * h);
        }
        tg_buffer_free(&x);
        tg_buffer_free(&y);
        tg_buffer_free(&loss);
        tg_buffer_free(&d);
    }
}

/* Uniform logits: cross-entropy is log K, KL of equal logits is 0, errors of 2 give 4. */
static void known_values(void **state)
{
    (void)state;
    float logits[5] = {3, 3, 3, 3, 3}, one_hot[5] = {0, 0, 1, 0, 0}, other[5] = {1, 1, 5, 1, 5};
    float loss, d[5];
    const tg_kern *kern = tg_kern_ref();
    kern->loss.cross_entropy(NULL, 1, 5, logits, one_hot, 2, &loss, d, false);
    assert_float_equal(loss, logf(5), 1e-6);
    assert_float_equal(d[2], 2 * (0.2 - 1), 1e-6);
    assert_float_equal(d[0], 2 * 0.2, 1e-6);
    kern->loss.kl(NULL, 1, 5, other, other, 3, 1, &loss, d, false);
    assert_float_equal(loss, 0, 1e-9);
    assert_float_equal(d[2], 0, 1e-9);
    kern->loss.squared_error(NULL, 1, 5, logits, other, 1, &loss, d, false);
    assert_float_equal(loss, 4, 1e-6);
    assert_float_equal(d[0], 2 * 2 / 5.0, 1e-6);
}

/* loss.h: 1e-6 relative, of the sum of the terms' magnitudes (terms are up to 30 for these logits,
 * times T^2 for KL); probabilities are off by a few roundings. */
static void check(const tg_kern *kern, tg_stream *stream, kind what, size_t B, size_t K,
                  bool accumulate)
{
    tg_buffer x, y, loss = tg_buffer_new(TG_F32, B), want_loss = tg_buffer_new(TG_F32, B);
    tg_buffer d = tg_buffer_random(TG_F32, B * K, 3, 1), want_d = tg_buffer_copy(&d);
    tg_buffer only = tg_buffer_new(TG_F32, B);
    inputs(what, B, K, &x, &y);
    run(kern, stream, what, B, K, &x, &y, 0.7f, &loss, &d, accumulate);
    run(kern, stream, what, B, K, &x, &y, 0.7f, &only, NULL, accumulate);
    run(tg_kern_ref(), NULL, what, B, K, &x, &y, 0.7f, &want_loss, &want_d, accumulate);
    assert_near(&loss, &want_loss, 1e-6 * (what == KL ? 6.25 : 1), 1e-6, "loss");
    assert_same(&only, &loss, "loss without gradient");
    assert_near(&d, &want_d, 3e-6, 1e-6, "gradient");
    tg_buffer *all[] = {&x, &y, &loss, &want_loss, &d, &want_d, &only};
    for (int i = 0; i < 7; i++)
        tg_buffer_free(all[i]);
}

static void every_level_matches_the_reference(void **state)
{
    (void)state;
    const size_t classes[] = {1, 7, 16, 20, 385, 1000};
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--)
        for (int threads = 1; threads <= 3; threads++) {
            tg_stream *stream;
            assert_ok(tg_stream_open_cpu(threads, (tg_cpu_level)level, &stream));
            for (int i = 0; i < 6 * KIND_COUNT; i++) {
                check(tg_kern_select(stream), stream, (kind)(i / 6), 5, classes[i % 6], false);
                check(tg_kern_select(stream), stream, (kind)(i / 6), 5, classes[i % 6], true);
            }
            tg_stream_close(stream);
        }
}

/* A class ruled out by -inf, and logits beyond exp's range, give finite losses. */
static void extreme_logits_stay_finite(void **state)
{
    (void)state;
    float hot[4] = {1e4f, -1e4f, 0, 5}, masked[4] = {1, -INFINITY, 2, 0};
    float target[4] = {1, 0, 0, 0}, loss, d[4];
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(1, (tg_cpu_level)level, &stream));
        const tg_loss_ops *ops = &tg_kern_select(stream)->loss;
        ops->cross_entropy(stream, 1, 4, hot, target, 1, &loss, d, false);
        assert_float_equal(loss, 0, 1e-6);
        assert_float_equal(d[1], 0, 1e-6);
        ops->cross_entropy(stream, 1, 4, masked, target, 1, &loss, d, false);
        assert_float_equal(loss, log(exp(1) + exp(2) + 1) - 1, 1e-6);
        assert_float_equal(d[1], 0, 1e-6);
        ops->kl(stream, 1, 4, hot, target, 1, 1, &loss, d, false);
        assert_true(isfinite(loss) && loss > 1e3);
        tg_stream_close(stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_gradient_is_the_slope),
        cmocka_unit_test(known_values),
        cmocka_unit_test(every_level_matches_the_reference),
        cmocka_unit_test(extreme_logits_stay_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
