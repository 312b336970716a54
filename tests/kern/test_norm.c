/* Residual addition with layer norm: the reference against central differences, every instruction
 * set against the reference, the same bits for any number of threads. */
#include "support/buffer.h"
#include "support/check.h"

#include "kern/kern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double EPS = 0x1p-23;

/* One problem: inputs, and outputs made by run_forward and run_backward. */
typedef struct problem {
    size_t R, C, per, ldx, ldb, ldy;
    tg_dtype dtype;
    unsigned options; /* bits below */
    tg_buffer x, branch, ls, s, w, b, dy, dres;
    tg_buffer out_x, y, mean, rstd, again;    /* forward */
    tg_buffer out_dres, dbranch, dw, db, dls; /* backward */
} problem;

enum {
    BRANCH = 1,
    SCALES = 2, /* ls and s */
    AFFINE = 4, /* w and b */
    STRIDES = 8,
    IN_PLACE = 16,
    NORM = 32, /* out_y, dy */
    ACCUMULATE = 64,
    FIRST = 128, /* dres_zero */
    ALL = 256,
};

static problem problem_new(size_t R, size_t C, tg_dtype dtype, unsigned options)
{
    problem p = {.R = R, .C = C, .dtype = dtype, .options = options, .per = 5};
    size_t extra = options & STRIDES ? 3 : 0;
    p.ldx = C + 2 * extra;
    p.ldb = C + extra;
    p.ldy = C + 4 * extra;
    p.x = tg_buffer_random(TG_F32, R * p.ldx, 1, 2);
    for (size_t i = 0; i < p.x.n; i++)
        tg_buffer_set(&p.x, i, tg_buffer_get(&p.x, i) + 1.5f);
    p.branch = tg_buffer_random(dtype, R * p.ldb, 2, 1);
    p.ls = tg_buffer_random(TG_F32, C, 3, 1);
    p.s = tg_buffer_random(TG_F32, (R + p.per - 1) / p.per, 4, 1);
    if (p.s.n > 1)
        tg_buffer_set(&p.s, 1, 0);
    p.w = tg_buffer_random(TG_F32, C, 5, 1);
    p.b = tg_buffer_random(TG_F32, C, 6, 1);
    p.dy = tg_buffer_random(dtype, R * p.ldy, 7, 1);
    p.dres = tg_buffer_random(TG_F32, R * p.ldx, 8, 1);
    p.out_x = options & IN_PLACE ? tg_buffer_copy(&p.x) : tg_buffer_new(TG_F32, R * p.ldx);
    p.y = tg_buffer_new(dtype, R * p.ldy);
    p.again = tg_buffer_new(dtype, R * p.ldy);
    p.mean = tg_buffer_new(TG_F32, R);
    p.rstd = tg_buffer_new(TG_F32, R);
    p.out_dres = options & FIRST ? tg_buffer_new(TG_F32, R * p.ldx) : tg_buffer_copy(&p.dres);
    p.dbranch = tg_buffer_new(dtype, R * p.ldb);
    p.dw = tg_buffer_random(TG_F32, C, 9, 1);
    p.db = tg_buffer_random(TG_F32, C, 10, 1);
    p.dls = tg_buffer_random(TG_F32, C, 11, 1);
    return p;
}

static void problem_free(problem *p)
{
    tg_buffer *all[] = {&p->x,     &p->branch,   &p->ls,      &p->s,  &p->w,    &p->b,
                        &p->dy,    &p->dres,     &p->out_x,   &p->y,  &p->mean, &p->rstd,
                        &p->again, &p->out_dres, &p->dbranch, &p->dw, &p->db,   &p->dls};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tg_buffer_free(all[i]);
}

