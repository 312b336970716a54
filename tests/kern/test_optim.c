/* AdamW, norms and averages: the reference against torch's numbers, every instruction set against
 * the reference, the same bits for any number of threads and, for norms, any instruction set. */
#include "support/buffer.h"
#include "support/check.h"

#include "kern/kern.h"

#include <math.h>
#include <string.h>

static const double EPS = 0x1p-23;

static tg_adamw hyper_at(int step)
{
    return (tg_adamw){.lr = 1e-2f,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .eps = 1e-8f,
                      .weight_decay = 0.05f,
                      .grad_scale = 0.5f,
                      .bias1 = 1 - pow(0.9, step),
                      .bias2 = 1 - pow(0.999, step)};
}

typedef struct state {
    tg_buffer p, m, v, e;
} state;

/* Three steps on n numbers, the first of them from zero moments, with the average in the sweep. */
static state run(const tg_kern *kern, tg_stream *stream, size_t n)
{
    state s = {.p = tg_buffer_random(TG_F32, n, 1, 1),
               .m = tg_buffer_random(TG_F32, n, 2, 0),
               .v = tg_buffer_random(TG_F32, n, 3, 0),
               .e = tg_buffer_random(TG_F32, n, 4, 1)};
    for (int step = 1; step <= 3; step++) {
        tg_buffer g = tg_buffer_random(TG_F32, n, 10 + (uint64_t)step, 1);
        tg_adamw hyper = hyper_at(step);
        hyper.average = s.e.data;
        hyper.average_decay = 0.9f;
        kern->optim.adamw(stream, n, s.p.data, g.data, s.m.data, s.v.data, &hyper);
        tg_buffer_free(&g);
    }
    return s;
}

static void state_free(state *s)
{
    tg_buffer *all[] = {&s->p, &s->m, &s->v, &s->e};
    for (int i = 0; i < 4; i++)
        tg_buffer_free(all[i]);
}

/* One step of torch.optim.AdamW by hand: p = 1, g = 0.2 (0.4 scaled by 1/2), lr 0.01, decay 0.05:
 * m / bias1 = 0.2, sqrt(v / bias2) = 0.2, so p = 1 (1 - 0.0005) - 0.01. */
static void first_step_by_hand(void **unused)
{
    (void)unused;
    float p = 1, g = 0.4f, m = 0, v = 0;
    tg_adamw hyper = hyper_at(1);
    tg_kern_ref()->optim.adamw(NULL, 1, &p, &g, &m, &v, &hyper);
    assert_float_equal(p, 0.9895, 1e-6);
    assert_float_equal(m, 0.02, 1e-7);
    assert_float_equal(v, 4e-5, 1e-9);
}

/* Every step rounds p and e twice, m and v three times; steps are lr in size. */
static void every_level_matches_the_reference(void **unused)
{
    (void)unused;
    const size_t sizes[] = {0, 1, 7, 192, 385, 10007};
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
        for (int i = 0; i < 6; i++) {
            state got = run(tg_kern_select(stream), stream, sizes[i]);
            state want = run(tg_kern_ref(), NULL, sizes[i]);
            assert_near(&got.m, &want.m, 9 * EPS, 9 * EPS, "m");
            assert_near(&got.v, &want.v, 1e-12, 9 * EPS, "v");
            assert_near(&got.p, &want.p, 12 * EPS * 1e-2, 6 * EPS, "p");
            assert_near(&got.e, &want.e, 12 * EPS, 6 * EPS, "average in the sweep");
            state_free(&got);
            state_free(&want);
        }
        tg_stream_close(stream);
    }
}

