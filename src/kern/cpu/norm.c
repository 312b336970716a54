#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

#include <assert.h>
#include <string.h>

enum {
    ROW_GRAIN = 8,       /* rows that are not split further between threads */
    CHUNKS_MAX = 64,     /* partial sums of parameter gradients */
    CHUNK_ROWS_MIN = 32, /* rows of one partial sum, at least */
    SLOT_PARTIALS = 0,   /* of the stream's scratch */
};

typedef struct forward_job {
    const tg_rows *rows;
    const tg_norm_forward *args;
    const float *mean, *rstd; /* of apply */
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

static void apply_piece(void *user, size_t begin, size_t end)
{
    const forward_job *job = user;
    job->rows->norm_apply(job->args, job->mean, job->rstd, begin, end);
}

void tg_cpu_norm_apply(tg_stream *stream, const tg_norm_forward *args, const float *mean,
                       const float *rstd)
{
    assert(args->ldx >= args->C && args->out_y);
    forward_job job = {
        .rows = tg_rows_select(tg_stream_level(stream)), .args = args, .mean = mean, .rstd = rstd};
    tg_parallel(stream, args->R, ROW_GRAIN, apply_piece, &job);
}

typedef struct backward_job {
    const tg_rows *rows;
    const tg_norm_backward *args;
    tg_norm_sums wanted; /* the caller's gradients; NULL where none is asked for */
    float *partials;     /* [chunks][3][C] */
    size_t chunk_rows;
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
        size_t first = chunk * job->chunk_rows, last = first + job->chunk_rows;
        job->rows->norm_backward(job->args, &sums, first, last < R ? last : R);
    }
}

/* Adds the partial sums of all chunks to gradient number `which`, in order of the chunks. */
static void add_partials(const backward_job *job, size_t chunks, size_t which, float *out)
{
    const size_t C = job->args->C;
    for (size_t chunk = 0; out && chunk < chunks; chunk++) {
        const float *partial = job->partials + (chunk * 3 + which) * C;
        for (size_t c = 0; c < C; c++)
            out[c] += partial[c];
    }
}

static void zero_gradient(float *out, size_t C)
{
    if (out)
        memset(out, 0, C * sizeof *out);
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
    if (!args->accumulate) {
        zero_gradient(job.wanted.dw, C);
        zero_gradient(job.wanted.db, C);
        zero_gradient(job.wanted.dls, C);
    }
    job.chunk_rows = (args->R + CHUNKS_MAX - 1) / CHUNKS_MAX;
    if (job.chunk_rows < CHUNK_ROWS_MIN)
        job.chunk_rows = CHUNK_ROWS_MIN;
    const size_t chunks = (args->R + job.chunk_rows - 1) / job.chunk_rows;
    job.partials = tg_stream_scratch(stream, SLOT_PARTIALS, CHUNKS_MAX * 3 * C * sizeof(float));
    if (!job.partials) { /* no memory even for this: slower, and summed in another order */
        job.rows->norm_backward(args, &job.wanted, 0, args->R);
        return;
    }
    tg_parallel(stream, chunks, 1, backward_piece, &job);
    add_partials(&job, chunks, 0, job.wanted.dw);
    add_partials(&job, chunks, 1, job.wanted.db);
    add_partials(&job, chunks, 2, job.wanted.dls);
}