static tg_norm_forward forward_args(problem *p)
{
    const unsigned o = p->options;
    return (tg_norm_forward){.R = p->R,
                             .C = p->C,
                             .rows_per_sample = p->per,
                             .dtype = p->dtype,
                             .ldx = p->ldx,
                             .ldb = p->ldb,
                             .ldy = p->ldy,
                             .eps = 1e-6f,
                             .x = o & IN_PLACE ? p->out_x.data : p->x.data,
                             .branch = o & BRANCH ? p->branch.data : NULL,
                             .ls = o & SCALES ? p->ls.data : NULL,
                             .sample_scale = o & SCALES ? p->s.data : NULL,
                             .w = o & AFFINE ? p->w.data : NULL,
                             .b = o & AFFINE ? p->b.data : NULL,
                             .out_x = o & (BRANCH | IN_PLACE) ? p->out_x.data : NULL,
                             .out_y = o & NORM ? p->y.data : NULL,
                             .out_mean = p->mean.data,
                             .out_rstd = p->rstd.data};
}

static void run_forward(const tg_kern *kern, tg_stream *stream, problem *p)
{
    tg_norm_forward args = forward_args(p);
    kern->norm.forward(stream, &args);
}

/* Backward at x, with the statistics that `from` found. */
static tg_norm_backward backward_args(problem *p, const problem *from)
{
    const unsigned o = p->options;
    return (tg_norm_backward){.R = p->R,
                              .C = p->C,
                              .rows_per_sample = p->per,
                              .dtype = p->dtype,
                              .ldx = p->ldx,
                              .ldb = p->ldb,
                              .ldy = p->ldy,
                              .dy = o & NORM ? p->dy.data : NULL,
                              .x = o & BRANCH ? from->out_x.data : p->x.data,
                              .mean = from->mean.data,
                              .rstd = from->rstd.data,
                              .w = o & AFFINE ? p->w.data : NULL,
                              .dres = p->out_dres.data,
                              .dres_zero = o & FIRST,
                              .dw = o & AFFINE ? p->dw.data : NULL,
                              .db = o & AFFINE ? p->db.data : NULL,
                              .branch = p->branch.data,
                              .ls = o & SCALES ? p->ls.data : NULL,
                              .sample_scale = o & SCALES ? p->s.data : NULL,
                              .out_dbranch = o & BRANCH ? p->dbranch.data : NULL,
                              .dls = o & BRANCH && o & SCALES ? p->dls.data : NULL,
                              .b = o & AFFINE ? p->b.data : NULL,
                              .out_y = o & NORM ? p->again.data : NULL,
                              .accumulate = o & ACCUMULATE};
}

static void run_backward(const tg_kern *kern, tg_stream *stream, problem *p, const problem *from)
{
    tg_norm_backward args = backward_args(p, from);
    kern->norm.backward(stream, &args);
}

/* Forward and backward of rows [first, first + rows) alone. */
static void run_span(const tg_kern *kern, tg_stream *stream, problem *p, size_t first, size_t rows)
{
    const size_t element = tg_dtype_bytes(p->dtype), x = first * p->ldx;
    tg_norm_forward forward = forward_args(p);
    forward.row0 = first;
    forward.R = rows;
    forward.x += x;
    forward.out_x += x;
    forward.branch = (const char *)forward.branch + first * p->ldb * element;
    forward.out_y = (char *)forward.out_y + first * p->ldy * element;
    forward.out_mean += first;
    forward.out_rstd += first;
    kern->norm.forward(stream, &forward);
    tg_norm_backward backward = backward_args(p, p);
    backward.row0 = first;
    backward.R = rows;
    backward.dy = (const char *)backward.dy + first * p->ldy * element;
    backward.x += x;
    backward.mean += first;
    backward.rstd += first;
    backward.dres += x;
    backward.branch = forward.branch;
    backward.out_dbranch = (char *)backward.out_dbranch + first * p->ldb * element;
    backward.out_y = (char *)backward.out_y + first * p->ldy * element;
    backward.accumulate = first > 0 || (p->options & ACCUMULATE);
    kern->norm.backward(stream, &backward);
}

/* f = sum_r,c dy y as a function of one input of the reference. */
static double functional(problem *p)
{
    double f = 0;
    run_forward(tg_kern_ref(), NULL, p);
    for (size_t r = 0; r < p->R; r++)
        for (size_t c = 0; c < p->C; c++)
            f += (double)tg_buffer_get(&p->dy, r * p->ldy + c) *
                 tg_buffer_get(&p->y, r * p->ldy + c);
    return f;
}

