#include "train/recorder.h"

#include "os/clock.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Spans that a ring keeps: a few steps of most networks; of a loader's worker a thousand photos. */
enum { RING_SPANS = 1 << 15, LOADER_SPANS = 1 << 12 };

static const int64_t FIRST_WRITE_NS = INT64_C(2000000000), MOST_WRITE_NS = INT64_C(30000000000);
enum { WRITE_SHARE = 500 }; /* writing takes at most one part in so many */

tg_status tg_recorder_open(int threads, int workers, tg_recorder *out)
{
    *out = (tg_recorder){.now = {.first_step = 0, .peak_flops_f32 = NAN, .peak_flops_bf16 = NAN},
                         .earlier = {.peak_flops_f32 = NAN, .peak_flops_bf16 = NAN},
                         .interval_ns = FIRST_WRITE_NS};
    tg_status status = tg_trace_new(threads + 1, RING_SPANS, &out->compute);
    if (status == TG_OK && workers > 0)
        status = tg_trace_new(workers, LOADER_SPANS, &out->loader);
    if (status < 0) {
        tg_recorder_close(out);
        return status;
    }
    tg_trace_set_phase(out->loader, "loader");
    out->span_cost_ns = tg_trace_span_cost_ns();
    return TG_OK;
}

void tg_recorder_close(tg_recorder *r)
{
    if (r->compute && tg_trace_attached() == r->compute)
        tg_trace_attach(NULL, 0);
    tg_trace_free(r->compute);
    tg_trace_free(r->loader);
    tg_operations_done(&r->earlier);
    *r = (tg_recorder){0};
}

tg_status tg_recorder_resume(tg_recorder *r, const char *path)
{
    if (!tg_file_exists(path))
        return TG_OK;
    tg_operations earlier;
    TG_TRY(tg_operations_read(path, &earlier));
    tg_operations_done(&r->earlier);
    r->earlier = earlier;
    return TG_OK;
}

void tg_recorder_begin_step(tg_recorder *r)
{
    if (!r->compute)
        return;
    tg_trace_attach(r->compute, 0);
    tg_trace_set_phase(r->compute, "data");
}

