/* Linear layers and the feed-forward: the reference against sums in double and central differences,
 * every instruction set against the reference. */
#include "support/buffer.h"
#include "support/check.h"
#include "support/device.h"

#include "kern/kern.h"

#include <math.h>

static const double EPS = 0x1p-23;

typedef struct linear {
    tg_buffer y, dx, dw, db;
} linear;

static void run_linear(const tg_kern *kern, tg_stream *stream, size_t R, size_t in, size_t out,
                       tg_dtype dtype, bool accumulate, linear *o)
{
    const tg_linear_ops *ops = &kern->linear;
    tg_buffer w = tg_buffer_random(TG_F32, out * in, 1, 0.5),
              x = tg_buffer_random(dtype, R * in, 2, 1);
    tg_buffer b = tg_buffer_random(TG_F32, out, 3, 1), dy = tg_buffer_random(dtype, R * out, 4, 1);
    *o = (linear){.y = tg_buffer_new(TG_F32, R * out),
                  .dx = tg_buffer_new(dtype, R * in),
                  .dw = tg_buffer_random(TG_F32, out * in, 5, 1),
                  .db = tg_buffer_random(TG_F32, out, 6, 1)};
    tg_weight *weight;
    assert_ok(ops->weight_new(stream, out, in, dtype, true, &weight));
    assert_ok(ops->weight_refresh(stream, weight, w.data));
    assert_ok(
        ops->forward(stream, weight, R, x.data, accumulate ? NULL : b.data, o->y.data, TG_F32));
    assert_ok(ops->backward_input(stream, weight, R, dy.data, o->dx.data));
    assert_ok(ops->backward_weight(stream, weight, R, x.data, dy.data, o->dw.data,
                                   accumulate ? NULL : o->db.data, accumulate));
    ops->weight_free(weight);
    tg_buffer *all[] = {&w, &x, &b, &dy};
    for (int i = 0; i < 4; i++)
        tg_buffer_free(all[i]);
}

static void linear_free(linear *o)
{
    tg_buffer *all[] = {&o->y, &o->dx, &o->dw, &o->db};
    for (int i = 0; i < 4; i++)
        tg_buffer_free(all[i]);
}

/* y = x W^T + b, dx = dy W, dW = dy^T x, db = sums of dy on numbers small enough to be exact. */
static void reference_by_hand(void **state)
{
    (void)state;
    const float w[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 0, -2}, b[2] = {10, 20}, dy[2] = {1, -1};
    float y[2], dx[3], dw[6], db[2];
    const tg_linear_ops *ops = &tg_kern_ref()->linear;
    tg_weight *weight;
    assert_ok(ops->weight_new(NULL, 2, 3, TG_F32, true, &weight));
    assert_ok(ops->weight_refresh(NULL, weight, w));
    assert_ok(ops->forward(NULL, weight, 1, x, b, y, TG_F32));
    assert_ok(ops->backward_input(NULL, weight, 1, dy, dx));
    assert_ok(ops->backward_weight(NULL, weight, 1, x, dy, dw, db, false));
    assert_ok(ops->backward_weight(NULL, weight, 1, x, dy, dw, db, true));
    ops->weight_free(weight);
    const float want_y[2] = {5, 12}, want_dx[3] = {-3, -3, -3};
    const float want_dw[6] = {2, 0, -4, -2, 0, 4}, want_db[2] = {2, -2};
    assert_close(y, want_y, 2, 0, 0, "y");
    assert_close(dx, want_dx, 3, 0, 0, "dx");
    assert_close(dw, want_dw, 6, 0, 0, "dw");
    assert_close(db, want_db, 2, 0, 0, "db");
}

/* linear.h: n roundings of the sum of magnitudes, which is under n max|x| max|W| with inputs of
 * size 4 and 2; sums of random signs stay far below. bf16 rounds the stored dx once. */
