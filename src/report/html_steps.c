/* Steps in bins, how long they took, and those that took far longer than the ones around them. */
#include "report/html_parts.h"

#include "base/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTLIERS = 12, AROUND = 64, HISTOGRAM = 40 };

typedef double (*step_value)(const tg_step_record *step);
#define VALUE(name)                                                                                \
    static double name(const tg_step_record *step)                                                 \
    {                                                                                              \
        return step->name;                                                                         \
    }
VALUE(loss)
VALUE(loss_task)
VALUE(loss_kd)
VALUE(lr)
VALUE(grad_norm)
VALUE(images_per_s)
VALUE(t_step)
VALUE(t_data)
VALUE(t_teacher)
VALUE(t_forward)
VALUE(t_backward)
VALUE(t_reduce)
VALUE(t_optimizer)
VALUE(t_other)

typedef enum reduction { MEAN, LEAST, MOST } reduction;

static const struct {
    const char *name;
    step_value value;
    reduction of;
} COLUMNS[] = {
    {"loss", loss, MEAN},
    {"loss_low", loss, LEAST},
    {"loss_high", loss, MOST},
    {"loss_task", loss_task, MEAN},
    {"loss_kd", loss_kd, MEAN},
    {"lr", lr, MEAN},
    {"grad_norm", grad_norm, MEAN},
    {"images_per_s", images_per_s, MEAN},
    {"t_step", t_step, MEAN},
    {"t_low", t_step, LEAST},
    {"t_high", t_step, MOST},
    {"t_data", t_data, MEAN},
    {"t_teacher", t_teacher, MEAN},
    {"t_forward", t_forward, MEAN},
    {"t_backward", t_backward, MEAN},
    {"t_reduce", t_reduce, MEAN},
    {"t_optimizer", t_optimizer, MEAN},
    {"t_other", t_other, MEAN},
};

static double reduced(const tg_step_record *steps, size_t count, step_value value, reduction of)
{
    double sum = 0, least = NAN, most = NAN;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const double v = value(&steps[i]);
        if (!isfinite(v))
            continue;
        sum += v;
        n++;
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (of == MEAN)
        return n ? sum / (double)n : NAN;
    return of == LEAST ? least : most;
}

static void put_columns(tg_json_writer *w, const tg_history *h, size_t size, double *row)
{
    const size_t bins = (h->step_count + size - 1) / size;
    tg_json_begin_array(w, "first");
    for (size_t b = 0; b < bins; b++)
        tg_json_put_int(w, NULL, h->steps[b * size].step);
    tg_json_end_array(w);
    tg_json_begin_array(w, "last");
    for (size_t b = 0; b < bins; b++) {
        const size_t end = (b + 1) * size;
        tg_json_put_int(w, NULL, h->steps[(end < h->step_count ? end : h->step_count) - 1].step);
    }
    tg_json_end_array(w);
    for (size_t c = 0; c < sizeof COLUMNS / sizeof COLUMNS[0]; c++) {
        for (size_t b = 0; b < bins; b++) {
            const size_t begin = b * size, left = h->step_count - begin;
            row[b] = reduced(h->steps + begin, left < size ? left : size, COLUMNS[c].value,
                             COLUMNS[c].of);
        }
        tg_html_put_numbers(w, COLUMNS[c].name, row, bins);
    }
}

/* Bins from the shortest step to nearly the longest; the last one takes all beyond. */
static void put_histogram(tg_json_writer *w, const double *sorted, size_t count)
{
    const double low = sorted[0], most = sorted[count - 1];
    const double high = fmax(tg_quantile(sorted, count, 0.99) * 1.1, low * 1.01 + 1e-6);
    double edges[HISTOGRAM + 1], counts[HISTOGRAM] = {0};
    for (int i = 0; i <= HISTOGRAM; i++)
        edges[i] = low + (high - low) * i / HISTOGRAM;
    edges[HISTOGRAM] = fmax(edges[HISTOGRAM], most);
    for (size_t i = 0; i < count; i++) {
        const int bin = (int)fmin(HISTOGRAM - 1, (sorted[i] - low) / (high - low) * HISTOGRAM);
        counts[bin]++;
    }
    tg_json_begin_object(w, "histogram");
    tg_html_put_numbers(w, "edges", edges, HISTOGRAM + 1);
    tg_json_begin_array(w, "counts");
    for (int i = 0; i < HISTOGRAM; i++)
        tg_json_put_int(w, NULL, (int64_t)counts[i]);
    tg_json_end_array(w);
    tg_json_end_object(w);
}

typedef struct outlier {
    const tg_step_record *step;
    double usual;
} outlier;

static double excess(const outlier *o)
{
    return o->step->t_step - o->usual;
}

/* Keeps the OUTLIERS that took most more than usual, greatest first. */
static void keep(outlier *list, size_t *count, outlier candidate)
{
    size_t at = *count < OUTLIERS ? (*count)++ : OUTLIERS;
    while (at > 0 && excess(&list[at - 1]) < excess(&candidate)) {
        if (at < OUTLIERS)
            list[at] = list[at - 1];
        at--;
    }
    if (at < OUTLIERS)
        list[at] = candidate;
}

