#include "model/positions.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For each target index the sources it is made of: weight[to * taps + k] belongs to source
 * index[to * taps + k]. Unused taps have weight 0 and a valid index. */
typedef struct taps {
    size_t count; /* per target */
    size_t *index;
    double *weight;
} taps;

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2)
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

static void taps_done(taps *t)
{
    free(t->index);
    free(t->weight);
    *t = (taps){0};
}

static tg_status taps_new(size_t to, size_t count, taps *out)
{
    size_t n;
    if (!tg_mul_size(to, count, &n))
        return tg_fail(TG_ERROR_MACHINE, "position table: %zu rows are too many", to);
    *out = (taps){.count = count,
                  .index = calloc(n, sizeof *out->index),
                  .weight = calloc(n, sizeof *out->weight)};
    if (out->index && out->weight)
        return TG_OK;
    taps_done(out);
    return tg_fail(TG_ERROR_MACHINE, "out of memory resampling a position table");
}

/* Four taps around (i + 0.5) * scale - 0.5, clamped at the borders. */
static tg_status taps_plain(size_t from, size_t to, double scale, taps *out)
{
    TG_TRY(taps_new(to, 4, out));
    for (size_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * scale - 0.5, base = floor(centre);
        for (int k = 0; k < 4; k++) {
            double place = base + k - 1;
            double clamped = fmin(fmax(place, 0), (double)(from - 1));
            out->index[4 * i + (size_t)k] = (size_t)clamped;
            out->weight[4 * i + (size_t)k] = cubic(centre - place, -0.75);
        }
    }
    return TG_OK;
}

/* The kernel covers at least two sources on each side, more when shrinking; weights outside the
 * table are left out and the rest is made to sum to 1. */
static tg_status taps_antialias(size_t from, size_t to, taps *out)
{
    double scale = (double)from / (double)to, stretch = fmax(scale, 1), support = 2 * stretch;
    size_t count = 2 * (size_t)ceil(support) + 1;
    TG_TRY(taps_new(to, count, out));
    for (size_t i = 0; i < to; i++) {
        double centre = scale * ((double)i + 0.5), sum = 0;
        size_t first = (size_t)fmax(trunc(centre - support + 0.5), 0);
        size_t end = (size_t)fmin(trunc(centre + support + 0.5), (double)from);
        size_t *index = out->index + i * count;
        double *weight = out->weight + i * count;
        for (size_t j = first; j < end; j++) {
            index[j - first] = j;
            weight[j - first] = cubic(((double)j - centre + 0.5) / stretch, -0.5);
            sum += weight[j - first];
        }
        for (size_t k = 0; k < end - first; k++)
            weight[k] /= sum;
    }
    return TG_OK;
}

static tg_status taps_make(size_t from, size_t to, tg_positions_rule rule, taps *out)
{
    switch (rule) {
    case TG_POSITIONS_ANTIALIAS:
        return taps_antialias(from, to, out);
    case TG_POSITIONS_OFFSET:
        return taps_plain(from, to, (double)from / ((double)to + 0.1), out);
    case TG_POSITIONS_PLAIN:
        break;
    }
    return taps_plain(from, to, (double)from / (double)to, out);
}

/* row[x, c] = sum over the taps of x of source[index, c]. */
static void resample_row(const float *source, const taps *columns, size_t to_w, size_t C,
                         double *row)
{
    for (size_t x = 0; x < to_w; x++, row += C) {
        memset(row, 0, C * sizeof *row);
        for (size_t k = 0; k < columns->count; k++) {
            double weight = columns->weight[x * columns->count + k];
            const float *from = source + columns->index[x * columns->count + k] * C;
            for (size_t c = 0; c < C; c++)
                row[c] += weight * (double)from[c];
        }
    }
}

/* out[i] = sum over the taps of target row y of wide[index, i]. */
static void combine_rows(const double *wide, const taps *rows, size_t y, size_t n, float *out)
{
    const size_t *index = rows->index + y * rows->count;
    const double *weight = rows->weight + y * rows->count;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < rows->count; k++)
            sum += weight[k] * wide[index[k] * n + i];
        out[i] = (float)sum;
    }
}

static tg_status resample_grid(const float *source, tg_grid from, tg_grid to, size_t C,
                               tg_positions_rule rule, float *out)
{
    taps rows = {0}, columns = {0};
    double *wide = NULL;
    size_t n = to.w * C, elements;
    tg_status status;
    TG_TRY_GOTO(taps_make(from.h, to.h, rule, &rows), free_all);
    TG_TRY_GOTO(taps_make(from.w, to.w, rule, &columns), free_all);
    if (tg_mul_size(from.h, n, &elements))
        wide = calloc(elements, sizeof *wide);
    if (!wide) {
        status =
            tg_fail(TG_ERROR_MACHINE, "out of memory resampling positions to %zux%zu", to.h, to.w);
        goto free_all;
    }
    for (size_t y = 0; y < from.h; y++)
        resample_row(source + y * from.w * C, &columns, to.w, C, wide + y * n);
    for (size_t y = 0; y < to.h; y++)
        combine_rows(wide, &rows, y, n, out + y * n);
free_all:
    free(wide);
    taps_done(&columns);
    taps_done(&rows);
    return status;
}

tg_status tg_positions_resample(const float *table, size_t prefix, tg_grid from, tg_grid to,
                                size_t C, tg_positions_rule rule, float *out)
{
    if (from.h == to.h && from.w == to.w) {
        memcpy(out, table, (prefix + from.h * from.w) * C * sizeof *out);
        return TG_OK;
    }
    TG_TRY(resample_grid(table + prefix * C, from, to, C, rule, out + prefix * C));
    memcpy(out, table, prefix * C * sizeof *out);
    return TG_OK;
}
