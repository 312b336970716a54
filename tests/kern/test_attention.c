/* Every level's attention against double precision. A limit is the number of roundings on the way
 * (u each: 2^-8 for bf16, 2^-24 for fp32) times the same sum over absolute values, plus what fp32
 * sums of that length and the exponent's own error (the scores' rounding) can add. */
#include "support/check.h"

#include "base/rng.h"
#include "kern/kern.h"
#include "kern/ref/ref.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, POISON = 0xFF, MOST_KEYS = 1100 };

typedef struct array {
    size_t n;
    double *value; /* what it holds, or should */
    double *abs;   /* the same sum over absolute values */
    float *f32;    /* given to, or written by, the kernel; with GUARD elements around */
    uint16_t *bf16;
} array;

typedef struct attention_case {
    tg_attention_shape shape;
    array qkv, o, d_o, dqkv, lse;
    double score_max; /* largest scale * sum |q||k| */
} attention_case;

static void array_new(array *a, size_t n)
{
    a->n = n;
    a->value = calloc(n + 1, sizeof *a->value);
    a->abs = calloc(n + 1, sizeof *a->abs);
    a->f32 = aligned_alloc(64, (n + 2 * GUARD + 63) / 64 * 64 * 4);
    a->bf16 = aligned_alloc(64, (n + 2 * GUARD + 63) / 64 * 64 * 2);
    assert_true(a->value && a->abs && a->f32 && a->bf16);
}

static void array_free(array *a)
{
    free(a->value);
    free(a->abs);
    free(a->f32);
    free(a->bf16);
}

static void *array_data(const array *a, tg_dtype dtype)
{
    return dtype == TG_BF16 ? (void *)(a->bf16 + GUARD) : (void *)(a->f32 + GUARD);
}

static void array_poison(array *a)
{
    memset(a->f32, POISON, (a->n + 2 * GUARD) * 4);
    memset(a->bf16, POISON, (a->n + 2 * GUARD) * 2);
}

/* Gives the kernel the values, and the oracle what the kernel sees. */
static void array_publish(array *a, tg_dtype dtype)
{
    array_poison(a);
    for (size_t i = 0; i < a->n; i++) {
        a->f32[GUARD + i] = (float)a->value[i];
        a->bf16[GUARD + i] = tg_bf16_from_f32((float)a->value[i]);
        a->value[i] = dtype == TG_BF16 ? (double)tg_f32_from_bf16(a->bf16[GUARD + i])
                                       : (double)a->f32[GUARD + i];
    }
}

static void array_check(const array *a, tg_dtype dtype, double relative, const char *name,
                        const char *where)
{
    char what[200];
    snprintf(what, sizeof what, "%s of %s", name, where);
    const unsigned char *begin = dtype == TG_BF16 ? (void *)a->bf16 : (void *)a->f32;
    size_t size = tg_dtype_bytes(dtype);
    for (size_t i = 0; i < GUARD * size; i++)
        if (begin[i] != POISON || begin[(GUARD + a->n) * size + i] != POISON)
            fail_msg("%s: written outside the array", what);
    for (size_t i = 0; i < a->n; i++) {
        double got = dtype == TG_BF16 ? (double)tg_f32_from_bf16(a->bf16[GUARD + i])
                                      : (double)a->f32[GUARD + i];
        double limit = relative * a->abs[i] + 1e-20;
        if (!(fabs(got - a->value[i]) <= limit))
            fail_msg("%s[%zu] is %g, wanted %g within %g", what, i, got, a->value[i], limit);
    }
}

static size_t packed(const tg_attention_shape *s, size_t b, size_t t, size_t which, size_t h)
{
    return (((b * s->T + t) * 3 + which) * s->H + h) * s->D;
}

static size_t o_at(const tg_attention_shape *s, size_t b, size_t t, size_t h)
{
    return ((b * s->T_q + t) * s->H + h) * s->D;
}

static double dot(const double *a, const double *b, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += a[d] * b[d];
    return sum;
}

static double dot_abs(const double *a, const double *b, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += fabs(a[d] * b[d]);
    return sum;
}