static void check_linear(tg_stream *stream, size_t R, size_t in, size_t out, tg_dtype dtype,
                         bool accumulate)
{
    linear got, want;
    run_linear(tg_kern_select(stream), stream, R, in, out, dtype, accumulate, &got);
    run_linear(tg_kern_ref(), NULL, R, in, out, dtype, accumulate, &want);
    const double rounding = dtype == TG_BF16 ? 0x1p-7 : 2 * EPS;
    assert_near(&got.y, &want.y, (double)in * EPS * 2 * sqrt((double)in), 2 * EPS, "y");
    assert_near(&got.dx, &want.dx, (double)out * EPS * 2 * sqrt((double)out), rounding, "dx");
    assert_near(&got.dw, &want.dw, (double)R * EPS * 4 * sqrt((double)R + 1), 2 * EPS, "dw");
    assert_near(&got.db, &want.db, (double)R * EPS * 4 * sqrt((double)R + 1), 2 * EPS, "db");
    linear_free(&got);
    linear_free(&want);
}

static void every_level_matches_the_reference(void **state)
{
    (void)state;
    const size_t sizes[][3] = {{1, 1, 1},      {3, 7, 5},     {65, 48, 33}, {130, 64, 192},
                               {0, 8, 8},      {1, 32, 64},   {31, 64, 32}, {17, 96, 32},
                               {291, 160, 96}, {530, 32, 416}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
        for (int i = 0; i < SIZES * 4; i++) {
            const size_t *s = sizes[i % SIZES];
            tg_dtype dtype = i / SIZES & 1 ? TG_BF16 : TG_F32;
            if (dtype == TG_F32 || tg_stream_has_bf16(stream))
                check_linear(stream, s[0], s[1], s[2], dtype, i / (2 * SIZES));
        }
        tg_stream_close(stream);
    }
}

static tg_buffer identity(size_t n)
{
    tg_buffer one = tg_buffer_new(TG_BF16, n * n);
    for (size_t i = 0; i < n * n; i++)
        tg_buffer_set(&one, i, i % (n + 1) == 0);
    return one;
}

/* Rows of the identity bring the prepared weights to light, one by one. */
static void reveal(const tg_kern *kern, tg_stream *stream, const tg_buffer *w, size_t in,
                   size_t out, linear *o)
{
    const tg_linear_ops *ops = &kern->linear;
    tg_buffer x = identity(in), dy = identity(out);
    tg_weight *weight;
    *o = (linear){.y = tg_buffer_new(TG_F32, in * out), .dx = tg_buffer_new(TG_BF16, out * in)};
    assert_ok(ops->weight_new(stream, out, in, TG_BF16, true, &weight));
    assert_ok(ops->weight_refresh(stream, weight, w->data));
    assert_ok(ops->forward(stream, weight, in, x.data, NULL, o->y.data, TG_F32));
    assert_ok(ops->backward_input(stream, weight, out, dy.data, o->dx.data));
    ops->weight_free(weight);
    tg_buffer_free(&x);
    tg_buffer_free(&dy);
}

/* Ties to even from both sides, the largest number, the smallest normal one and what lies below, which products
 * take for 0. */
static tg_buffer odd_weights(size_t n)
{
    static const float odd[] = {0x1.01p0F,     0x1.03p0F,       -0x1.03p0F, 0x1.010002p0F,
                                0x1.00fffep0F, 0x1.fdfffep127F, 0x1p-126F,  0x1.fffffcp-127F,
                                0x1.fep-127F,  -0x1.8p-130F,    0x1p-149F,  -0.0F};
    tg_buffer w = tg_buffer_random(TG_F32, n, 1, 0.5);
    for (size_t i = 0; i < n; i += 3)
        tg_buffer_set(&w, i, odd[i / 3 % (sizeof odd / sizeof *odd)]);
    return w;
}

static float at_least_normal(float value)
{
    return fabsf(value) < 0x1p-126F ? 0 : value;
}

