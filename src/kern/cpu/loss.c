#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

typedef struct loss_job {
    const tg_rows *rows;
    size_t K;
    const float *x, *y; /* logits and target, student and teacher, x and y */
    float temperature, weight;
    float *out_loss, *out_d;
    bool accumulate;
} loss_job;

static void cross_entropy_piece(void *user, size_t begin, size_t end)
{
    const loss_job *j = user;
    for (size_t b = begin, at = begin * j->K; b < end; b++, at += j->K)
        j->out_loss[b] = j->rows->cross_entropy(j->K, j->x + at, j->y + at, j->weight,
                                                j->out_d ? j->out_d + at : NULL, j->accumulate);
}

void tg_cpu_loss_cross_entropy(tg_stream *stream, size_t B, size_t K, const float *logits,
                               const float *target, float weight, float *out_loss,
                               float *out_dlogits, bool accumulate)
{
    loss_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                  .K = K,
                  .x = logits,
                  .y = target,
                  .weight = weight,
                  .out_loss = out_loss,
                  .out_d = out_dlogits,
                  .accumulate = accumulate};
    tg_parallel(stream, B, 1, cross_entropy_piece, &j);
}

static void kl_piece(void *user, size_t begin, size_t end)
{
    const loss_job *j = user;
    for (size_t b = begin, at = begin * j->K; b < end; b++, at += j->K)
        j->out_loss[b] = j->rows->kl(j->K, j->x + at, j->y + at, j->temperature, j->weight,
                                     j->out_d ? j->out_d + at : NULL, j->accumulate);
}

void tg_cpu_loss_kl(tg_stream *stream, size_t B, size_t K, const float *student,
                    const float *teacher, float temperature, float weight, float *out_loss,
                    float *out_dlogits, bool accumulate)
{
    loss_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                  .K = K,
                  .x = student,
                  .y = teacher,
                  .temperature = temperature,
                  .weight = weight,
                  .out_loss = out_loss,
                  .out_d = out_dlogits,
                  .accumulate = accumulate};
    tg_parallel(stream, B, 1, kl_piece, &j);
}

static void squared_error_piece(void *user, size_t begin, size_t end)
{
    const loss_job *j = user;
    for (size_t b = begin, at = begin * j->K; b < end; b++, at += j->K)
        j->out_loss[b] = j->rows->squared_error(j->K, j->x + at, j->y + at, j->weight,
                                                j->out_d ? j->out_d + at : NULL, j->accumulate);
}

void tg_cpu_loss_squared_error(tg_stream *stream, size_t B, size_t K, const float *x,
                               const float *y, float weight, float *out_loss, float *out_dx,
                               bool accumulate)
{
    loss_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                  .K = K,
                  .x = x,
                  .y = y,
                  .weight = weight,
                  .out_loss = out_loss,
                  .out_d = out_dx,
                  .accumulate = accumulate};
    tg_parallel(stream, B, 1, squared_error_piece, &j);
}