static void add(array *a, size_t at, double factor, double factor_abs, const double *row, size_t D)
{
    for (size_t d = 0; d < D; d++) {
        a->value[at + d] += factor * row[d];
        a->abs[at + d] += factor_abs * fabs(row[d]);
    }
}

static void oracle_forward_row(attention_case *c, size_t b, size_t h, size_t t)
{
    const tg_attention_shape *s = &c->shape;
    const double *x = c->qkv.value, *q = x + packed(s, b, t, 0, h);
    double score[MOST_KEYS], max = -INFINITY, sum = 0;
    for (size_t k = 0; k < s->T; k++) {
        const double *key = x + packed(s, b, k, 1, h);
        score[k] = s->scale * dot(q, key, s->D);
        c->score_max = fmax(c->score_max, s->scale * dot_abs(q, key, s->D));
        max = fmax(max, score[k]);
    }
    for (size_t k = 0; k < s->T; k++)
        sum += exp(score[k] - max);
    for (size_t k = 0; k < s->T; k++) {
        double p = exp(score[k] - max) / sum;
        add(&c->o, o_at(s, b, t, h), p, p, x + packed(s, b, k, 2, h), s->D);
    }
    size_t row = (b * s->H + h) * s->T_q + t;
    c->lse.value[row] = max + log(sum);
    c->lse.abs[row] = 1;
}

static void oracle_backward_row(attention_case *c, size_t b, size_t h, size_t t)
{
    const tg_attention_shape *s = &c->shape;
    const double *x = c->qkv.value, *q = x + packed(s, b, t, 0, h);
    const double *d_o = c->d_o.value + o_at(s, b, t, h), *o = c->o.value + o_at(s, b, t, h);
    double delta = dot(o, d_o, s->D), delta_abs = dot_abs(o, d_o, s->D);
    for (size_t k = 0; k < s->T; k++) {
        const double *key = x + packed(s, b, k, 1, h), *v = x + packed(s, b, k, 2, h);
        double p = exp(s->scale * dot(q, key, s->D) - c->lse.value[(b * s->H + h) * s->T_q + t]);
        double ds = s->scale * p * (dot(d_o, v, s->D) - delta);
        double ds_abs = s->scale * p * (dot_abs(d_o, v, s->D) + delta_abs);
        add(&c->dqkv, packed(s, b, t, 0, h), ds, ds_abs, key, s->D);
        add(&c->dqkv, packed(s, b, k, 1, h), ds, ds_abs, q, s->D);
        add(&c->dqkv, packed(s, b, k, 2, h), p, p, d_o, s->D);
    }
}

static void for_rows(attention_case *c, void (*row)(attention_case *, size_t, size_t, size_t))
{
    for (size_t b = 0; b < c->shape.B; b++)
        for (size_t h = 0; h < c->shape.H; h++)
            for (size_t t = 0; t < c->shape.T_q; t++)
                row(c, b, h, t);
}

static void case_new(attention_case *c, const tg_attention_shape *s, double amplitude)
{
    *c = (attention_case){.shape = *s};
    assert_true(s->T <= MOST_KEYS);
    tg_rng rng = tg_rng_init(11, s->T, s->D, TG_RNG_TEST);
    size_t n_packed = s->B * s->T * 3 * s->H * s->D, n_o = s->B * s->T_q * s->H * s->D;
    array_new(&c->qkv, n_packed);
    array_new(&c->dqkv, n_packed);
    array_new(&c->o, n_o);
    array_new(&c->d_o, n_o);
    array_new(&c->lse, s->B * s->H * s->T_q);
    for (size_t i = 0; i < n_packed; i++) {
        bool is_v = i / (s->H * s->D) % 3 == 2;
        c->qkv.value[i] = (is_v ? 1 : amplitude) * (double)tg_rng_normal(&rng);
    }
    for (size_t i = 0; i < n_o; i++)
        c->d_o.value[i] = (double)tg_rng_normal(&rng);
    array_publish(&c->qkv, s->dtype);
    array_publish(&c->d_o, s->dtype);
    for_rows(c, oracle_forward_row);
    array_poison(&c->o);
    array_poison(&c->lse);
    array_poison(&c->dqkv);
}

