#include "profile/operation_table.h"

#include "profile/sane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MOST_CALLS = UINT64_C(1000000000000000);

bool tg_operation_in_steps(const char *phase)
{
    return strcmp(phase, "exchange") != 0 && strcmp(phase, "loader") != 0;
}

static bool has_steps(const tg_operations *file)
{
    return file->steps > 0 && tg_sane_seconds(file->seconds) > 0;
}

/* An operation of one rank's file. */
typedef struct entry {
    const tg_operation *operation;
    const tg_operations *file;
    size_t rank; /* of the files, from 0 */
} entry;

/* Phase first, shape last, so that whatever makes one row stands together. */
static int by_key(const void *a, const void *b)
{
    const tg_operation *x = ((const entry *)a)->operation, *y = ((const entry *)b)->operation;
    int order = strcmp(x->phase, y->phase);
    if (!order)
        order = strcmp(x->name, y->name);
    if (!order)
        order = strcmp(x->dtype, y->dtype);
    for (int i = 0; !order && i < TG_OPERATION_DIMENSIONS; i++)
        order = (x->shape[i] > y->shape[i]) - (x->shape[i] < y->shape[i]);
    return order;
}

static bool same_name(const tg_operation *x, const tg_operation *y)
{
    return strcmp(x->name, y->name) == 0 && strcmp(x->dtype, y->dtype) == 0;
}

static bool same_shape(const tg_operation *x, const tg_operation *y)
{
    return memcmp(x->shape, y->shape, sizeof x->shape) == 0;
}

static bool same_row(tg_operation_by by, const tg_operation *x, const tg_operation *y)
{
    return strcmp(x->phase, y->phase) == 0 &&
           (by == TG_BY_PHASE || (same_name(x, y) && (by == TG_BY_OPERATION || same_shape(x, y))));
}

static size_t count_entries(const tg_history *h)
{
    size_t count = 0;
    for (size_t r = 0; r < h->operation_ranks; r++)
        count += h->operations[r].count;
    return count;
}

/* Of all ranks that have recorded steps. */
static size_t list_entries(const tg_history *h, entry *out)
{
    size_t count = 0, rank = 0;
    for (size_t r = 0; r < h->operation_ranks; r++) {
        const tg_operations *file = &h->operations[r];
        if (!has_steps(file))
            continue;
        for (size_t i = 0; i < file->count; i++)
            if (tg_sane_seconds(file->each[i].seconds) >= 0 && file->each[i].calls < MOST_CALLS)
                out[count++] = (entry){.operation = &file->each[i], .file = file, .rank = rank};
        rank++;
    }
    qsort(out, count, sizeof *out, by_key);
    return count;
}

static double peak_of(const entry *e)
{
    if (strcmp(e->operation->dtype, "bfloat16") == 0)
        return e->file->peak_flops_bf16;
    return strcmp(e->operation->dtype, "float32") == 0 ? e->file->peak_flops_f32 : NAN;
}

/* What of a row's key all its operations have in common. */
static tg_operation common_key(const entry *entries, size_t count, size_t *out_shapes)
{
    tg_operation key = *entries[0].operation;
    key.calls = 0;
    key.seconds = key.flops = key.bytes = 0;
    *out_shapes = 1;
    for (size_t i = 1; i < count; i++) {
        const tg_operation *o = entries[i].operation, *before = entries[i - 1].operation;
        *out_shapes += !same_name(o, before) || !same_shape(o, before);
        if (strcmp(o->name, before->name) != 0)
            key.name[0] = '\0';
        if (strcmp(o->dtype, before->dtype) != 0)
            key.dtype[0] = '\0';
    }
    if (*out_shapes > 1)
        memset(key.shape, 0, sizeof key.shape);
    return key;
}

/* NaN where nothing was counted, or what no machine can do. */
static double rate(double work, double seconds)
{
    return seconds > 0 && work / seconds < 1e18 ? work / seconds : NAN;
}

/* Rates are of the calls whose work was counted, the share of the peak each by its own type's and machine's. */
static void add_rates(const entry *entries, size_t count, tg_operation_row *row)
{
    double flops = 0, bytes = 0, flops_s = 0, bytes_s = 0, peak_s = 0;
    for (size_t i = 0; i < count; i++) {
        const tg_operation *o = entries[i].operation;
        if (o->flops > 0) {
            flops += o->flops;
            flops_s += o->seconds;
            peak_s += o->flops / peak_of(&entries[i]);
        }
        if (o->bytes > 0) {
            bytes += o->bytes;
            bytes_s += o->seconds;
        }
    }
    row->flops_per_s = rate(flops, flops_s);
    row->bytes_per_s = rate(bytes, bytes_s);
    row->peak_share = isnan(row->flops_per_s) ? NAN : peak_s / flops_s;
}

