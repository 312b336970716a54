#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

enum {
    GRAIN = 4096,      /* elements that are not split further between threads */
    CHUNK = 65536,     /* elements of one partial sum of squares */
    SLOT_PARTIALS = 1, /* of the stream's scratch */
};

typedef struct job {
    const tg_rows *rows;
    float *p, *m, *v;
    const float *g;
    const tg_adamw *hyper;
    float factor;
    double *partials;
    size_t n;
} job;

static void adamw_piece(void *user, size_t begin, size_t end)
{
    const job *j = user;
    float *average = j->hyper->average;
    j->rows->adamw(end - begin, j->p + begin, j->g + begin, j->m + begin, j->v + begin,
                   average ? average + begin : NULL, j->hyper);
}

void tg_cpu_optim_adamw(tg_stream *stream, size_t n, float *p, const float *g, float *m, float *v,
                        const tg_adamw *hyper)
{
    job j = {.rows = tg_rows_select(tg_stream_level(stream)),
             .p = p,
             .m = m,
             .v = v,
             .g = g,
             .hyper = hyper};
    tg_parallel(stream, n, GRAIN, adamw_piece, &j);
}

static double chunk_squares(const job *j, size_t chunk)
{
    size_t first = chunk * CHUNK, rest = j->n - first;
    return j->rows->sum_squares(rest < CHUNK ? rest : CHUNK, j->g + first);
}

static void squares_piece(void *user, size_t begin, size_t end)
{
    const job *j = user;
    for (size_t chunk = begin; chunk < end; chunk++)
        j->partials[chunk] = chunk_squares(j, chunk);
}

double tg_cpu_optim_sum_squares(tg_stream *stream, size_t n, const float *x)
{
    const size_t chunks = (n + CHUNK - 1) / CHUNK;
    job j = {.rows = tg_rows_select(tg_stream_level(stream)), .g = x, .n = n};
    j.partials = tg_stream_scratch(stream, SLOT_PARTIALS, chunks * sizeof *j.partials);
    if (j.partials)
        tg_parallel(stream, chunks, 1, squares_piece, &j);
    double sum = 0;
    for (size_t chunk = 0; chunk < chunks; chunk++) /* without scratch on this thread alone */
        sum += j.partials ? j.partials[chunk] : chunk_squares(&j, chunk);
    return sum;
}

static void average_piece(void *user, size_t begin, size_t end)
{
    const job *j = user;
    j->rows->average(end - begin, j->p + begin, j->g + begin, j->factor);
}

void tg_cpu_optim_average(tg_stream *stream, size_t n, float *e, const float *p, float decay)
{
    job j = {.rows = tg_rows_select(tg_stream_level(stream)), .p = e, .g = p, .factor = decay};
    tg_parallel(stream, n, GRAIN, average_piece, &j);
}