static void case_free(attention_case *c)
{
    array_free(&c->qkv);
    array_free(&c->dqkv);
    array_free(&c->o);
    array_free(&c->d_o);
    array_free(&c->lse);
}

/* Absolute error of a score, which is a relative error of P: fp32 sums, and the exponential. */
static double exponent_error(const attention_case *c)
{
    double eps = ldexp(1, -24), own = c->shape.dtype == TG_BF16 ? 3e-5 : 4e-7;
    return own + (double)(c->shape.D + 4) * eps * c->score_max;
}

static void run_forward(attention_case *c, tg_stream *stream, bool with_lse)
{
    const tg_attention_shape *s = &c->shape;
    assert_ok(tg_kern_select(stream)->attention.forward(stream, s, array_data(&c->qkv, s->dtype),
                                                        array_data(&c->o, s->dtype),
                                                        with_lse ? c->lse.f32 + GUARD : NULL));
}

static void run_backward(attention_case *c, tg_stream *stream)
{
    const tg_attention_shape *s = &c->shape;
    assert_ok(tg_kern_select(stream)->attention.backward(
        stream, s, array_data(&c->qkv, s->dtype), array_data(&c->o, s->dtype), c->lse.f32 + GUARD,
        array_data(&c->d_o, s->dtype), array_data(&c->dqkv, s->dtype)));
}

static void check_case(tg_stream *stream, const tg_attention_shape *s, double amplitude)
{
    attention_case c;
    char where[160];
    case_new(&c, s, amplitude);
    double u = s->dtype == TG_BF16 ? ldexp(1, -8) : ldexp(1, -24);
    double sums = (double)(s->T + s->D + 8) * ldexp(1, -24), e = exponent_error(&c);
    snprintf(where, sizeof where, "%s %s T=%zu T_q=%zu D=%zu amplitude %g",
             tg_cpu_level_name(tg_stream_level(stream)), tg_dtype_name(s->dtype), s->T, s->T_q,
             s->D, amplitude);
    run_forward(&c, stream, true);
    array_check(&c.o, s->dtype, 2.02 * u + sums + 2 * e, "o", where);
    array_check(&c.lse, TG_F32, e + ldexp(c.score_max + 8, -22), "lse", where);
    array_publish(&c.o, s->dtype);
    array_publish(&c.lse, TG_F32);
    for_rows(&c, oracle_backward_row);
    run_backward(&c, stream);
    array_check(&c.dqkv, s->dtype, 2.02 * u + sums + 2 * e + ldexp(c.score_max + 8, -22), "dqkv",
                where);
    case_free(&c);
}

/* The bf16 backward takes keys in groups of about 2^18 / T_q: the last three shapes have two, two and
 * three of them, the last one partly filled. Amplitude 10 on q and on k makes the logits 100 times
 * larger. */
static void check_level(tg_stream *stream, tg_dtype dtype)
{
    static const struct {
        size_t B, T, H, D, T_q;
    } shapes[] = {{2, 197, 3, 64, 197}, {1, 65, 2, 32, 65},   {1, 50, 2, 48, 50},
                  {2, 37, 2, 80, 5},    {1, 33, 1, 1, 33},    {1, 1, 1, 64, 1},
                  {3, 17, 2, 7, 16},    {1, 97, 1, 129, 1},   {1, 257, 1, 33, 257},
                  {1, 512, 1, 16, 512}, {1, 577, 1, 24, 577}, {1, 1031, 1, 8, 300},
                  {1, 799, 1, 8, 799}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tg_attention_shape s = {.B = shapes[i].B,
                                .T = shapes[i].T,
                                .H = shapes[i].H,
                                .D = shapes[i].D,
                                .T_q = shapes[i].T_q,
                                .dtype = dtype,
                                .scale = 1 / sqrtf((float)shapes[i].D)};
        check_case(stream, &s, 1);
        if (i < 4)
            check_case(stream, &s, 10);
    }
}

/* A process may lower its cap but not raise it, so levels are visited downwards. */
static void every_level(void **state)
{
    (void)state;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(2, (tg_cpu_level)level, &stream));
        check_level(stream, TG_F32);
        if (tg_stream_has_bf16(stream))
            check_level(stream, TG_BF16);
        tg_stream_close(stream);
    }
}

