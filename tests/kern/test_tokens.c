/* Patches, tokens, pooling and conversions: every instruction set against the reference, the
 * backward operations as transposes of the forward ones, the same bits for any thread count. */
#include "support/buffer.h"
#include "support/check.h"

#include "kern/kern.h"

#include <math.h>

static const double EPS = 0x1p-23;

typedef struct outputs {
    tg_buffer patches, x, dpatch, dprefix, dpos, mean, dres, converted, back;
} outputs;

typedef struct shape {
    tg_tokens_shape tokens;
    tg_patch_shape patch;
    bool accumulate;
    bool frozen; /* no gradients of prefix and positions wanted */
} shape;

/* prefix and pos gradients, and dres, hold numbers before they are added to or overwritten. */
static outputs run(const tg_kern *kern, tg_stream *stream, const shape *s)
{
    const tg_tokens_shape *t = &s->tokens;
    const size_t B = t->B, C = t->C, T = t->N + t->prefix_count, first = t->prefix_count;
    const size_t pixels = s->patch.B * 3 * s->patch.S_h * s->patch.S_w;
    tg_buffer image = tg_buffer_random(TG_F32, pixels, 1, 2);
    tg_buffer patch = tg_buffer_random(t->dtype, B * t->N * C, 2, 1);
    tg_buffer prefix = tg_buffer_random(TG_F32, first * C, 3, 1);
    tg_buffer pos = tg_buffer_random(TG_F32, t->N * C, 4, 1);
    tg_buffer dx = tg_buffer_random(TG_F32, B * T * C, 5, 1);
    tg_buffer d_out = tg_buffer_random(TG_F32, B * C, 6, 1);
    outputs o = {.patches = tg_buffer_new(s->patch.dtype, pixels),
                 .x = tg_buffer_new(TG_F32, B * T * C),
                 .dpatch = tg_buffer_new(t->dtype, B * t->N * C),
                 .dprefix = tg_buffer_random(TG_F32, first * C, 7, 1),
                 .dpos = tg_buffer_random(TG_F32, t->N * C, 8, 1),
                 .mean = tg_buffer_new(TG_F32, B * C),
                 .dres = s->accumulate ? tg_buffer_copy(&dx) : tg_buffer_new(TG_F32, B * T * C),
                 .converted = tg_buffer_new(t->dtype, dx.n),
                 .back = tg_buffer_new(TG_F32, dx.n)};
    kern->patch.forward(stream, &s->patch, image.data, o.patches.data);
    kern->tokens.assemble(stream, t, patch.data, prefix.data, pos.data, o.x.data);
    kern->tokens.assemble_backward(stream, t, dx.data, o.dpatch.data,
                                   s->frozen ? NULL : o.dprefix.data,
                                   s->frozen ? NULL : o.dpos.data, s->accumulate);
    kern->tokens.mean(stream, B, T, C, first, dx.data, o.mean.data);
    kern->tokens.mean_backward(stream, B, T, C, first, d_out.data, o.dres.data, !s->accumulate);
    kern->tokens.from_f32(stream, dx.n, dx.data, t->dtype, o.converted.data);
    kern->tokens.to_f32(stream, dx.n, o.converted.data, t->dtype, o.back.data);
    tg_buffer *all[] = {&image, &patch, &prefix, &pos, &dx, &d_out};
    for (int i = 0; i < 6; i++)
        tg_buffer_free(all[i]);
    return o;
}

static void outputs_free(outputs *o)
{
    tg_buffer *all[] = {&o->patches, &o->x,    &o->dpatch,    &o->dprefix, &o->dpos,
                        &o->mean,    &o->dres, &o->converted, &o->back};
    for (int i = 0; i < 9; i++)
        tg_buffer_free(all[i]);
}

/* Copies, single sums and conversions have the same bits; sums over samples or tokens round once
 * per term, each partial sum under 5 sqrt(terms). */