/* Prepared from fp32, and from what from_f32 and to_f32 leave of it, which is what both must be. */
static void check_rounded(const tg_kern *kern, tg_stream *stream, size_t in, size_t out)
{
    tg_buffer w = odd_weights(out * in), narrow = tg_buffer_new(TG_BF16, out * in);
    tg_buffer wide = tg_buffer_new(TG_F32, out * in);
    kern->tokens.from_f32(stream, out * in, w.data, TG_BF16, narrow.data);
    kern->tokens.to_f32(stream, out * in, narrow.data, TG_BF16, wide.data);
    linear from_w, from_wide;
    reveal(kern, stream, &w, in, out, &from_w);
    reveal(kern, stream, &wide, in, out, &from_wide);
    assert_same(&from_wide.y, &from_w.y, "forward's copy");
    assert_same(&from_wide.dx, &from_w.dx, "backward's copy");
    for (size_t o = 0; o < out; o++)
        for (size_t i = 0; i < in; i++) {
            const float want = at_least_normal(tg_buffer_get(&wide, o * in + i));
            assert_true(at_least_normal(tg_buffer_get(&from_w.y, i * out + o)) == want);
            assert_true(at_least_normal(tg_buffer_get(&from_w.dx, o * in + i)) == want);
        }
    tg_buffer *all[] = {&w, &narrow, &wide, &from_w.y, &from_w.dx, &from_wide.y, &from_wide.dx};
    for (int i = 0; i < 7; i++)
        tg_buffer_free(all[i]);
}

static void bf16_copies_round_as_conversions_do(void **state)
{
    (void)state;
    tg_stream *stream = tg_test_stream();
    const size_t sizes[][2] = {{1, 1}, {7, 5}, {48, 33}, {64, 192}, {96, 32}, {160, 96}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_rounded(tg_kern_ref(), NULL, sizes[i][0], sizes[i][1]);
        if (tg_stream_has_bf16(stream))
            check_rounded(tg_kern_select(stream), stream, sizes[i][0], sizes[i][1]);
    }
    tg_stream_close(stream);
}

typedef struct mlp {
    size_t R, C, F;
    tg_dtype dtype;
    tg_gelu gelu;
    tg_buffer x, w1, w2, b1, b2, dy;                     /* inputs */
    tg_buffer h, y, lean, dx, dw1, dw2, db1, db2, g, dh; /* outputs; lean: y without h kept */
} mlp;

static tg_buffer hidden_new(size_t R, size_t F, tg_dtype dtype)
{
    return tg_buffer_new(dtype, tg_mlp_gradient_bytes(R, F, dtype) / tg_dtype_bytes(dtype));
}

static mlp mlp_new(size_t R, size_t C, size_t F, tg_dtype dtype, tg_gelu gelu)
{
    return (mlp){.R = R,
                 .C = C,
                 .F = F,
                 .dtype = dtype,
                 .gelu = gelu,
                 .x = tg_buffer_random(dtype, R * C, 1, 1),
                 .w1 = tg_buffer_random(TG_F32, F * C, 2, 1 / sqrt((double)C)),
                 .w2 = tg_buffer_random(TG_F32, C * F, 3, 1 / sqrt((double)F)),
                 .b1 = tg_buffer_random(TG_F32, F, 4, 1),
                 .b2 = tg_buffer_random(TG_F32, C, 5, 1),
                 .dy = tg_buffer_random(dtype, R * C, 6, 1),
                 .h = tg_buffer_new(dtype, tg_mlp_kept_bytes(R, F, dtype) / tg_dtype_bytes(dtype)),
                 .y = tg_buffer_new(dtype, R * C),
                 .lean = tg_buffer_new(dtype, R * C),
                 .dx = tg_buffer_new(dtype, R * C),
                 .dw1 = tg_buffer_new(TG_F32, F * C),
                 .dw2 = tg_buffer_new(TG_F32, C * F),
                 .db1 = tg_buffer_new(TG_F32, F),
                 .db2 = tg_buffer_new(TG_F32, C),
                 .g = hidden_new(R, F, dtype),
                 .dh = hidden_new(R, F, dtype)};
}

