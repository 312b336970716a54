/* The operations that took most, and what exchanges between ranks took. */
#include "report/html_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 60 };

static bool same(const tg_operation *a, const tg_operation *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->phase, b->phase) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

static void add(tg_operation *list, size_t *count, const tg_operation *one)
{
    size_t i = 0;
    while (i < *count && !same(&list[i], one))
        i++;
    if (i == *count) {
        list[(*count)++] = *one;
        return;
    }
    list[i].calls += one->calls;
    list[i].seconds += one->seconds;
    list[i].flops += one->flops;
    list[i].bytes += one->bytes;
}

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const tg_operation *)a)->seconds, y = ((const tg_operation *)b)->seconds;
    return (x < y) - (x > y);
}

/* Those of all ranks, each kind once, most time first. */
static tg_status merge(const tg_history *h, tg_operation **out, size_t *out_count)
{
    size_t all = 1;
    for (size_t r = 0; r < h->operation_ranks; r++)
        all += h->operations[r].count;
    tg_operation *list = malloc(all * sizeof *list);
    if (!list)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    size_t count = 0;
    for (size_t r = 0; r < h->operation_ranks; r++)
        for (size_t i = 0; i < h->operations[r].count; i++)
            add(list, &count, &h->operations[r].each[i]);
    qsort(list, count, sizeof *list, by_seconds);
    *out = list;
    *out_count = count;
    return TG_OK;
}

static void put_shape(tg_json_writer *w, const tg_operation *o)
{
    char text[120] = "";
    for (size_t i = 0, n = 0; i < TG_OPERATION_DIMENSIONS && o->shape[i] && n < 90; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%zu", i ? " × " : "", o->shape[i]);
    tg_json_put_string(w, "shape", text);
}

static void put_operation(tg_json_writer *w, const tg_history *h, const tg_operation *o,
                          double seconds)
{
    const double ranks = (double)h->operation_ranks;
    const double peak = strcmp(o->dtype, "bfloat16") == 0 ? h->operations[0].peak_flops_bf16
                                                          : h->operations[0].peak_flops_f32;
    const double rate = o->flops > 0 && o->seconds > 0 ? o->flops / o->seconds : NAN;
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "name", o->name);
    tg_json_put_string(w, "phase", o->phase);
    put_shape(w, o);
    tg_json_put_string(w, "dtype", o->dtype);
    tg_html_put_number(w, "calls", round((double)o->calls / ranks));
    tg_html_put_number(w, "seconds", o->seconds / ranks);
    tg_html_put_number(w, "share", o->seconds / seconds);
    tg_html_put_number(w, "flops_per_s", rate);
    tg_html_put_number(w, "of_peak", peak > 0 ? rate / peak : NAN);
    tg_json_end_object(w);
}

static void put_value(tg_json_writer *w, const char *name, double value, const char *unit)
{
    if (!isfinite(value))
        return;
    tg_json_begin_array(w, NULL);
    tg_json_put_string(w, NULL, name);
    tg_html_put_number(w, NULL, value);
    tg_json_put_string(w, NULL, unit);
    tg_json_end_array(w);
}

/* What lies open of the exchange is the first rank's wait; the rest of its time on the way was hidden by backward. */
static void put_communication(tg_json_writer *w, const tg_history *h)
{
    double open = 0, steps = 0, sent = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        open += h->steps[i].t_reduce;
        steps += h->steps[i].t_step;
    }
    for (size_t r = 0; r < h->operation_ranks; r++)
        for (size_t i = 0; i < h->operations[r].count; i++)
            if (strcmp(h->operations[r].each[i].phase, "exchange") == 0)
                sent += h->operations[r].each[i].bytes;
    tg_json_begin_array(w, "communication");
    if (h->ranks > 1 && h->step_count) {
        put_value(w, "waiting for other ranks, of the steps", open / steps, "share");
        put_value(w, "waiting for other ranks, a step", open / (double)h->step_count, "s");
        if (h->operation_ranks && h->operations[0].steps)
            put_value(w, "exchanged by a rank, a step",
                      sent / (double)h->operation_ranks / (double)h->operations[0].steps, "bytes");
    }
    tg_json_end_array(w);
}

tg_status tg_html_put_operations(tg_json_writer *w, const tg_history *h)
{
    tg_operation *list = NULL;
    size_t count = 0;
    double seconds = 0;
    TG_TRY(merge(h, &list, &count));
    for (size_t r = 0; r < h->operation_ranks; r++)
        seconds += h->operations[r].seconds;
    tg_json_put_uint(w, "operation_ranks", h->operation_ranks);
    tg_json_begin_array(w, "operations");
    for (size_t i = 0; i < count && i < OPERATIONS; i++)
        put_operation(w, h, &list[i], seconds);
    tg_json_end_array(w);
    free(list);
    put_communication(w, h);
    return TG_OK;
}