/* One, two and five threads give the same bits, also where heads are split into parts; lse is
 * optional; tokens beyond T_q have no dq. */
static void threads_do_not_matter_at(double amplitude)
{
    tg_cpu_level level = tg_cpu_level_detect();
    tg_attention_shape s = {.B = 1,
                            .T = 211,
                            .H = 3,
                            .D = 64,
                            .T_q = 200,
                            .scale = 0.125f,
                            .dtype = level >= TG_CPU_AVX512_BF16 ? TG_BF16 : TG_F32};
    const int threads[] = {1, 2, 5};
    attention_case first, c;
    size_t size = tg_dtype_bytes(s.dtype);
    for (int i = 0; i < 3; i++) {
        tg_stream *stream;
        case_new(&c, &s, amplitude);
        assert_ok(tg_stream_open_cpu(threads[i], level, &stream));
        run_forward(&c, stream, true);
        run_backward(&c, stream);
        if (i == 0) {
            first = c;
            for (size_t t = s.T_q; t < s.T; t++)
                for (size_t d = 0; d < s.H * s.D * size; d++)
                    assert_int_equal(
                        ((char *)array_data(&c.dqkv, s.dtype))[packed(&s, 0, t, 0, 0) * size + d],
                        0);
        } else {
            assert_memory_equal(c.o.bf16, first.o.bf16, (c.o.n + GUARD) * 2);
            assert_memory_equal(c.o.f32, first.o.f32, (c.o.n + GUARD) * 4);
            assert_memory_equal(c.lse.f32, first.lse.f32, (c.lse.n + GUARD) * 4);
            assert_memory_equal(c.dqkv.bf16, first.dqkv.bf16, (c.dqkv.n + GUARD) * 2);
            assert_memory_equal(c.dqkv.f32, first.dqkv.f32, (c.dqkv.n + GUARD) * 4);
            array_poison(&c.o);
            run_forward(&c, stream, false);
            assert_memory_equal(c.o.bf16, first.o.bf16, (c.o.n + GUARD) * 2);
            case_free(&c);
        }
        tg_stream_close(stream);
    }
    case_free(&first);
}

/* At 4 some blocks of rows have scores too far from 0 for the short way to their weights. */
static void threads_do_not_matter(void **state)
{
    (void)state;
    threads_do_not_matter_at(1);
    threads_do_not_matter_at(4);
}

/* What is no number reaches the row that read it and no other: a step finds it by its gradient's norm. */
static void not_a_number_stays_one(void **state)
{
    (void)state;
    enum { T = 70, D = 64, ROW = 37 };
    tg_cpu_level level = tg_cpu_level_detect();
    const tg_attention_shape s = {.B = 1,
                                  .T = T,
                                  .H = 1,
                                  .D = D,
                                  .T_q = T,
                                  .scale = 0.125f,
                                  .dtype = level >= TG_CPU_AVX512_BF16 ? TG_BF16 : TG_F32};
    attention_case c;
    tg_stream *stream;
    case_new(&c, &s, 1);
    assert_ok(tg_stream_open_cpu(1, level, &stream));
    run_forward(&c, stream, true);
    float clean[T];
    memcpy(clean, c.lse.f32 + GUARD, sizeof clean);
    c.qkv.f32[GUARD + packed(&s, 0, ROW, 0, 0) + 5] = NAN;
    c.qkv.bf16[GUARD + packed(&s, 0, ROW, 0, 0) + 5] = 0x7FC0;
    run_forward(&c, stream, true);
    for (size_t t = 0; t < T; t++) {
        size_t at = GUARD + o_at(&s, 0, t, 0);
        float o = s.dtype == TG_BF16 ? tg_f32_from_bf16(c.o.bf16[at]) : c.o.f32[at];
        assert_true(isnan(o) == (t == ROW));
        if (t != ROW)
            assert_memory_equal(&c.lse.f32[GUARD + t], &clean[t], sizeof clean[t]);
    }
    case_free(&c);
    tg_stream_close(stream);
}

enum { FAR_T = 70, FAR_D = 64, FAR_ROW = 37, FAR_KEY = 11 };

