/* GELU and its slope against erf, tanh and exp in double, for every instruction set, and sums of
 * columns against sums in double. */
#include "support/buffer.h"
#include "support/check.h"

#include "kern/cpu/columns.h"
#include "kern/cpu/gelu.h"

#include <math.h>

static const double EPS = 0x1p-23;

static double value(tg_gelu kind, double h)
{
    if (kind == TG_GELU_EXACT)
        return 0.5 * h * erfc(-h / sqrt(2));
    return h / (1 + exp(-2 * sqrt(2 / M_PI) * (h + 0.044715 * h * h * h)));
}

static double slope(tg_gelu kind, double h)
{
    if (kind == TG_GELU_EXACT)
        return 0.5 * erfc(-h / sqrt(2)) + h * exp(-0.5 * h * h) / sqrt(2 * M_PI);
    double u = sqrt(2 / M_PI) * (h + 0.044715 * h * h * h);
    double s = 1 / (1 + exp(-2 * u)), rest = 1 / (1 + exp(2 * u));
    return s + h * 2 * s * rest * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * h * h);
}

/* -20..20 in even steps, and the corners. */
static tg_buffer inputs(tg_dtype dtype)
{
    enum { N = 40013 };
    const float corners[] = {0, -0.0f, 1e-38f, -1e-38f, 1e30f, -1e3f, 5.25f, -5.25f, 5.0833f, 14};
    const size_t count = sizeof corners / sizeof *corners;
    tg_buffer h = tg_buffer_new(dtype, N);
    for (size_t i = 0; i < N; i++)
        tg_buffer_set(&h, i, i < count ? corners[i] : -20 + 40 * (float)i / N);
    return h;
}

/* fp32: the bound of gelu.h. The slope's two terms cancel on the left, so its bound is that of the
 * terms. exp stops at 1e-38, just above the smallest normal number. */
static double limit(tg_gelu kind, double h, double terms)
{
    double u = kind == TG_GELU_TANH && h < 0 ? sqrt(2 / M_PI) * fabs(h + 0.044715 * h * h * h) : 0;
    return fmin(5 + 3 * u, 1e3) * EPS * terms + 0x1p-118 * (8 + fabs(h));
}

static void assert_off(double off, double bound, double h, const char *what)
{
    if (off <= bound)
        return;
    print_error("%s at h = %.9g: off by %.3g, limit %.3g\n", what, h, off, bound);
    fail();
}

static void check_f32(tg_cpu_level level, tg_gelu kind)
{
    tg_buffer h = inputs(TG_F32), dg = tg_buffer_random(TG_F32, h.n, 3, 1);
    tg_buffer g = tg_buffer_new(TG_F32, h.n), again = tg_buffer_new(TG_F32, h.n);
    tg_buffer dh = tg_buffer_new(TG_F32, h.n);
    tg_gelu_forward_rows(level, kind, TG_F32, h.n, h.data, g.data);
    tg_gelu_backward(level, kind, TG_F32, h.n, h.data, dg.data, again.data, dh.data);
    assert_same(&again, &g, "g of backward");
    for (size_t i = 0; i < h.n; i++) {
        double x = tg_buffer_get(&h, i), d = tg_buffer_get(&dg, i);
        double want = value(kind, x), terms = fabs(want / (x ? x : 1));
        double off = fabs(tg_buffer_get(&g, i) - want);
        assert_off(off, limit(kind, x, fabs(want)), x, "g");
        terms += fabs(slope(kind, x) - want / (x ? x : 1));
        off = fabs(tg_buffer_get(&dh, i) - d * slope(kind, x));
        assert_off(off, limit(kind, x, 2 * fabs(d) * terms), x, "dh");
    }
    tg_buffer_free(&h);
    tg_buffer_free(&dg);
    tg_buffer_free(&g);
    tg_buffer_free(&again);
    tg_buffer_free(&dh);
}