static void mlp_free(mlp *m)
{
    tg_buffer *all[] = {&m->x,    &m->w1, &m->w2,  &m->b1,  &m->b2,  &m->dy,  &m->h, &m->y,
                        &m->lean, &m->dx, &m->dw1, &m->dw2, &m->db1, &m->db2, &m->g, &m->dh};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tg_buffer_free(all[i]);
}

/* Backward in spans of rows, then the weights' gradients at once. */
static void run_mlp_backward(const tg_kern *kern, tg_stream *stream, mlp *m, tg_weight *w1,
                             tg_weight *w2)
{
    enum { SPAN = 96 };
    for (size_t r = 0; r < m->R; r += SPAN) {
        size_t row = r * m->C * tg_dtype_bytes(m->dtype);
        tg_mlp_backward rows = {.R = m->R - r < SPAN ? m->R - r : SPAN,
                                .row0 = r,
                                .gelu = m->gelu,
                                .h = m->h.data,
                                .dy = (char *)m->dy.data + row,
                                .out_g = m->g.data,
                                .out_dh = m->dh.data,
                                .out_dx = (char *)m->dx.data + row};
        assert_ok(kern->mlp.backward(stream, w1, w2, &rows));
    }
    tg_mlp_weights weights = {.R = m->R,
                              .x = m->x.data,
                              .dy = m->dy.data,
                              .g = m->g.data,
                              .dh = m->dh.data,
                              .dw1 = m->dw1.data,
                              .db1 = m->db1.data,
                              .dw2 = m->dw2.data,
                              .db2 = m->db2.data};
    assert_ok(kern->mlp.backward_weights(stream, w1, w2, &weights));
}

static void run_mlp(const tg_kern *kern, tg_stream *stream, mlp *m)
{
    tg_weight *w1, *w2;
    assert_ok(kern->linear.weight_new(stream, m->F, m->C, m->dtype, true, &w1));
    assert_ok(kern->linear.weight_new(stream, m->C, m->F, m->dtype, true, &w2));
    assert_ok(kern->linear.weight_refresh(stream, w1, m->w1.data));
    assert_ok(kern->linear.weight_refresh(stream, w2, m->w2.data));
    tg_mlp_forward forward = {.R = m->R,
                              .gelu = m->gelu,
                              .x = m->x.data,
                              .b1 = m->b1.data,
                              .b2 = m->b2.data,
                              .out_y = m->lean.data};
    assert_ok(kern->mlp.forward(stream, w1, w2, &forward));
    forward.out_h = m->h.data;
    forward.out_y = m->y.data;
    assert_ok(kern->mlp.forward(stream, w1, w2, &forward));
    run_mlp_backward(kern, stream, m, w1, w2);
    kern->linear.weight_free(w1);
    kern->linear.weight_free(w2);
}

static double functional(mlp *m)
{
    double f = 0;
    run_mlp(tg_kern_ref(), NULL, m);
    for (size_t i = 0; i < m->R * m->C; i++)
        f += (double)tg_buffer_get(&m->dy, i) * tg_buffer_get(&m->y, i);
    return f;
}

/* Rounding of h, g and y, R (C + F) numbers of size 3, over 2h; and h^2 times a third derivative of
 * size 10. */
static void check_slopes(mlp *m, tg_buffer *input, const tg_buffer *gradient)
{
    const double h = 0x1p-7;
    for (size_t i = 0; i < input->n; i++) {
        float old = tg_buffer_get(input, i);
        tg_buffer_set(input, i, (float)(old + h));
        double slope = functional(m);
        tg_buffer_set(input, i, (float)(old - h));
        slope = (slope - functional(m)) / (2 * h);
        tg_buffer_set(input, i, old);
        double bound = (double)(m->R * (m->C + m->F)) * 3 * EPS / 2 / h + 10 * h * h;
        assert_true(fabs(slope - tg_buffer_get(gradient, i)) <= bound);
    }
}

