/* bench_kern [THREADS [LEVEL]] - times the operations between the matrix products of ViT-S/16 at
 * 224 px, batch 32: 6304 rows of 384 channels, 1536 hidden, 22 million parameters. Prints the best
 * of a few runs: milliseconds, nanoseconds an element on one thread, and the gigabytes a second that
 * the operation must move at least. Without LEVEL every instruction set of the machine is timed. */
#include "kern/cpu/columns.h"
#include "kern/cpu/gelu.h"
#include "kern/cpu/parallel.h"
#include "kern/kern.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { B = 32, T = 197, C = 384, F = 1536, R = B * T, K = 1000, SIDE = 224, P = 16, RUNS = 7 };
static const size_t PARAMETERS = 22000000;

typedef struct bench {
    tg_stream *stream;
    const tg_kern *kern;
    tg_dtype dtype;
    float *x, *dres, *big[5]; /* big: PARAMETERS each */
    void *y, *branch, *h, *g, *dh;
    float *mean, *rstd, *vector[6]; /* [F] each */
    float *logits, *target, *loss, *d;
} bench;

static float *floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    if (!p)
        exit(4);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)((i * 2654435761u >> 7) % 2001) / 1000 - 1 + 1e-3f;
    return p;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void report(bench *b, const char *what, void (*run)(bench *), size_t elements, size_t bytes)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = now_ns();
        run(b);
        uint64_t took = now_ns() - start;
        best = took < best ? took : best;
    }
    printf("%-11s %-4s %-24s %8.3f ms %7.3f ns/element %7.1f GB/s\n",
           tg_cpu_level_name(tg_stream_level(b->stream)), b->dtype == TG_BF16 ? "bf16" : "f32",
           what, (double)best / 1e6, (double)best * tg_stream_threads(b->stream) / (double)elements,
           (double)bytes / (double)best);
}

static tg_norm_forward norm_args(bench *b, bool branch)
{
    return (tg_norm_forward){.R = R,
                             .C = C,
                             .rows_per_sample = T,
                             .dtype = b->dtype,
                             .ldx = C,
                             .ldb = C,
                             .ldy = C,
                             .eps = 1e-6f,
                             .x = b->x,
                             .branch = branch ? b->branch : NULL,
                             .w = b->vector[0],
                             .b = b->vector[1],
                             .out_x = branch ? b->x : NULL,
                             .out_y = b->y,
                             .out_mean = b->mean,
                             .out_rstd = b->rstd};
}

static void norm(bench *b)
{
    tg_norm_forward args = norm_args(b, false);
    b->kern->norm.forward(b->stream, &args);
}

static void norm_residual(bench *b)
{
    tg_norm_forward args = norm_args(b, true);
    b->kern->norm.forward(b->stream, &args);
}

static void norm_backward(bench *b)
{
    tg_norm_backward args = {.R = R,
                             .C = C,
                             .rows_per_sample = T,
                             .dtype = b->dtype,
                             .ldx = C,
                             .ldb = C,
                             .ldy = C,
                             .dy = b->y,
                             .x = b->x,
                             .mean = b->mean,
                             .rstd = b->rstd,
                             .w = b->vector[0],
                             .dres = b->dres,
                             .dw = b->vector[2],
                             .db = b->vector[3],
                             .branch = b->branch,
                             .ls = b->vector[1],
                             .out_dbranch = b->branch,
                             .dls = b->vector[4],
                             .accumulate = true};
    b->kern->norm.backward(b->stream, &args);
}

static void norm_backward_plain(bench *b)
{
    tg_norm_backward args = {.R = R,
                             .C = C,
                             .rows_per_sample = T,
                             .dtype = b->dtype,
                             .ldx = C,
                             .ldb = C,
                             .ldy = C,
                             .dy = b->y,
                             .x = b->x,
                             .mean = b->mean,
                             .rstd = b->rstd,
                             .w = b->vector[0],
                             .dres = b->dres,
                             .dw = b->vector[2],
                             .db = b->vector[3],
                             .out_dbranch = b->branch,
                             .accumulate = true};
    b->kern->norm.backward(b->stream, &args);
}