/* bf16: the header's 1.1e-5 |h| and 4e-5 |dg| before the final rounding of 2^-8. */
static void check_bf16(tg_cpu_level level, tg_gelu kind)
{
    tg_buffer h = inputs(TG_BF16), dg = tg_buffer_random(TG_BF16, h.n, 3, 1);
    tg_buffer g = tg_buffer_new(TG_BF16, h.n), again = tg_buffer_new(TG_BF16, h.n);
    tg_buffer dh = tg_buffer_copy(&dg);
    tg_gelu_forward_rows(level, kind, TG_BF16, h.n, h.data, g.data);
    tg_gelu_backward(level, kind, TG_BF16, h.n, h.data, dh.data, again.data, dh.data);
    assert_same(&again, &g, "g of backward");
    for (size_t i = 0; i < h.n; i++) {
        double x = tg_buffer_get(&h, i), d = tg_buffer_get(&dg, i);
        double want = value(kind, x), want_slope = slope(kind, x);
        double off = fabs(tg_buffer_get(&g, i) - want);
        assert_off(off, 0x1.01p-8 * fabs(want) + 1.1e-5 * fabs(x) + 0x1p-125, x, "bf16 g");
        off = fabs(tg_buffer_get(&dh, i) - d * want_slope);
        assert_off(off, 0x1.01p-8 * fabs(d * want_slope) + 4e-5 * fabs(d) + 0x1p-125, x, "bf16 dh");
    }
    tg_buffer_free(&h);
    tg_buffer_free(&dg);
    tg_buffer_free(&g);
    tg_buffer_free(&again);
    tg_buffer_free(&dh);
}

static void every_level_is_accurate(void **state)
{
    (void)state;
    for (int level = TG_CPU_PORTABLE; level <= (int)tg_cpu_level_detect(); level++)
        for (int kind = TG_GELU_EXACT; kind <= TG_GELU_TANH; kind++) {
            check_f32((tg_cpu_level)level, (tg_gelu)kind);
            check_bf16((tg_cpu_level)level, (tg_gelu)kind);
        }
}

/* Any split of the span gives the same bits; nothing outside is written; g may be left out. */
static void split_does_not_matter(void **state)
{
    (void)state;
    for (int level = TG_CPU_PORTABLE; level <= (int)tg_cpu_level_detect(); level++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            tg_dtype dtype = bf16 ? TG_BF16 : TG_F32;
            tg_buffer h = tg_buffer_random(dtype, 77, 5, 2), dg = tg_buffer_random(dtype, 77, 6, 1);
            tg_buffer whole = tg_buffer_new(dtype, 77), parts = tg_buffer_new(dtype, 77);
            size_t bytes = tg_dtype_bytes(dtype);
            tg_gelu_backward((tg_cpu_level)level, TG_GELU_EXACT, dtype, 77, h.data, dg.data, NULL,
                             whole.data);
            const size_t cuts[] = {0, 1, 2, 9, 40, 77};
            for (int i = 0; i < 5; i++)
                tg_gelu_backward((tg_cpu_level)level, TG_GELU_EXACT, dtype, cuts[i + 1] - cuts[i],
                                 (char *)h.data + cuts[i] * bytes,
                                 (char *)dg.data + cuts[i] * bytes, NULL,
                                 (char *)parts.data + cuts[i] * bytes);
            assert_same(&parts, &whole, "dh in parts");
            tg_buffer_free(&h);
            tg_buffer_free(&dg);
            tg_buffer_free(&whole);
            tg_buffer_free(&parts);
        }
}

static void check_columns(tg_cpu_level level, tg_dtype dtype, size_t R, size_t C, bool accumulate)
{
    const size_t ld = C + 3;
    tg_buffer dy = tg_buffer_random(dtype, R * ld, 11, 1);
    tg_buffer out = tg_buffer_random(TG_F32, C, 12, 1), want = tg_buffer_copy(&out);
    tg_column_sums(level, dtype, R, C, ld, dy.data, out.data, accumulate);
    for (size_t c = 0; c < C; c++) {
        double sum = accumulate ? tg_buffer_get(&want, c) : 0;
        for (size_t r = 0; r < R; r++)
            sum += tg_buffer_get(&dy, r * ld + c);
        tg_buffer_set(&want, c, (float)sum);
    }
    /* at most 64 + R/64 roundings of partial sums, which stay under 5 sqrt(R) */
    assert_near(&out, &want, (64 + (double)R / 64) * EPS / 2 * 5 * sqrt((double)R + 1), 0,
                "column sums");
    tg_buffer_free(&dy);
    tg_buffer_free(&out);
    tg_buffer_free(&want);
}

static void columns_are_summed(void **state)
{
    (void)state;
    const size_t rows[] = {0, 1, 63, 65, 1000}, columns[] = {1, 7, 64, 192, 385};
    for (int level = TG_CPU_PORTABLE; level <= (int)tg_cpu_level_detect(); level++)
        for (int i = 0; i < 25; i++)
            for (int k = 0; k < 4; k++)
                check_columns((tg_cpu_level)level, k & 1 ? TG_BF16 : TG_F32, rows[i / 5],
                              columns[i % 5], k & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_is_accurate),
        cmocka_unit_test(split_does_not_matter),
        cmocka_unit_test(columns_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