static float number_at(const array *a, tg_dtype dtype, size_t i)
{
    return dtype == TG_BF16 ? tg_f32_from_bf16(a->bf16[GUARD + i]) : a->f32[GUARD + i];
}

/* Row FAR_ROW has no answer, and, unless a key is huge for all of them, each other row has one. */
static void check_far_row(const attention_case *c, bool only, const char *where)
{
    const tg_attention_shape *s = &c->shape;
    for (size_t t = 0; t < FAR_T; t++)
        for (size_t d = 0; d < FAR_D; d++) {
            float o = number_at(&c->o, s->dtype, o_at(s, 0, t, 0) + d);
            float dq = number_at(&c->dqkv, s->dtype, packed(s, 0, t, 0, 0) + d);
            float lse = c->lse.f32[GUARD + t];
            const bool far = t == FAR_ROW;
            if ((far || only) && (isnan(o) != far || isnan(lse) != far || isnan(dq) != far))
                fail_msg("%s: o[%zu][%zu] %g, lse %g, dq %g", where, t, d, o, lse, dq);
        }
}

/* q of FAR_ROW is `factor` times as large; 0: all ones, against a key of minus the largest numbers. */
static void overflow_at(tg_cpu_level level, tg_dtype dtype, double factor)
{
    const tg_attention_shape s = {
        .B = 1, .T = FAR_T, .H = 1, .D = FAR_D, .T_q = FAR_T, .scale = 0.125f, .dtype = dtype};
    attention_case c;
    tg_stream *stream;
    case_new(&c, &s, 1);
    for (size_t d = 0; d < FAR_D; d++) {
        double *q = &c.qkv.value[packed(&s, 0, FAR_ROW, 0, 0) + d];
        *q = factor != 0 ? factor * *q : 1;
        if (factor == 0)
            c.qkv.value[packed(&s, 0, FAR_KEY, 1, 0) + d] = -3e38;
    }
    array_publish(&c.qkv, dtype);
    assert_ok(tg_stream_open_cpu(2, level, &stream));
    char where[80];
    snprintf(where, sizeof where, "%s, %s, factor %g", tg_cpu_level_name(level),
             tg_dtype_name(dtype), factor);
    run_forward(&c, stream, true);
    run_backward(&c, stream);
    check_far_row(&c, factor != 0, where);
    void *qkv = array_data(&c.qkv, dtype), *o = array_data(&c.o, dtype);
    float *lse = c.lse.f32 + GUARD;
    assert_ok(tg_ref_attention_forward(NULL, &s, qkv, o, lse));
    assert_ok(tg_ref_attention_backward(NULL, &s, qkv, o, lse, array_data(&c.d_o, dtype),
                                        array_data(&c.dqkv, dtype)));
    check_far_row(&c, factor != 0, "reference");
    case_free(&c);
    tg_stream_close(stream);
}

/* At every level and in the reference, from scores that fp32 holds but cannot weigh to those that it
 * does not hold. */
static void overflow_is_no_answer(void **state)
{
    (void)state;
    static const double factors[] = {1e9, -1e9, 1e15, -1e20, 1e30, 1e37, 0};
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--)
        for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
            overflow_at((tg_cpu_level)level, TG_F32, factors[i]);
            if (level >= TG_CPU_AVX512_BF16)
                overflow_at((tg_cpu_level)level, TG_BF16, factors[i]);
        }
}

static void empty_shapes_do_nothing(void **state)
{
    (void)state;
    tg_stream *stream;
    assert_ok(tg_stream_open_cpu(1, tg_cpu_level_detect(), &stream));
    tg_attention_shape s = {.B = 2, .T = 3, .H = 2, .D = 4, .T_q = 0, .scale = 1, .dtype = TG_F32};
    attention_case c;
    case_new(&c, &s, 1);
    run_forward(&c, stream, true);
    run_backward(&c, stream); /* no query: all gradients are 0, as dqkv.value */
    array_check(&c.dqkv, TG_F32, 0, "dqkv", "no query");
    case_free(&c);
    tg_stream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(not_a_number_stays_one),
        cmocka_unit_test(overflow_is_no_answer),
        cmocka_unit_test(empty_shapes_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
