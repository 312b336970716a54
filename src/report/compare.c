#include "report/compare_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *tg_compare_more(void *array, size_t count, size_t size)
{
    void *larger = realloc(array, (count + 1) * size);
    if (!larger)
        (void)tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
    return larger;
}

size_t tg_compare_first_step(const tg_history *history)
{
    const size_t tenth = (history->step_count + 9) / 10;
    return history->step_count < 2 ? 0 : tenth < 10 ? tenth : 10;
}

tg_status tg_compare_measure_steps(const tg_history *history, tg_compare_value value,
                                   tg_measure *out)
{
    const size_t first = tg_compare_first_step(history), count = history->step_count - first;
    double *values = malloc((count + 1) * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
    for (size_t i = 0; i < count; i++)
        values[i] = value(&history->steps[first + i]);
    *out = tg_measure_of(values, count);
    free(values);
    return TG_OK;
}

tg_status tg_compare_add_row(tg_comparison *c, const tg_compare_row *row)
{
    if (isnan(row->a.mean) && isnan(row->b.mean))
        return TG_OK; /* neither run says anything of it */
    tg_compare_row *rows = tg_compare_more(c->rows, c->row_count, sizeof *rows);
    if (!rows)
        return TG_ERROR_MACHINE;
    c->rows = rows;
    rows[c->row_count] = *row;
    rows[c->row_count].change = tg_measure_compare(&row->a, &row->b);
    c->row_count++;
    return TG_OK;
}

const tg_compare_row *tg_comparison_row(const tg_comparison *c, const char *key)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (strcmp(c->rows[i].key, key) == 0)
            return &c->rows[i];
    return NULL;
}

static tg_status compare(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    c->a = strdup(a->path);
    c->b = strdup(b->path);
    if (!c->a || !c->b)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
    tg_ledger_make(a, &c->ledger_a);
    tg_ledger_make(b, &c->ledger_b);
    TG_TRY(tg_compare_settings(a, b, c));
    TG_TRY(tg_compare_speed(a, b, c));
    TG_TRY(tg_compare_machines(a, b, c));
    TG_TRY(tg_compare_learning(a, b, c));
    TG_TRY(tg_compare_operations(a, b, c));
    return tg_compare_findings(a, b, c);
}

tg_status tg_compare(const tg_history *a, const tg_history *b, tg_comparison *out)
{
    *out = (tg_comparison){0};
    tg_status status = compare(a, b, out);
    if (status < 0)
        tg_comparison_done(out);
    return status;
}

void tg_comparison_done(tg_comparison *c)
{
    free(c->a);
    free(c->b);
    free(c->settings);
    free(c->rows);
    free(c->operations);
    free(c->findings);
    free(c->predictions);
    *c = (tg_comparison){0};
}