static void reference_feed_forward_is_the_slope(void **state)
{
    (void)state;
    for (int gelu = TG_GELU_EXACT; gelu <= TG_GELU_TANH; gelu++) {
        mlp m = mlp_new(3, 4, 6, TG_F32, (tg_gelu)gelu);
        functional(&m);
        tg_buffer dx = tg_buffer_copy(&m.dx), dw1 = tg_buffer_copy(&m.dw1);
        tg_buffer dw2 = tg_buffer_copy(&m.dw2), db1 = tg_buffer_copy(&m.db1);
        tg_buffer db2 = tg_buffer_copy(&m.db2);
        assert_same(&m.lean, &m.y, "y without h kept");
        check_slopes(&m, &m.x, &dx);
        check_slopes(&m, &m.w1, &dw1);
        check_slopes(&m, &m.w2, &dw2);
        check_slopes(&m, &m.b1, &db1);
        check_slopes(&m, &m.b2, &db2);
        tg_buffer *all[] = {&dx, &dw1, &dw2, &db1, &db2};
        for (int i = 0; i < 5; i++)
            tg_buffer_free(all[i]);
        mlp_free(&m);
    }
}

/* Sums of F or C terms of size 1/sqrt(n); every stored number in between may round to a neighbour
 * (2^-8 relative in bf16), which the next product averages over random signs. */
static void check_mlp(tg_stream *stream, size_t R, size_t C, size_t F, tg_dtype dtype, tg_gelu gelu)
{
    mlp got = mlp_new(R, C, F, dtype, gelu), want = mlp_new(R, C, F, dtype, gelu);
    run_mlp(tg_kern_select(stream), stream, &got);
    run_mlp(tg_kern_ref(), NULL, &want);
    const double unit = dtype == TG_BF16 ? 0x1p-7 : 16 * EPS, rows = 4 * sqrt((double)R);
    assert_near(&got.y, &want.y, 4 * unit, unit, "y");
    assert_near(&got.lean, &want.lean, 4 * unit, unit, "y without h kept");
    assert_near(&got.dx, &want.dx, 4 * unit, unit, "dx");
    assert_near(&got.dw1, &want.dw1, rows * unit, unit, "dw1");
    assert_near(&got.dw2, &want.dw2, rows * unit, unit, "dw2");
    assert_near(&got.db1, &want.db1, rows * unit, unit, "db1");
    assert_near(&got.db2, &want.db2, rows * unit, unit, "db2");
    mlp_free(&got);
    mlp_free(&want);
}

static void every_feed_forward_matches_the_reference(void **state)
{
    (void)state;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
        for (int i = 0; i < 4; i++) {
            tg_dtype dtype = i & 1 ? TG_BF16 : TG_F32;
            if (dtype == TG_BF16 && !tg_stream_has_bf16(stream))
                continue;
            check_mlp(stream, 70, 48, 96, dtype, (tg_gelu)(i / 2));
            check_mlp(stream, 3, 7, 13, dtype, (tg_gelu)(i / 2));
            check_mlp(stream, 1, 32, 64, dtype, (tg_gelu)(i / 2));
            check_mlp(stream, 300, 64, 160, dtype, (tg_gelu)(i / 2));
            check_mlp(stream, 561, 96, 32, dtype, (tg_gelu)(i / 2));
        }
        tg_stream_close(stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_by_hand),
        cmocka_unit_test(every_level_matches_the_reference),
        cmocka_unit_test(bf16_copies_round_as_conversions_do),
        cmocka_unit_test(reference_feed_forward_is_the_slope),
        cmocka_unit_test(every_feed_forward_matches_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