/* (f(x + h) - f(x - h)) / 2h: f is a sum of fp32 numbers of size 3, rounded once each, so its error
 * over 2h is under R C 3 2^-24 / h; the third derivative adds h^2 times a number of size 10. */
static void check_slope(problem *p, tg_buffer *input, size_t i, double want)
{
    const double h = 0x1p-7;
    const float old = tg_buffer_get(input, i);
    tg_buffer_set(input, i, (float)(old + h));
    double up = functional(p);
    tg_buffer_set(input, i, (float)(old - h));
    double down = functional(p);
    tg_buffer_set(input, i, old);
    double bound = (double)(p->R * p->C) * 3 * EPS / 2 / h + 10 * h * h;
    if (fabs((up - down) / (2 * h) - want) > bound) {
        print_error("central difference %.9g, gradient %.9g, limit %.3g\n", (up - down) / (2 * h),
                    want, bound);
        fail();
    }
}

static void reference_backward_is_the_slope(void **state)
{
    (void)state;
    problem p = problem_new(7, 9, TG_F32, BRANCH | SCALES | AFFINE | NORM | FIRST | STRIDES);
    functional(&p);
    run_backward(tg_kern_ref(), NULL, &p, &p);
    for (size_t r = 0; r < p.R; r++)
        for (size_t c = 0; c < p.C; c++) {
            check_slope(&p, &p.x, r * p.ldx + c, tg_buffer_get(&p.out_dres, r * p.ldx + c));
            check_slope(&p, &p.branch, r * p.ldb + c, tg_buffer_get(&p.dbranch, r * p.ldb + c));
        }
    for (size_t c = 0; c < p.C; c++) {
        check_slope(&p, &p.w, c, tg_buffer_get(&p.dw, c));
        check_slope(&p, &p.b, c, tg_buffer_get(&p.db, c));
        check_slope(&p, &p.ls, c, tg_buffer_get(&p.dls, c));
    }
    problem_free(&p);
}

/* fp32 sums of C terms in VF_LANES >= 4 lanes: C/4 + 4 roundings of 2^-24 relative to the largest
 * partial sum; statistics of rows of size 4 and gradients of size 10. bf16 may round to the neighbour, 2^-7. */
static void compare(const problem *got, const problem *want)
{
    const double sums = ((double)got->C / 4 + 8) * EPS, rows = ((double)got->R / 4 + 64) * EPS;
    const double rounding = got->dtype == TG_BF16 ? 0x1p-7 : 2 * EPS;
    /* of a row of few columns the variance may be small, and 1/sqrt(var) magnifies */
    double largest = 1;
    for (size_t r = 0; r < got->R; r++)
        largest = fmax(largest, tg_buffer_get(&want->rstd, r));
    if (got->C == 1)
        largest = 8; /* x equals its mean exactly in both */
    assert_near(&got->out_x, &want->out_x, 8 * EPS, 2 * EPS, "x");
    assert_near(&got->mean, &want->mean, 4 * sums, 0, "mean");
    assert_near(&got->rstd, &want->rstd, 0, 4 * sums * largest * largest, "rstd");
    assert_near(&got->y, &want->y, 16 * sums * largest, rounding, "y");
    assert_near(&got->out_dres, &want->out_dres, 32 * sums * largest, 4 * EPS, "dres");
    assert_near(&got->again, &want->again, 16 * sums * largest, rounding, "y again");
    assert_near(&got->dbranch, &want->dbranch, 64 * sums * largest, rounding, "dbranch");
    double column = 5 * sqrt((double)got->R + 1) * largest;
    assert_near(&got->dw, &want->dw, 8 * (rows + sums) * column, 4 * EPS, "dw");
    assert_near(&got->db, &want->db, 8 * rows * column, 4 * EPS, "db");
    assert_near(&got->dls, &want->dls, 16 * (rows + sums) * column, 4 * EPS, "dls");
}