static void gelu_piece(void *user, size_t begin, size_t end)
{
    bench *b = user;
    size_t at = begin * tg_dtype_bytes(b->dtype);
    tg_gelu_forward_rows(tg_stream_level(b->stream), TG_GELU_EXACT, b->dtype, end - begin,
                         (char *)b->h + at, (char *)b->g + at);
}

static void gelu_forward(bench *b)
{
    tg_parallel(b->stream, (size_t)R * F, F, gelu_piece, b);
}

/* The same bytes again and again, as when a product has just written them. */
static void gelu_cached(bench *b)
{
    for (int i = 0; i < 64; i++)
        gelu_piece(b, 0, 64 * F);
}

static void gelu_backward_piece(void *user, size_t begin, size_t end)
{
    bench *b = user;
    size_t at = begin * tg_dtype_bytes(b->dtype);
    tg_gelu_backward(tg_stream_level(b->stream), TG_GELU_EXACT, b->dtype, end - begin,
                     (char *)b->h + at, (char *)b->dh + at, (char *)b->g + at, (char *)b->dh + at);
}

static void gelu_backward(bench *b)
{
    tg_parallel(b->stream, (size_t)R * F, F, gelu_backward_piece, b);
}

static void gelu_backward_cached(bench *b)
{
    for (int i = 0; i < 64; i++)
        gelu_backward_piece(b, 0, 64 * F);
}

static void columns_piece(void *user, size_t begin, size_t end)
{
    bench *b = user;
    tg_column_sums(tg_stream_level(b->stream), b->dtype, R, end - begin, F,
                   (char *)b->h + begin * tg_dtype_bytes(b->dtype), b->vector[5] + begin, false);
}

static void columns(bench *b)
{
    tg_parallel(b->stream, F, 64, columns_piece, b);
}

static void patches(bench *b)
{
    tg_patch_shape shape = {.B = B, .S_h = SIDE, .S_w = SIDE, .P = P, .dtype = b->dtype};
    b->kern->patch.forward(b->stream, &shape, b->big[0], b->h);
}

static tg_tokens_shape tokens_shape(const bench *b)
{
    return (tg_tokens_shape){.B = B, .N = T - 1, .C = C, .prefix_count = 1, .dtype = b->dtype};
}

static void assemble(bench *b)
{
    tg_tokens_shape shape = tokens_shape(b);
    b->kern->tokens.assemble(b->stream, &shape, b->y, b->vector[0], b->big[0], b->x);
}

static void assemble_backward(bench *b)
{
    tg_tokens_shape shape = tokens_shape(b);
    b->kern->tokens.assemble_backward(b->stream, &shape, b->dres, b->y, b->vector[2], b->big[4],
                                      true);
}

static void cross_entropy(bench *b)
{
    b->kern->loss.cross_entropy(b->stream, B, K, b->logits, b->target, 1, b->loss, b->d, false);
}

static void kl(bench *b)
{
    b->kern->loss.kl(b->stream, B, K, b->logits, b->target, 3, 1, b->loss, b->d, false);
}

static void adamw_with(bench *b, float *average)
{
    tg_adamw hyper = {.lr = 1e-3f,
                      .beta1 = 0.9f,
                      .beta2 = 0.999f,
                      .eps = 1e-8f,
                      .weight_decay = 0.05f,
                      .grad_scale = 1,
                      .bias1 = 0.5f,
                      .bias2 = 0.5f,
                      .average = average,
                      .average_decay = 0.999f};
    b->kern->optim.adamw(b->stream, PARAMETERS, b->big[0], b->big[1], b->big[2], b->big[3], &hyper);
}

static void adamw(bench *b)
{
    adamw_with(b, NULL);
}

static void adamw_average(bench *b)
{
    adamw_with(b, b->big[4]);
}

static void average(bench *b)
{
    b->kern->optim.average(b->stream, PARAMETERS, b->big[4], b->big[0], 0.999f);
}

static void sum_squares(bench *b)
{
    if (b->kern->optim.sum_squares(b->stream, PARAMETERS, b->big[1]) < 0)
        exit(1);
}