static const char *most_went_to(const tg_step_record *step, const tg_history *h)
{
    static const struct {
        const char *name;
        step_value value;
    } PARTS[] = {{"t_data", t_data},         {"t_teacher", t_teacher}, {"t_forward", t_forward},
                 {"t_backward", t_backward}, {"t_reduce", t_reduce},   {"t_optimizer", t_optimizer},
                 {"t_other", t_other}};
    const size_t from = (size_t)(step - h->steps) / AROUND * AROUND;
    const size_t n = h->step_count - from < AROUND ? h->step_count - from : AROUND;
    const char *name = PARTS[0].name;
    double most = -INFINITY;
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        const double more =
            PARTS[i].value(step) - reduced(h->steps + from, n, PARTS[i].value, MEAN);
        if (more > most) {
            most = more;
            name = PARTS[i].name;
        }
    }
    return name;
}

static void put_outliers(tg_json_writer *w, const tg_history *h, double origin)
{
    outlier list[OUTLIERS];
    size_t count = 0, all = 0;
    for (size_t from = 0; from < h->step_count; from += AROUND) {
        double around[AROUND];
        const size_t n = h->step_count - from < AROUND ? h->step_count - from : AROUND;
        for (size_t i = 0; i < n; i++)
            around[i] = h->steps[from + i].t_step;
        tg_sort_doubles(around, n);
        const double usual = tg_quantile(around, n, 0.5);
        for (size_t i = from; i < from + n; i++)
            if (h->steps[i].t_step > 2 * usual) {
                keep(list, &count, (outlier){&h->steps[i], usual});
                all++;
            }
    }
    tg_json_put_uint(w, "outlier_count", all);
    tg_json_begin_array(w, "outliers");
    for (size_t i = 0; i < count; i++) {
        tg_json_begin_object(w, NULL);
        tg_json_put_int(w, "step", list[i].step->step);
        tg_html_put_number(w, "seconds", list[i].step->t_step);
        tg_html_put_number(w, "usual", list[i].usual);
        tg_html_put_number(w, "time", list[i].step->time - origin);
        tg_json_put_string(w, "phase", most_went_to(list[i].step, h));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_times(tg_json_writer *w, const tg_history *h, double *times)
{
    size_t n = 0;
    for (size_t i = 0; i < h->step_count; i++)
        if (isfinite(h->steps[i].t_step))
            times[n++] = h->steps[i].t_step;
    if (!n)
        times[n++] = 0;
    tg_sort_doubles(times, n);
    tg_html_put_number(w, "median_s", tg_quantile(times, n, 0.5));
    tg_html_put_number(w, "p95_s", tg_quantile(times, n, 0.95));
    tg_html_put_number(w, "max_s", times[n - 1]);
    put_histogram(w, times, n);
}

tg_status tg_html_put_steps(tg_json_writer *w, const tg_history *h, double origin)
{
    if (!h->step_count) {
        tg_json_put_null(w, "steps");
        return TG_OK;
    }
    double *times = malloc(h->step_count * sizeof *times);
    if (!times)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    const size_t size = (h->step_count + TG_HTML_STEPS - 1) / TG_HTML_STEPS;
    tg_json_begin_object(w, "steps");
    tg_json_put_uint(w, "count", h->step_count);
    tg_json_put_uint(w, "size", size);
    put_columns(w, h, size, times);
    put_times(w, h, times);
    put_outliers(w, h, origin);
    tg_json_end_object(w);
    free(times);
    return TG_OK;
}

/* The last step of the epochs that an evaluation scores; NaN: not recorded. */
static double step_of_epoch(const tg_history *h, int64_t epochs_done)
{
    size_t low = 0, high = h->step_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (h->steps[middle].epoch < epochs_done)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? (double)h->steps[low - 1].step : NAN;
}

tg_status tg_html_put_evals(tg_json_writer *w, const tg_history *h)
{
    double *row = malloc((h->eval_count + 1) * sizeof *row);
    if (!row)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    const size_t n = h->eval_count;
    tg_json_begin_object(w, "evals");
    for (size_t i = 0; i < n; i++)
        row[i] = (double)h->evals[i].epoch;
    tg_html_put_numbers(w, "epoch", row, n);
    for (size_t i = 0; i < n; i++)
        row[i] = h->evals[i].val_top1;
    tg_html_put_numbers(w, "top1", row, n);
    for (size_t i = 0; i < n; i++)
        row[i] = h->evals[i].val_top5;
    tg_html_put_numbers(w, "top5", row, n);
    for (size_t i = 0; i < n; i++)
        row[i] = h->evals[i].val_loss;
    tg_html_put_numbers(w, "loss", row, n);
    for (size_t i = 0; i < n; i++)
        row[i] = step_of_epoch(h, h->evals[i].epoch);
    tg_html_put_numbers(w, "step", row, n);
    tg_json_end_object(w);
    free(row);
    return TG_OK;
}
