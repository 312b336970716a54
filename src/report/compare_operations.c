/* Operations: seconds a step, by name and phase. */
#include "report/compare_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a record of operations cannot tell: its noise is taken to be that of the steps, and at least this. */
#define LEAST_NOISE 0.03

static tg_compare_operation *find(tg_comparison *c, const tg_operation *op)
{
    for (size_t i = 0; i < c->operation_count; i++)
        if (strcmp(c->operations[i].name, op->name) == 0 &&
            strcmp(c->operations[i].phase, op->phase) == 0)
            return &c->operations[i];
    tg_compare_operation *all = tg_compare_more(c->operations, c->operation_count, sizeof *all);
    if (!all)
        return NULL;
    c->operations = all;
    tg_compare_operation *new = &all[c->operation_count++];
    *new = (tg_compare_operation){.a_s = NAN, .b_s = NAN};
    snprintf(new->name, sizeof new->name, "%s", op->name);
    snprintf(new->phase, sizeof new->phase, "%s", op->phase);
    return new;
}

/* Of several types the one with the most time rules; the first that comes is near enough. */
static void note_type(char type[12], const char *dtype)
{
    if (!type[0])
        snprintf(type, 12, "%s", dtype);
    else if (strcmp(type, dtype) != 0 && dtype[0])
        snprintf(type, 12, "mixed");
}

static tg_status take(tg_comparison *c, const tg_history *h, bool first, double scale)
{
    for (size_t r = 0; r < h->operation_ranks; r++) {
        const tg_operations *rank = &h->operations[r];
        const double share = scale / (double)rank->steps / (double)h->operation_ranks;
        for (size_t i = 0; i < rank->count && rank->steps > 0; i++) {
            tg_compare_operation *op = find(c, &rank->each[i]);
            if (!op)
                return TG_ERROR_MACHINE;
            double *seconds = first ? &op->a_s : &op->b_s;
            *seconds = (isnan(*seconds) ? 0 : *seconds) + share * rank->each[i].seconds;
            note_type(first ? op->a_dtype : op->b_dtype, rank->each[i].dtype);
        }
    }
    return TG_OK;
}

static double known(double seconds)
{
    return isnan(seconds) ? 0 : seconds;
}

static double difference(const tg_compare_operation *op)
{
    return known(op->b_s) - known(op->a_s);
}

static int by_difference(const void *a, const void *b)
{
    const double x = fabs(difference(a)), y = fabs(difference(b));
    return (x < y) - (x > y);
}

static double relative_noise(const tg_comparison *c)
{
    const tg_compare_row *step = tg_comparison_row(c, "step_s");
    if (!step)
        return LEAST_NOISE;
    const double noise =
        hypot(known(step->a.half_width) / step->a.mean, known(step->b.half_width) / step->b.mean);
    return fmax(noise, LEAST_NOISE); /* of NaN and a number, the number */
}

static tg_operation_change judge(const tg_compare_operation *op, double noise)
{
    if (isnan(op->a_s))
        return TG_OPERATION_ADDED;
    if (isnan(op->b_s))
        return TG_OPERATION_GONE;
    if (fabs(difference(op)) <= noise * fmax(op->a_s, op->b_s))
        return TG_OPERATION_SAME;
    return difference(op) < 0 ? TG_OPERATION_FASTER : TG_OPERATION_SLOWER;
}

tg_status tg_compare_operations(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    if (!a->operation_ranks || !b->operation_ranks)
        return TG_OK; /* of one run alone everything would be added or gone */
    TG_TRY(take(c, a, true, 1));
    TG_TRY(take(c, b, false, c->scaled ? c->images_a / c->images_b : 1));
    const double noise = relative_noise(c);
    for (size_t i = 0; i < c->operation_count; i++)
        c->operations[i].change = judge(&c->operations[i], noise);
    if (c->operation_count)
        qsort(c->operations, c->operation_count, sizeof *c->operations, by_difference);
    return TG_OK;
}
