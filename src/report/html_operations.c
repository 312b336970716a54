/* The operations that took most, and what exchanges between ranks took: what `tagine profile` shows (profile/). */
#include "report/html_parts.h"

#include "profile/exchange.h"
#include "profile/operation_table.h"

#include <math.h>
#include <stdio.h>

enum { OPERATIONS = 60 };

static void put_shape(tg_json_writer *w, const tg_operation *o)
{
    char text[120] = "";
    for (size_t i = 0, n = 0; i < TG_OPERATION_DIMENSIONS && o->shape[i] && n < 90; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%zu", i ? " × " : "", o->shape[i]);
    tg_json_put_string(w, "shape", text);
}

static void put_row(tg_json_writer *w, const tg_operation_table *table, const tg_operation_row *row)
{
    const double steps = (double)table->steps;
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "name", row->key.name);
    tg_json_put_string(w, "phase", row->key.phase);
    put_shape(w, &row->key);
    tg_json_put_string(w, "dtype", row->key.dtype);
    tg_html_put_number(w, "calls", round(row->calls * steps));
    tg_html_put_number(w, "seconds", row->step_s * steps);
    tg_html_put_number(w, "share", row->share);
    tg_html_put_number(w, "flops_per_s", row->flops_per_s);
    tg_html_put_number(w, "of_peak", row->peak_share);
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

static void put_communication(tg_json_writer *w, const tg_history *h)
{
    const tg_exchange e = tg_exchange_of(h);
    tg_json_begin_array(w, "communication");
    if (e.ranks) {
        put_value(w, "waiting for other ranks, of the steps", e.waited_s / e.step_s, "share");
        put_value(w, "waiting for other ranks, a step", e.waited_s, "s");
        put_value(w, "of it the exchange itself", e.exposed_s, "s");
        put_value(w, "of it waiting for slower ranks", e.slower_s, "s");
        put_value(w, "exchange under way, a step", e.exchange_s, "s");
        put_value(w, "of it hidden behind computing", e.hidden, "share");
        put_value(w, "exchanged by a rank, a step", e.bytes, "bytes");
    }
    tg_json_end_array(w);
}

tg_status tg_html_put_operations(tg_json_writer *w, const tg_history *h)
{
    tg_operation_table table = {0};
    TG_TRY(tg_operation_table_make(h, TG_BY_SHAPE, &table));
    tg_json_put_uint(w, "operation_ranks", table.ranks);
    tg_json_begin_array(w, "operations");
    for (size_t i = 0; i < table.count && i < OPERATIONS; i++)
        put_row(w, &table, &table.rows[i]);
    tg_json_end_array(w);
    tg_operation_table_done(&table);
    put_communication(w, h);
    return TG_OK;
}