static void compare(const outputs *got, const outputs *want, const shape *s)
{
    const double B = (double)s->tokens.B, T = (double)(s->tokens.N + s->tokens.prefix_count);
    assert_same(&got->patches, &want->patches, "patches");
    assert_same(&got->x, &want->x, "x");
    assert_same(&got->dpatch, &want->dpatch, "dpatch");
    assert_same(&got->converted, &want->converted, "converted");
    assert_same(&got->back, &want->back, "converted back");
    assert_near(&got->dprefix, &want->dprefix, B * EPS * 5 * sqrt(B + 1), 0, "dprefix");
    assert_near(&got->dpos, &want->dpos, B * EPS * 5 * sqrt(B + 1), 0, "dpos");
    assert_near(&got->mean, &want->mean, T * EPS * 5 / sqrt(T), 2 * EPS, "mean");
    assert_near(&got->dres, &want->dres, 4 * EPS, 2 * EPS, "dres");
}

static shape shape_of(size_t B, size_t P, size_t C, size_t prefix, tg_dtype dtype, unsigned bits)
{
    return (shape){.tokens = {.B = B, .N = 12, .C = C, .prefix_count = prefix, .dtype = dtype},
                   .patch = {.B = B, .S_h = 2 * P, .S_w = 3 * P, .P = P, .dtype = dtype},
                   .accumulate = bits & 1,
                   .frozen = bits & 2};
}

static void every_level_matches_the_reference(void **state)
{
    (void)state;
    const size_t widths[] = {1, 7, 192, 384, 385}, sides[] = {1, 4, 14, 16, 33};
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(1, (tg_cpu_level)level, &stream));
        for (unsigned i = 0; i < 5 * 8; i++) {
            shape s = shape_of(1 + i % 3, sides[i % 5], widths[i % 5], i % 4,
                               i & 8 ? TG_BF16 : TG_F32, i / 5 % 4);
            outputs got = run(tg_kern_select(stream), stream, &s);
            outputs want = run(tg_kern_ref(), NULL, &s);
            compare(&got, &want, &s);
            outputs_free(&got);
            outputs_free(&want);
        }
        tg_stream_close(stream);
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    shape s = shape_of(9, 16, 385, 2, TG_BF16, 1);
    outputs one = {0};
    const int threads[] = {1, 2, 3, 5};
    for (int i = 0; i < 4; i++) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(threads[i], TG_CPU_PORTABLE, &stream));
        outputs many = run(tg_kern_select(stream), stream, &s);
        tg_stream_close(stream);
        if (i == 0) {
            one = many;
            continue;
        }
        assert_same(&many.dpos, &one.dpos, "dpos");
        assert_same(&many.dprefix, &one.dprefix, "dprefix");
        assert_same(&many.mean, &one.mean, "mean");
        assert_same(&many.dres, &one.dres, "dres");
        assert_same(&many.x, &one.x, "x");
        assert_same(&many.patches, &one.patches, "patches");
        outputs_free(&many);
    }
    outputs_free(&one);
}

/* Infinities, NaN, ties and the largest number go through bf16 as tg_bf16_from_f32 says. */
static void odd_numbers_are_converted(void **state)
{
    (void)state;
    const float odd[] = {INFINITY,      -INFINITY, NAN,       3.4028235e38f, -3.4028235e38f,
                         0.0f,          -0.0f,     0x1.01p0f, 0x1.03p0f,     0x1.010002p0f,
                         0x1.00fffep0f, 0x1p-126f, 1.0f};
    enum { N = sizeof odd / sizeof *odd };
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        assert_ok(tg_stream_open_cpu(1, (tg_cpu_level)level, &stream));
        uint16_t got[2 * N];
        float twice[2 * N];
        for (int i = 0; i < 2 * N; i++)
            twice[i] = odd[i % N];
        tg_kern_select(stream)->tokens.from_f32(stream, 2 * N, twice, TG_BF16, got);
        for (int i = 0; i < 2 * N; i++)
            if (isnan(twice[i]))
                assert_true(isnan(tg_f32_from_bf16(got[i])));
            else
                assert_int_equal(got[i], tg_bf16_from_f32(twice[i]));
        tg_stream_close(stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_matches_the_reference),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(odd_numbers_are_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
