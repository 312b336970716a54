/* tagine profile --json. */
#include "cli/profile_text.h"

static void put_ledger(tg_json_writer *w, const tg_ledger *l)
{
    tg_json_begin_object(w, "ledger");
    tg_json_put_double(w, "total_s", l->total_s);
    tg_json_begin_object(w, "seconds");
    for (int row = 0; row < TG_LEDGER_ROWS; row++)
        tg_json_put_double(w, tg_ledger_row_key((tg_ledger_row)row), l->seconds[row]);
    tg_json_end_object(w);
    tg_json_put_double(w, "other_in_steps_s", l->other_steps_s);
    tg_json_put_double(w, "begin", l->begin);
    tg_json_put_double(w, "end", l->end);
    tg_json_put_bool(w, "ended", l->ended);
    tg_json_put_uint(w, "attempts", l->attempts);
    tg_json_put_uint(w, "killed", l->killed);
    tg_json_put_int(w, "steps", l->steps);
    tg_json_put_int(w, "dropped_steps", l->dropped);
    tg_json_end_object(w);
}

static void put_spread(tg_json_writer *w, const char *key, const tg_step_spread *s)
{
    tg_json_begin_object(w, key);
    tg_json_put_double(w, "mean", s->mean);
    tg_json_put_double(w, "median", s->median);
    tg_json_put_double(w, "p5", s->p5);
    tg_json_put_double(w, "p95", s->p95);
    tg_json_put_double(w, "min", s->least);
    tg_json_put_double(w, "max", s->most);
    tg_json_end_object(w);
}

static void put_part_ranks(tg_json_writer *w, const tg_step_times *t)
{
    tg_json_begin_object(w, "over_ranks");
    for (int p = 0; p < TG_PARTS && t->ranks; p++) {
        const tg_part_ranks *ranks = &t->part_ranks[p];
        tg_json_begin_object(w, tg_step_part_key((tg_step_part)p));
        tg_json_put_double(w, "min", ranks->least);
        tg_json_put_int(w, "min_rank", ranks->least_rank);
        tg_json_put_double(w, "mean", ranks->mean);
        tg_json_put_double(w, "max", ranks->most);
        tg_json_put_int(w, "max_rank", ranks->most_rank);
        tg_json_end_object(w);
    }
    tg_json_end_object(w);
}

static void put_slow(tg_json_writer *w, const tg_step_times *t)
{
    tg_json_put_uint(w, "slow_steps", t->slow);
    tg_json_put_double(w, "slow_beyond_s", t->slow_beyond_s);
    tg_json_begin_array(w, "slowest");
    for (size_t i = 0; i < t->worst_count; i++) {
        const tg_slow_step *slow = &t->worst[i];
        tg_json_begin_object(w, NULL);
        tg_json_put_int(w, "step", slow->step);
        tg_json_put_double(w, "seconds", slow->seconds);
        tg_json_put_double(w, "time", slow->time);
        tg_json_put_string(w, "part", tg_step_part_key(slow->part));
        tg_json_put_double(w, "beyond_s", slow->beyond_s);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

static void put_steps(tg_json_writer *w, const tg_step_times *t)
{
    tg_json_begin_object(w, "steps");
    tg_json_put_uint(w, "count", t->steps);
    tg_json_put_double(w, "images_per_s", t->images_per_s);
    put_spread(w, "t_step", &t->step);
    for (int p = 0; p < TG_PARTS; p++)
        put_spread(w, tg_step_part_key((tg_step_part)p), &t->parts[p]);
    put_part_ranks(w, t);
    put_slow(w, t);
    tg_json_end_object(w);
}

static void put_row(tg_json_writer *w, const tg_operation_row *row)
{
    tg_json_begin_object(w, NULL);
    tg_json_put_string(w, "operation", row->key.name[0] ? row->key.name : NULL);
    tg_json_put_string(w, "phase", row->key.phase);
    tg_json_put_string(w, "dtype", row->key.dtype[0] ? row->key.dtype : NULL);
    tg_json_begin_array(w, "shape");
    for (int i = 0; i < TG_OPERATION_DIMENSIONS && row->key.shape[i]; i++)
        tg_json_put_uint(w, NULL, row->key.shape[i]);
    tg_json_end_array(w);
    tg_json_put_uint(w, "shapes", row->shapes);
    tg_json_put_bool(w, "in_steps", row->in_steps);
    tg_json_put_double(w, "calls", row->calls);
    tg_json_put_double(w, "step_s", row->step_s);
    tg_json_put_double(w, "call_s", row->step_s / row->calls);
    tg_json_put_double(w, "share", row->share);
    tg_json_put_double(w, "flops_per_s", row->flops_per_s);
    tg_json_put_double(w, "bytes_per_s", row->bytes_per_s);
    tg_json_put_double(w, "peak_share", row->peak_share);
    tg_json_put_double(w, "min_s", row->least_s);
    tg_json_put_int(w, "min_rank", row->least_rank);
    tg_json_put_double(w, "max_s", row->most_s);
    tg_json_put_int(w, "max_rank", row->most_rank);
    tg_json_end_object(w);
}

static void put_operations(tg_json_writer *w, const tg_operation_table *t, size_t top)
{
    tg_json_begin_object(w, "operations");
    tg_json_put_uint(w, "ranks", t->ranks);
    tg_json_put_int(w, "steps", t->steps);
    tg_json_put_double(w, "step_s", t->step_s);
    tg_json_put_double(w, "rest_s", t->rest_s);
    tg_json_put_double(w, "recording_share", t->recording_share);
    tg_json_put_uint(w, "rows_in_all", t->count);
    tg_json_begin_array(w, "rows");
    for (size_t i = 0; i < t->count && i < top; i++)
        put_row(w, &t->rows[i]);
    tg_json_end_array(w);
    tg_json_end_object(w);
}

static void put_exchange(tg_json_writer *w, const tg_exchange *x)
{
    tg_json_begin_object(w, "exchange_between_ranks");
    tg_json_put_uint(w, "ranks", x->ranks);
    tg_json_put_double(w, "step_s", x->step_s);
    tg_json_put_double(w, "waited_s", x->waited_s);
    tg_json_put_double(w, "exposed_s", x->exposed_s);
    tg_json_put_double(w, "slower_s", x->slower_s);
    tg_json_put_double(w, "exchange_s", x->exchange_s);
    tg_json_put_double(w, "bytes", x->bytes);
    tg_json_put_double(w, "hidden", x->hidden);
    tg_json_put_int(w, "slowest_rank", x->slowest_rank);
    tg_json_put_double(w, "slowest_s", x->slowest_s);
    tg_json_put_double(w, "others_s", x->others_s);
    tg_json_end_object(w);
}

void tg_profile_put(const tg_profile *profile, size_t top, tg_json_writer *writer)
{
    put_ledger(writer, &profile->ledger);
    put_steps(writer, &profile->steps);
    put_operations(writer, &profile->operations, top);
    put_exchange(writer, &profile->exchange);
}