static void time_activations(bench *b)
{
    const size_t n = (size_t)R * C, hidden = (size_t)R * F, e = tg_dtype_bytes(b->dtype);
    report(b, "norm forward", norm, n, n * (4 + e));
    report(b, "add + norm forward", norm_residual, n, n * (8 + 2 * e));
    report(b, "norm backward", norm_backward_plain, n, n * (12 + 2 * e));
    report(b, "norm backward + scale", norm_backward, n, n * (12 + 3 * e));
    report(b, "gelu forward", gelu_forward, hidden, hidden * 2 * e);
    report(b, "gelu backward", gelu_backward, hidden, hidden * 4 * e);
    report(b, "column sums", columns, hidden, hidden * e);
    report(b, "patches", patches, (size_t)B * 3 * SIDE * SIDE,
           (size_t)B * 3 * SIDE * SIDE * (4 + e));
    report(b, "assemble tokens", assemble, n, n * (4 + e));
    report(b, "assemble backward", assemble_backward, n, n * (4 + e));
}

/* On one thread whatever the stream has: ns/element is right only with one. */
static void time_cached(bench *b)
{
    const size_t n = (size_t)64 * 64 * F, e = tg_dtype_bytes(b->dtype);
    report(b, "gelu forward, in cache", gelu_cached, n, n * 2 * e);
    report(b, "gelu backward, in cache", gelu_backward_cached, n, n * 4 * e);
}

static void time_parameters(bench *b)
{
    report(b, "cross-entropy", cross_entropy, B * K, (size_t)B * K * 12);
    report(b, "kl", kl, B * K, (size_t)B * K * 12);
    report(b, "adamw", adamw, PARAMETERS, PARAMETERS * 28);
    report(b, "adamw + average", adamw_average, PARAMETERS, PARAMETERS * 36);
    report(b, "average", average, PARAMETERS, PARAMETERS * 12);
    report(b, "sum of squares", sum_squares, PARAMETERS, PARAMETERS * 4);
}

static bench bench_new(void)
{
    bench b = {.x = floats((size_t)R * C), .dres = floats((size_t)R * C)};
    for (int i = 0; i < 5; i++)
        b.big[i] = floats(PARAMETERS);
    for (int i = 0; i < 6; i++)
        b.vector[i] = floats(F);
    b.y = floats((size_t)R * C);
    b.branch = floats((size_t)R * C);
    b.h = floats((size_t)R * F);
    b.g = floats((size_t)R * F);
    b.dh = floats((size_t)R * F);
    b.mean = floats(R);
    b.rstd = floats(R);
    b.logits = floats(B * K);
    b.target = floats(B * K);
    b.loss = floats(B);
    b.d = floats(B * K);
    return b;
}

static void time_level(bench *b, int threads, tg_cpu_level level)
{
    if (tg_stream_open_cpu(threads, level, &b->stream) != TG_OK)
        exit(4);
    b->kern = tg_kern_select(b->stream);
    const tg_dtype dtypes[] = {TG_F32, TG_BF16};
    for (int i = 0; i < (tg_stream_has_bf16(b->stream) ? 2 : 1); i++) {
        b->dtype = dtypes[i];
        const size_t hidden = (size_t)R * F, n = (size_t)R * C;
        float *wide = floats(hidden);
        b->kern->tokens.from_f32(b->stream, hidden, wide, b->dtype, b->h);
        b->kern->tokens.from_f32(b->stream, hidden, wide, b->dtype, b->dh);
        b->kern->tokens.from_f32(b->stream, n, wide, b->dtype, b->y);
        b->kern->tokens.from_f32(b->stream, n, wide, b->dtype, b->branch);
        free(wide);
        time_activations(b);
        if (threads == 1)
            time_cached(b);
    }
    b->dtype = TG_F32;
    time_parameters(b);
    tg_stream_close(b->stream);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    tg_cpu_level top = tg_cpu_level_detect(), low = TG_CPU_PORTABLE;
    if (argc > 2) {
        top = low = tg_cpu_level_from_name(argv[2]);
        if (top == TG_CPU_LEVEL_COUNT)
            return 2;
    }
    bench b = bench_new();
    for (int level = (int)top; level >= (int)low; level--)
        if (argc > 2 || level != TG_CPU_AVX512_BF16 || top < TG_CPU_AMX)
            time_level(&b, threads, (tg_cpu_level)level);
    return 0;
}