void tg_recorder_end_step(tg_recorder *r)
{
    if (r->compute)
        tg_trace_attach(NULL, 0);
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What of an exchange was not yet covered by the one before it: they are posted in order. */
static void count_exchanges(tg_recorder *r, const tg_ranks *ranks)
{
    const int place = tg_trace_threads(r->compute) - 1;
    int64_t covered = 0;
    for (size_t i = 0; i < ranks->record_count; i++) {
        const tg_comm_record *record = &ranks->records[i];
        const bool sums = record->kind != TG_COMM_ALL_GATHER;
        const int64_t begin = most(covered, record->begun_ns);
        covered = most(covered, record->done_ns);
        const tg_trace_key key = {.name = record->what,
                                  .phase = "exchange",
                                  .dtype = !sums                            ? NULL
                                           : ranks->options.wire == TG_BF16 ? "bfloat16"
                                                                            : "float32",
                                  .shape = {record->bytes / sizeof(float)}};
        tg_trace_count(r->compute, place, &key, most(0, covered - begin), 0, (double)record->bytes);
    }
}

void tg_recorder_count_step(tg_recorder *r, int64_t step, double seconds, const tg_ranks *ranks)
{
    if (!r->compute)
        return;
    const int64_t begin = tg_clock_ns();
    if (r->now.steps++ == 0)
        r->now.first_step = step;
    r->now.last_step = step;
    r->now.seconds += seconds;
    r->spans = tg_trace_recorded(r->compute, 0);
    if (ranks)
        count_exchanges(r, ranks);
    if (!r->written_ns) /* counts from the first step's end */
        r->written_ns = begin;
    r->own_ns += tg_clock_ns() - begin;
}

double tg_recorder_own_seconds(const tg_recorder *r)
{
    return ((double)r->spans * r->span_cost_ns + (double)r->own_ns) * 1e-9;
}

bool tg_recorder_is_due(const tg_recorder *r)
{
    return r->compute && r->written_ns && tg_clock_ns() - r->written_ns >= r->interval_ns;
}

static bool same_operation(const tg_operation *a, const tg_operation *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->phase, b->phase) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

static void add(tg_operations *list, const tg_operation *one)
{
    size_t i = 0;
    while (i < list->count && !same_operation(&list->each[i], one))
        i++;
    if (i == list->count) {
        list->each[list->count++] = *one;
        return;
    }
    tg_operation *sum = &list->each[i];
    sum->calls += one->calls;
    sum->seconds += one->seconds;
    sum->flops += one->flops;
    sum->bytes += one->bytes;
}

static void add_all(tg_operations *list, const tg_trace *trace, tg_trace_totals *totals)
{
    const size_t count = trace ? tg_trace_collect(trace, totals) : 0;
    for (size_t i = 0; i < count; i++) {
        const tg_trace_totals *t = &totals[i];
        tg_operation one = {.calls = t->calls,
                            .seconds = tg_clock_seconds(t->ns),
                            .flops = t->flops,
                            .bytes = t->bytes};
        snprintf(one.name, sizeof one.name, "%s", t->key.name);
        snprintf(one.phase, sizeof one.phase, "%s", t->key.phase ? t->key.phase : "");
        snprintf(one.dtype, sizeof one.dtype, "%s", t->key.dtype ? t->key.dtype : "");
        memcpy(one.shape, t->key.shape, sizeof one.shape);
        add(list, &one);
    }
}

static int longest_first(const void *a, const void *b)
{
    const tg_operation *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static double either(double now, double earlier)
{
    return isnan(now) ? earlier : now;
}

/* Both attempts in `out`, whose list has room. */
static void sum_up(const tg_recorder *r, int rank, tg_trace_totals *totals, tg_operations *out)
{
    const tg_operations *e = &r->earlier;
    out->rank = rank;
    out->first_step =
        e->steps && e->first_step < r->now.first_step ? e->first_step : r->now.first_step;
    out->last_step = r->now.steps ? r->now.last_step : e->last_step;
    out->steps = r->now.steps + e->steps;
    out->seconds = r->now.seconds + e->seconds;
    out->peak_flops_f32 = either(r->now.peak_flops_f32, e->peak_flops_f32);
    out->peak_flops_bf16 = either(r->now.peak_flops_bf16, e->peak_flops_bf16);
    out->recording_s = tg_recorder_own_seconds(r) + (e->recording_s > 0 ? e->recording_s : 0);
    for (size_t i = 0; i < e->count; i++)
        add(out, &e->each[i]);
    add_all(out, r->compute, totals);
    add_all(out, r->loader, totals);
    qsort(out->each, out->count, sizeof *out->each, longest_first);
}

tg_status tg_recorder_write(tg_recorder *r, const char *path, int rank)
{
    const int64_t begin = tg_clock_ns();
    tg_operations all = {0};
    tg_trace_totals *totals = calloc(TG_TRACE_KEYS, sizeof *totals);
    all.each = calloc(r->earlier.count + 2 * (size_t)TG_TRACE_KEYS, sizeof *all.each);
    tg_status status = totals && all.each ? TG_OK
                                          : tg_fail(TG_ERROR_MACHINE,
                                                    "%s: out of memory for its operations", path);
    if (status == TG_OK) {
        sum_up(r, rank, totals, &all);
        status = tg_operations_write(path, &all);
    }
    free(totals);
    tg_operations_done(&all);
    const int64_t end = tg_clock_ns();
    r->own_ns += end - begin;
    r->written_ns = end;
    r->interval_ns = most(2 * r->interval_ns < MOST_WRITE_NS ? 2 * r->interval_ns : MOST_WRITE_NS,
                          WRITE_SHARE * (end - begin));
    return status;
}