static void threads_do_not_matter(void **unused)
{
    (void)unused;
    enum { N = 300001 };
    tg_buffer x = tg_buffer_random(TG_F32, N, 5, 1);
    double exact = tg_kern_ref()->optim.sum_squares(NULL, N, x.data), first = 0;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        state one = {0};
        for (int i = 0; i < 4; i++) {
            tg_stream *stream;
            assert_ok(tg_stream_open_cpu((int[]){1, 2, 3, 5}[i], (tg_cpu_level)level, &stream));
            double sum = tg_kern_select(stream)->optim.sum_squares(stream, N, x.data);
            first = first == 0 ? sum : first;
            assert_true(sum == first);
            state many = run(tg_kern_select(stream), stream, 20011);
            tg_stream_close(stream);
            if (i == 0) {
                one = many;
                continue;
            }
            assert_same(&many.p, &one.p, "p");
            assert_same(&many.e, &one.e, "e");
            state_free(&many);
        }
        state_free(&one);
    }
    assert_true(fabs(first - exact) <= 1e-12 * exact);
    tg_buffer_free(&x);
}

/* The norm of a piece is that of its numbers alone, to the bit: in place or copied elsewhere, on any
 * number of threads. Level -1: the reference. */
static void check_piece(int level, const float *there, size_t count)
{
    tg_buffer alone = tg_buffer_new(TG_F32, count);
    memcpy(alone.data, there, count * sizeof(float));
    double want = 0;
    for (int threads = 1; threads <= 2; threads++) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(threads, (tg_cpu_level)(level < 0 ? 0 : level), &stream));
        const tg_kern *kern = level < 0 ? tg_kern_ref() : tg_kern_select(stream);
        const double here = kern->optim.sum_squares(stream, count, there);
        const double moved = kern->optim.sum_squares(stream, count, alone.data);
        want = threads == 1 ? here : want;
        assert_true(here > 0);
        assert_memory_equal(&here, &want, sizeof want);
        assert_memory_equal(&moved, &want, sizeof want);
        tg_stream_close(stream);
    }
    tg_buffer_free(&alone);
}

static void norms_of_pieces(void **unused)
{
    (void)unused;
    enum { N = 200000 };
    const struct {
        size_t begin, count;
    } pieces[] = {{0, 1}, {16, 15999}, {16016, 49531}, {65552, 131}, {70000, 129997}};
    tg_buffer x = tg_buffer_random(TG_F32, N, 5, 1);
    for (int level = (int)tg_cpu_level_detect(); level >= -1; level--)
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
            check_piece(level, (const float *)x.data + pieces[i].begin, pieces[i].count);
    tg_buffer_free(&x);
}

static void averages(void **unused)
{
    (void)unused;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
        tg_buffer e = tg_buffer_random(TG_F32, 9001, 1, 1),
                  p = tg_buffer_random(TG_F32, 9001, 2, 1);
        tg_buffer want_e = tg_buffer_copy(&e);
        tg_kern_select(stream)->optim.average(stream, e.n, e.data, p.data, 0.999f);
        tg_kern_ref()->optim.average(NULL, e.n, want_e.data, p.data, 0.999f);
        assert_near(&e, &want_e, EPS * 1e-2, EPS, "average");
        tg_buffer *all[] = {&e, &p, &want_e};
        for (int i = 0; i < 3; i++)
            tg_buffer_free(all[i]);
        tg_stream_close(stream);
    }
}

/* A gradient that is not finite makes a norm that is not finite: the step can be skipped. */
static void bad_gradients_show_in_the_norm(void **unused)
{
    (void)unused;
    float x[70] = {0};
    x[66] = NAN;
    tg_stream *stream;
    assert_ok(tg_stream_open_cpu(1, TG_CPU_PORTABLE, &stream));
    assert_true(isnan(tg_kern_select(stream)->optim.sum_squares(stream, 70, x)));
    x[66] = -INFINITY;
    assert_true(isinf(tg_kern_select(stream)->optim.sum_squares(stream, 70, x)));
    tg_stream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_step_by_hand),
        cmocka_unit_test(every_level_matches_the_reference),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(norms_of_pieces),
        cmocka_unit_test(averages),
        cmocka_unit_test(bad_gradients_show_in_the_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
