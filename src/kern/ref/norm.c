#include "kern/ref/ref.h"

#include "kern/ref/element.h"

#include <math.h>

static double sample_factor(const float *sample_scale, size_t r, size_t rows_per_sample)
{
    return sample_scale ? sample_scale[r / rows_per_sample] : 1;
}

static void add_branch_row(const tg_norm_forward *args, size_t r)
{
    double s = sample_factor(args->sample_scale, args->row0 + r, args->rows_per_sample);
    for (size_t c = 0; c < args->C; c++) {
        double branch = tg_element_load(args->branch, args->dtype, r * args->ldb + c);
        double ls = args->ls ? args->ls[c] : 1;
        args->out_x[r * args->ldx + c] = (float)(args->x[r * args->ldx + c] + s * ls * branch);
    }
}

static void normalise_row(const tg_norm_forward *args, size_t r, const float *x, float mean,
                          float rstd)
{
    for (size_t c = 0; c < args->C; c++) {
        double y = ((double)x[c] - mean) * rstd * (args->w ? args->w[c] : 1);
        tg_element_store(args->out_y, args->dtype, r * args->ldy + c,
                         y + (args->b ? args->b[c] : 0));
    }
}

void tg_ref_norm_forward(tg_stream *stream, const tg_norm_forward *args)
{
    (void)stream;
    for (size_t r = 0; r < args->R; r++) {
        const float *x = args->x + r * args->ldx;
        if (args->branch) {
            add_branch_row(args, r);
            x = args->out_x + r * args->ldx;
        } else if (args->out_x && args->out_x != args->x) {
            for (size_t c = 0; c < args->C; c++)
                args->out_x[r * args->ldx + c] = x[c];
        }
        double mean = 0, var = 0;
        for (size_t c = 0; c < args->C; c++)
            mean += x[c];
        mean /= (double)args->C;
        for (size_t c = 0; c < args->C; c++)
            var += (x[c] - mean) * (x[c] - mean);
        float rstd = (float)(1 / sqrt(var / (double)args->C + args->eps));
        if (args->out_mean)
            args->out_mean[r] = (float)mean;
        if (args->out_rstd)
            args->out_rstd[r] = rstd;
        if (args->out_y)
            normalise_row(args, r, x, (float)mean, rstd);
    }
}

static double normalised(const tg_norm_backward *args, size_t r, size_t c)
{
    return ((double)args->x[r * args->ldx + c] - args->mean[r]) * args->rstd[r];
}

/* dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy w */
static void backward_row(const tg_norm_backward *args, size_t r)
{
    const double C = (double)args->C;
    double mean_g = 0, mean_gx = 0;
    for (size_t c = 0; c < args->C; c++) {
        double g = tg_element_load(args->dy, args->dtype, r * args->ldy + c);
        g *= args->w ? args->w[c] : 1;
        mean_g += g / C;
        mean_gx += g * normalised(args, r, c) / C;
    }
    for (size_t c = 0; c < args->C; c++) {
        double g = tg_element_load(args->dy, args->dtype, r * args->ldy + c);
        g *= args->w ? args->w[c] : 1;
        double dx = args->rstd[r] * (g - mean_g - normalised(args, r, c) * mean_gx);
        tg_element_sum(&args->dres[r * args->ldx + c], dx, !args->dres_zero);
    }
}

static void y_again(const tg_norm_backward *args, size_t r)
{
    for (size_t c = 0; c < args->C; c++)
        tg_element_store(args->out_y, args->dtype, r * args->ldy + c,
                         normalised(args, r, c) * (args->w ? args->w[c] : 1) +
                             (args->b ? args->b[c] : 0));
}

/* Sums for dw, db, dls [3][C] of rows [first, end), column c. */
static void column_sums(const tg_norm_backward *args, size_t c, size_t first, size_t end,
                        double out[3])
{
    out[0] = out[1] = out[2] = 0;
    for (size_t r = first; r < end; r++) {
        if (args->dy) {
            double dy = tg_element_load(args->dy, args->dtype, r * args->ldy + c);
            out[0] += dy * normalised(args, r, c);
            out[1] += dy;
        }
        if (args->dls)
            out[2] += sample_factor(args->sample_scale, args->row0 + r, args->rows_per_sample) *
                      tg_element_load(args->branch, args->dtype, r * args->ldb + c) *
                      args->dres[r * args->ldx + c];
    }
}

static void parameter_gradients(const tg_norm_backward *args, size_t c)
{
    double sums[3];
    float *const out[3] = {args->dy ? args->dw : NULL, args->dy ? args->db : NULL, args->dls};
    column_sums(args, c, 0, args->R, sums);
    for (size_t which = 0; which < 3; which++)
        if (out[which])
            tg_element_sum(&out[which][c], sums[which], args->accumulate);
}

static void chunk_sums(const tg_norm_backward *args, size_t c)
{
    double sums[3];
    for (size_t first = 0; first < args->R; first += TG_NORM_CHUNK) {
        size_t end = first + TG_NORM_CHUNK < args->R ? first + TG_NORM_CHUNK : args->R;
        column_sums(args, c, first, end, sums);
        for (size_t which = 0; which < 3; which++)
            args->out_sums[(first / TG_NORM_CHUNK * 3 + which) * args->C + c] = (float)sums[which];
    }
}

void tg_ref_norm_gather(tg_stream *stream, const tg_norm_gather *args)
{
    float *const out[3] = {args->dw, args->db, args->dls};
    (void)stream;
    for (size_t i = 0; i < 3 * args->C; i++) {
        size_t which = i / args->C, c = i % args->C;
        double sum = 0;
        for (size_t chunk = 0; chunk < args->chunks; chunk++)
            sum += args->sums[(chunk * 3 + which) * args->C + c];
        if (out[which])
            tg_element_sum(&out[which][c], sum, args->accumulate);
    }
}

void tg_ref_norm_backward(tg_stream *stream, const tg_norm_backward *args)
{
    (void)stream;
    for (size_t r = 0; r < args->R; r++) {
        if (args->dy)
            backward_row(args, r);
        if (args->dy && args->out_y)
            y_again(args, r);
        if (!args->out_dbranch)
            continue;
        double s = sample_factor(args->sample_scale, args->row0 + r, args->rows_per_sample);
        for (size_t c = 0; c < args->C; c++)
            tg_element_store(args->out_dbranch, args->dtype, r * args->ldb + c,
                             s * (args->ls ? args->ls[c] : 1) * args->dres[r * args->ldx + c]);
    }
    for (size_t c = 0; c < args->C; c++)
        (args->out_sums ? chunk_sums : parameter_gradients)(args, c);
}
