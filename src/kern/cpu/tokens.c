#include "kern/cpu/columns.h"
#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

#include <assert.h>

enum { ROW_GRAIN = 8, ELEMENT_GRAIN = 4096 };

typedef struct tokens_job {
    const tg_rows *rows;
    const tg_tokens_shape *shape;
    const void *patch;
    const float *prefix, *pos, *dx;
    void *out_dpatch;
    float *out_x, *dprefix, *dpos;
    bool accumulate;
} tokens_job;

static void assemble_piece(void *user, size_t begin, size_t end)
{
    const tokens_job *j = user;
    j->rows->tokens_assemble(j->shape, j->patch, j->prefix, j->pos, j->out_x, begin, end);
}

void tg_cpu_tokens_assemble(tg_stream *stream, const tg_tokens_shape *shape, const void *patch,
                            const float *prefix, const float *pos, float *out_x)
{
    tokens_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                    .shape = shape,
                    .patch = patch,
                    .prefix = prefix,
                    .pos = pos,
                    .out_x = out_x};
    tg_parallel(stream, shape->B * (shape->prefix_count + shape->N), ROW_GRAIN, assemble_piece, &j);
}

static void assemble_backward_piece(void *user, size_t begin, size_t end)
{
    const tokens_job *j = user;
    j->rows->tokens_backward(j->shape, j->dx, j->out_dpatch, j->dprefix, j->dpos, j->accumulate,
                             begin, end);
}

void tg_cpu_tokens_assemble_backward(tg_stream *stream, const tg_tokens_shape *shape,
                                     const float *dx, void *out_dpatch, float *dprefix, float *dpos,
                                     bool accumulate)
{
    tokens_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                    .shape = shape,
                    .dx = dx,
                    .out_dpatch = out_dpatch,
                    .dprefix = dprefix,
                    .dpos = dpos,
                    .accumulate = accumulate};
    tg_parallel(stream, shape->prefix_count + shape->N, 1, assemble_backward_piece, &j);
}

typedef struct mean_job {
    const tg_rows *rows;
    size_t T, C, first;
    const float *in;
    float *out;
    bool dres_zero;
} mean_job;

static void mean_piece(void *user, size_t begin, size_t end)
{
    const mean_job *j = user;
    j->rows->tokens_mean(j->T, j->C, j->first, j->in, j->out, begin, end);
}

void tg_cpu_tokens_mean(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                        const float *x, float *out_mean)
{
    assert(first < T);
    mean_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                  .T = T,
                  .C = C,
                  .first = first,
                  .in = x,
                  .out = out_mean};
    tg_parallel(stream, B, 1, mean_piece, &j);
}

static void mean_backward_piece(void *user, size_t begin, size_t end)
{
    const mean_job *j = user;
    j->rows->tokens_mean_backward(j->T, j->C, j->first, j->in, j->out, j->dres_zero, begin, end);
}

void tg_cpu_tokens_mean_backward(tg_stream *stream, size_t B, size_t T, size_t C, size_t first,
                                 const float *d_out, float *dres, bool dres_zero)
{
    assert(first < T);
    mean_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                  .T = T,
                  .C = C,
                  .first = first,
                  .in = d_out,
                  .out = dres,
                  .dres_zero = dres_zero};
    tg_parallel(stream, B, 1, mean_backward_piece, &j);
}

typedef struct convert_job {
    const tg_rows *rows;
    const char *x;
    char *out;
    tg_dtype from, to;
} convert_job;

static void convert_piece(void *user, size_t begin, size_t end)
{
    const convert_job *j = user;
    j->rows->convert(end - begin, j->x + begin * tg_dtype_bytes(j->from), j->from, j->to,
                     j->out + begin * tg_dtype_bytes(j->to));
}

void tg_cpu_tokens_from_f32(tg_stream *stream, size_t n, const float *x, tg_dtype dtype, void *out)
{
    assert(dtype == TG_F32 || dtype == TG_BF16);
    convert_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                     .x = (const char *)x,
                     .out = out,
                     .from = TG_F32,
                     .to = dtype};
    tg_parallel(stream, n, ELEMENT_GRAIN, convert_piece, &j);
}

void tg_cpu_tokens_to_f32(tg_stream *stream, size_t n, const void *x, tg_dtype dtype, float *out)
{
    assert(dtype == TG_F32 || dtype == TG_BF16);
    convert_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                     .x = x,
                     .out = (char *)out,
                     .from = dtype,
                     .to = TG_F32};
    tg_parallel(stream, n, ELEMENT_GRAIN, convert_piece, &j);
}

void tg_column_sums(tg_cpu_level level, tg_dtype dtype, size_t R, size_t C, size_t ld,
                    const void *dy, float *out, bool accumulate)
{
    assert(ld >= C);
    tg_rows_select(level)->column_sums(dtype, R, C, ld, dy, out, accumulate);
}