static void check_level(tg_stream *stream, size_t R, size_t C, tg_dtype dtype, unsigned options,
                        problem *out)
{
    problem ref = problem_new(R, C, dtype, options);
    *out = problem_new(R, C, dtype, options);
    run_forward(tg_kern_ref(), NULL, &ref);
    run_forward(tg_kern_select(stream), stream, out);
    run_backward(tg_kern_ref(), NULL, &ref, &ref);
    run_backward(tg_kern_select(stream), stream, out, &ref);
    compare(out, &ref);
    problem_free(&ref);
}

static void every_level_matches_the_reference(void **state)
{
    (void)state;
    const size_t widths[] = {1, 7, 192, 384, 385}, rows[] = {0, 1, 13, 70};
    const unsigned options[] = {
        NORM | AFFINE,
        NORM | FIRST | ACCUMULATE,
        NORM | AFFINE | IN_PLACE | STRIDES,
        BRANCH | SCALES,
        BRANCH | NORM | STRIDES | ACCUMULATE,
        BRANCH | NORM | AFFINE | SCALES | IN_PLACE | ACCUMULATE,
        BRANCH | NORM | AFFINE | SCALES | STRIDES | FIRST,
    };
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(1, (tg_cpu_level)level, &stream));
        for (int i = 0; i < 5 * 4 * 7 * 2; i++) {
            problem p;
            check_level(stream, rows[i / 5 % 4], widths[i % 5], i & 1 ? TG_BF16 : TG_F32,
                        options[i / 20 % 7], &p);
            problem_free(&p);
        }
        tg_stream_close(stream);
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    const unsigned options = BRANCH | NORM | AFFINE | SCALES | ACCUMULATE;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        problem one, many;
        for (int i = 0; i < 4; i++) {
            tg_stream *stream;
            assert_ok(tg_stream_open_cpu((int[]){1, 2, 3, 5}[i], (tg_cpu_level)level, &stream));
            check_level(stream, 2100, 97, TG_BF16, options, i ? &many : &one);
            tg_stream_close(stream);
            if (i == 0)
                continue;
            assert_same(&many.y, &one.y, "y");
            assert_same(&many.out_dres, &one.out_dres, "dres");
            assert_same(&many.dbranch, &one.dbranch, "dbranch");
            assert_same(&many.dw, &one.dw, "dw");
            assert_same(&many.db, &one.db, "db");
            assert_same(&many.dls, &one.dls, "dls");
            problem_free(&many);
        }
        problem_free(&one);
    }
}

static void spans_do_not_matter(void **state)
{
    (void)state;
    enum { ROWS = 700, SPAN = 2 * TG_NORM_CHUNK };
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--)
        for (int dtype = 0; dtype < 2; dtype++) {
            const unsigned options = BRANCH | NORM | AFFINE | SCALES | STRIDES;
            tg_stream *stream;
            assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
            const tg_kern *kern = tg_kern_select(stream);
            problem whole = problem_new(ROWS, 97, dtype ? TG_BF16 : TG_F32, options);
            problem spans = problem_new(ROWS, 97, dtype ? TG_BF16 : TG_F32, options);
            run_span(kern, stream, &whole, 0, ROWS);
            for (size_t r = 0; r < ROWS; r += SPAN)
                run_span(kern, stream, &spans, r, ROWS - r < SPAN ? ROWS - r : SPAN);
            assert_same(&spans.y, &whole.y, "y");
            assert_same(&whole.again, &whole.y, "y written again");
            assert_same(&spans.again, &whole.y, "y written again by spans");
            assert_same(&spans.out_dres, &whole.out_dres, "dres");
            assert_same(&spans.dbranch, &whole.dbranch, "dbranch");
            assert_same(&spans.dw, &whole.dw, "dw");
            assert_same(&spans.db, &whole.db, "db");
            assert_same(&spans.dls, &whole.dls, "dls");
            problem_free(&whole);
            problem_free(&spans);
            tg_stream_close(stream);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_backward_is_the_slope),
        cmocka_unit_test(every_level_matches_the_reference),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(spans_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