/* ranks: [table->ranks], scratch. */
static tg_operation_row make_row(const entry *entries, size_t count,
                                 const tg_operation_table *table, double *ranks)
{
    tg_operation_row row = {.least_s = INFINITY, .most_s = -INFINITY};
    row.key = common_key(entries, count, &row.shapes);
    row.in_steps = tg_operation_in_steps(row.key.phase);
    memset(ranks, 0, table->ranks * sizeof *ranks);
    for (size_t i = 0; i < count; i++) {
        const double steps = (double)entries[i].file->steps;
        ranks[entries[i].rank] += entries[i].operation->seconds / steps;
        row.calls += (double)entries[i].operation->calls / steps / (double)table->ranks;
    }
    for (size_t r = 0; r < table->ranks; r++) {
        row.step_s += ranks[r] / (double)table->ranks;
        if (ranks[r] < row.least_s) {
            row.least_s = ranks[r];
            row.least_rank = (int)r;
        }
        if (ranks[r] > row.most_s) {
            row.most_s = ranks[r];
            row.most_rank = (int)r;
        }
    }
    row.share = row.step_s / table->step_s;
    add_rates(entries, count, &row);
    return row;
}

/* Ranks by the numbers that their files give them. */
static int rank_number(const tg_history *h, int index)
{
    for (size_t r = 0; r < h->operation_ranks; r++)
        if (has_steps(&h->operations[r]) && index-- == 0)
            return h->operations[r].rank;
    return -1;
}

static int longest_first(const void *a, const void *b)
{
    const tg_operation_row *x = a, *y = b;
    return (x->step_s < y->step_s) - (x->step_s > y->step_s);
}

static void add_steps(const tg_history *h, tg_operation_table *t)
{
    double recording = 0;
    for (size_t r = 0; r < h->operation_ranks; r++) {
        const tg_operations *file = &h->operations[r];
        if (!has_steps(file))
            continue;
        if (!t->ranks || file->first_step < t->first_step)
            t->first_step = file->first_step;
        t->last_step = file->last_step > t->last_step ? file->last_step : t->last_step;
        t->steps = file->steps > t->steps ? file->steps : t->steps;
        t->step_s += file->seconds / (double)file->steps;
        recording += tg_sane_seconds(file->recording_s) / file->seconds;
        t->ranks++;
    }
    t->step_s /= (double)t->ranks;
    t->recording_share = recording / (double)t->ranks;
}

static void fill(const tg_history *h, tg_operation_by by, entry *entries, double *ranks,
                 tg_operation_table *t)
{
    const size_t count = list_entries(h, entries);
    t->rest_s = t->step_s;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1;
             end < count && same_row(by, entries[i].operation, entries[end].operation);)
            end++;
        tg_operation_row *row = &t->rows[t->count++];
        *row = make_row(&entries[i], end - i, t, ranks);
        row->least_rank = rank_number(h, row->least_rank);
        row->most_rank = rank_number(h, row->most_rank);
        t->rest_s -= row->in_steps ? row->step_s : 0;
    }
    t->rest_s = fmax(t->rest_s, 0);
    if (t->count)
        qsort(t->rows, t->count, sizeof *t->rows, longest_first);
}

tg_status tg_operation_table_make(const tg_history *history, tg_operation_by by,
                                  tg_operation_table *out)
{
    const size_t count = count_entries(history);
    tg_operation_table t = {0};
    add_steps(history, &t);
    if (!t.ranks) {
        *out = (tg_operation_table){.step_s = NAN, .rest_s = NAN, .recording_share = NAN};
        return TG_OK;
    }
    entry *entries = calloc(count + 1, sizeof *entries);
    double *ranks = calloc(t.ranks, sizeof *ranks);
    t.rows = calloc(count + 1, sizeof *t.rows);
    const bool room = entries && ranks && t.rows;
    if (room)
        fill(history, by, entries, ranks, &t);
    free(entries);
    free(ranks);
    if (!room) {
        free(t.rows);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a table of %zu operations", count);
    }
    *out = t;
    return TG_OK;
}

void tg_operation_table_done(tg_operation_table *table)
{
    free(table->rows);
    *table = (tg_operation_table){0};
}
