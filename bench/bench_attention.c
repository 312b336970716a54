/* Speed of attention at every instruction set level of this machine.
 *
 *   bench_attention [THREADS [SECONDS_PER_LINE]]
 *
 * For ViT-Ti, S and B at 224 px and batch 32 it prints the fastest milliseconds of a layer and
 * GFLOP/s, counted as 4 T T D per head forward and 10 T T D backward; and beside them the time of that
 * layer's qkv product ([B T, C] x [C, 3C]) as a step does it, at the machine's highest level
 * throughout. One line per level, dtype and model. */
#include "base/rng.h"
#include "kern/kern.h"
#include "os/clock.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct bench {
    const tg_kern *kern;
    tg_attention_shape shape;
    tg_weight *weight; /* of the qkv product */
    void *qkv, *o, *d_o, *dqkv;
    float *lse;
} bench;

static void fill(void *out, size_t n, tg_dtype dtype)
{
    tg_rng rng = tg_rng_init(1, n, 0, TG_RNG_TEST);
    for (size_t i = 0; i < n; i++) {
        float x = (float)tg_rng_normal(&rng);
        if (dtype == TG_BF16)
            ((uint16_t *)out)[i] = tg_bf16_from_f32(x);
        else
            ((float *)out)[i] = x;
    }
}

static void *array_new(size_t n, tg_dtype dtype)
{
    void *out = aligned_alloc(64, (n * tg_dtype_bytes(dtype) + 63) / 64 * 64);
    if (!out)
        exit(4);
    fill(out, n, dtype);
    return out;
}

static void check(tg_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "bench_attention: %s\n", tg_error_message());
    exit(tg_status_exit_code(status));
}

static void forward(tg_stream *stream, const bench *b)
{
    check(b->kern->attention.forward(stream, &b->shape, b->qkv, b->o, b->lse));
}

static void backward(tg_stream *stream, const bench *b)
{
    check(b->kern->attention.backward(stream, &b->shape, b->qkv, b->o, b->lse, b->d_o, b->dqkv));
}

static void qkv_product(tg_stream *stream, const bench *b)
{
    const tg_attention_shape *s = &b->shape;
    check(b->kern->linear.forward(stream, b->weight, s->B * s->T, b->o, NULL, b->dqkv, s->dtype));
}

static void weight_new(tg_stream *stream, bench *b)
{
    size_t C = b->shape.H * b->shape.D;
    float *w = array_new(3 * C * C, TG_F32);
    check(b->kern->linear.weight_new(stream, 3 * C, C, b->shape.dtype, false, &b->weight));
    check(b->kern->linear.weight_refresh(stream, b->weight, w));
    free(w);
}

/* Seconds of the fastest call within the time given. */
static double fastest(tg_stream *stream, const bench *b, double seconds,
                      void (*run)(tg_stream *, const bench *))
{
    double best = INFINITY;
    int64_t begin = tg_clock_ns();
    run(stream, b);
    do {
        int64_t start = tg_clock_ns();
        run(stream, b);
        best = fmin(best, tg_clock_seconds(tg_clock_ns() - start));
    } while (tg_clock_seconds(tg_clock_ns() - begin) < seconds);
    return best;
}

static void line(tg_stream *stream, const char *model, size_t H, tg_dtype dtype, double seconds)
{
    enum { B = 32, T = 197, D = 64 };
    size_t n = (size_t)B * T * H * D;
    bench b = {
        .kern = tg_kern_select(stream),
        .shape = {.B = B, .T = T, .H = H, .D = D, .T_q = T, .scale = 0.125f, .dtype = dtype}};
    b.qkv = array_new(3 * n, dtype);
    b.dqkv = array_new(3 * n, dtype);
    b.o = array_new(n, dtype);
    b.d_o = array_new(n, dtype);
    b.lse = array_new((size_t)B * H * T, TG_F32);
    weight_new(stream, &b);
    double g = fastest(stream, &b, seconds, qkv_product);
    double unit = (double)(B * H) * T * T * D;
    double f = fastest(stream, &b, seconds, forward), d = fastest(stream, &b, seconds, backward);
    printf("%-12s %-4s %-7s forward %7.2f ms %7.1f GFLOP/s   backward %7.2f ms %7.1f GFLOP/s   "
           "qkv product %7.2f ms\n",
           tg_cpu_level_name(tg_stream_level(stream)), tg_dtype_name(dtype), model, f * 1e3,
           4 * unit / f * 1e-9, d * 1e3, 10 * unit / d * 1e-9, g * 1e3);
    b.kern->linear.weight_free(b.weight);
    free(b.qkv);
    free(b.dqkv);
    free(b.o);
    free(b.d_o);
    free(b.lse);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t H;
    } models[] = {{"vit_ti", 3}, {"vit_s", 6}, {"vit_b", 12}};
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0.2;
    for (int level = (int)tg_cpu_level_detect(); level >= 0; level--) {
        tg_stream *stream;
        check(tg_stream_open_cpu(threads, (tg_cpu_level)level, &stream));
        for (int m = 0; m < 3; m++) {
            if (tg_stream_has_bf16(stream))
                line(stream, models[m].name, models[m].H, TG_BF16, seconds);
            if (level <= TG_CPU_AVX512)
                line(stream, models[m].name, models[m].H, TG_F32, seconds);
        }
        tg_stream_close(stream);
    }
    return 0;
}
