#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

#include <assert.h>
#include <string.h>

enum {
    ROW_GRAIN = 8,     /* rows that are not split further between threads */
    CHUNKS_MAX = 64,   /* chunks whose sums are there at a time */
    SLOT_PARTIALS = 0, /* of the stream's scratch */
};

typedef struct forward_job {
    const tg_rows *rows;
    const tg_norm_forward *args;
} forward_job;

static void forward_piece(void *user, size_t begin, size_t end)
{
    const forward_job *job = user;
    job->rows->norm_forward(job->args, begin, end);
}

void tg_cpu_norm_forward(tg_stream *stream, const tg_norm_forward *args)
{
    assert(args->ldx >= args->C && args->rows_per_sample > 0);
    assert(!args->branch || args->out_x);
    forward_job job = {.rows = tg_rows_select(tg_stream_level(stream)), .args = args};
    tg_parallel(stream, args->R, ROW_GRAIN, forward_piece, &job);
}

typedef struct backward_job {
    const tg_rows *rows;
    const tg_norm_backward *args;
    tg_norm_sums wanted; /* the caller's gradients; NULL where none is asked for */
    float *partials;     /* [CHUNKS_MAX][3][C] */
    size_t first;        /* row of the first of these chunks */
} backward_job;

static void backward_piece(void *user, size_t begin, size_t end)
{
    const backward_job *job = user;
    const size_t C = job->args->C, R = job->args->R;
    for (size_t chunk = begin; chunk < end; chunk++) {
        float *partial = job->partials + chunk * 3 * C;
        tg_norm_sums sums = {.dw = job->wanted.dw ? partial : NULL,
                             .db = job->wanted.db ? partial + C : NULL,
                             .dls = job->wanted.dls ? partial + 2 * C : NULL};
        memset(partial, 0, 3 * C * sizeof *partial);
        size_t first = job->first + chunk * TG_NORM_CHUNK, last = first + TG_NORM_CHUNK;
        job->rows->norm_backward(job->args, &sums, first, last < R ? last : R);
    }
}

/* Adds gradient number `which` of all chunks, in their order. */
static void add_partials(const float *partials, size_t chunks, size_t C, size_t which, float *out)
{
    for (size_t chunk = 0; out && chunk < chunks; chunk++) {
        const float *partial = partials + (chunk * 3 + which) * C;
        for (size_t c = 0; c < C; c++)
            out[c] += partial[c];
    }
}

static void zero_gradient(float *out, size_t C)
{
    if (out)
        memset(out, 0, C * sizeof *out);
}

void tg_cpu_norm_gather(tg_stream *stream, const tg_norm_gather *args)
{
    float *const out[3] = {args->dw, args->db, args->dls};
    (void)stream;
    for (size_t which = 0; which < 3; which++) {
        if (!args->accumulate)
            zero_gradient(out[which], args->C);
        add_partials(args->sums, args->chunks, args->C, which, out[which]);
    }
}

void tg_cpu_norm_backward(tg_stream *stream, const tg_norm_backward *args)
{
    assert(args->ldx >= args->C && args->rows_per_sample > 0);
    assert(!args->dls || args->branch);
    const size_t C = args->C;
    backward_job job = {.rows = tg_rows_select(tg_stream_level(stream)), .args = args};
    job.wanted.dls = args->dls;
    if (args->dy) {
        job.wanted.dw = args->dw;
        job.wanted.db = args->db;
    }
    if (args->out_sums) {
        job.partials = args->out_sums;
        tg_parallel(stream, (args->R + TG_NORM_CHUNK - 1) / TG_NORM_CHUNK, 1, backward_piece, &job);
        return;
    }
    if (!args->accumulate) {
        zero_gradient(job.wanted.dw, C);
        zero_gradient(job.wanted.db, C);
        zero_gradient(job.wanted.dls, C);
    }
    job.partials = tg_stream_scratch(stream, SLOT_PARTIALS, CHUNKS_MAX * 3 * C * sizeof(float));
    if (!job.partials) { /* no memory even for this: slower, and summed in another order */
        job.rows->norm_backward(args, &job.wanted, 0, args->R);
        return;
    }
    for (; job.first < args->R; job.first += CHUNKS_MAX * TG_NORM_CHUNK) {
        size_t chunks = (args->R - job.first + TG_NORM_CHUNK - 1) / TG_NORM_CHUNK;
        chunks = chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
        tg_parallel(stream, chunks, 1, backward_piece, &job);
        add_partials(job.partials, chunks, C, 0, job.wanted.dw);
        add_partials(job.partials, chunks, C, 1, job.wanted.db);
        add_partials(job.partials, chunks, C, 2, job.wanted.dls);
    }
}
