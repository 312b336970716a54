#include "train/step_trace.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "trace/timeline.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 8,
    LANES = 64, /* rows of collectives, more than are ever under way at once */
    /* rows */
    STEPS = 0,
    OPERATIONS = 1,
    EXCHANGES = 10000,
    WORKERS = 20000,
    ARGUMENTS = 10,
    FIRST_LAUNCH =
        1
        << 20, /* HolisticTraceAnalysis keeps small ones in too small a type for what it does next */
};

struct tg_step_trace {
    tg_step_trace_options options;
    tg_timeline *timeline;
    double launch;              /* number of the step being added, as others count launches */
    int64_t lane_end_ns[LANES]; /* when the last on it was done; 0: none was */
};

/* What a rank says: when it came, and when it left the meeting before. */
typedef struct visit {
    int64_t came_ns, left_ns;
} visit;

tg_status tg_step_trace_align(tg_comm *comm, int64_t *out_offset_ns, int64_t *out_error_ns)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    visit *all = calloc((size_t)comm->size, sizeof *all), mine = {0};
    tg_status status =
        all ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    for (int k = 0; k < ROUNDS && status == TG_OK; k++) {
        const int64_t came_before = mine.came_ns;
        mine.came_ns = tg_clock_ns();
        status = tg_comm_meet(comm, "clocks", &mine, sizeof mine, all);
        mine.left_ns = tg_clock_ns();
        if (all[0].came_ns - mine.left_ns > low) /* nobody leaves before the first rank has come */
            low = all[0].came_ns - mine.left_ns;
        if (k > 0 && all[0].left_ns - came_before < high) /* nor it, before this one has */
            high = all[0].left_ns - came_before;
    }
    free(all);
    TG_TRY(status);
    const bool same = strcmp(tg_comm_host(comm, comm->rank), tg_comm_host(comm, 0)) == 0;
    const bool own = comm->rank == 0 || (same && low <= 0 && high >= 0);
    *out_offset_ns = own ? 0 : low + (high - low) / 2;
    *out_error_ns = own ? 0 : (high - low) / 2;
    return TG_OK;
}

static void name_rows(tg_step_trace *t)
{
    char name[48];
    tg_timeline_name_row(t->timeline, STEPS, "compute");
    for (int i = 0; i < t->options.threads; i++) {
        snprintf(name, sizeof name, "operations, thread %d", i);
        tg_timeline_name_row(t->timeline, OPERATIONS + i, name);
    }
    for (int i = 0; t->options.loader && i < tg_trace_threads(t->options.loader); i++) {
        snprintf(name, sizeof name, "loader worker %d", i);
        tg_timeline_name_row(t->timeline, WORKERS + i, name);
    }
}

static tg_status open_parts(tg_step_trace *t)
{
    tg_comm *comm = t->options.comm;
    tg_timeline_head head = {.rank = comm->rank,
                             .ranks = comm->size,
                             .host = tg_comm_host(comm, comm->rank),
                             .backend = comm->size > 1 ? comm->library : NULL,
                             .threads = t->options.threads,
                             .budget_bytes = t->options.budget_bytes};
    TG_TRY(tg_step_trace_align(comm, &head.offset_ns, &head.offset_error_ns));
    TG_TRY(tg_timeline_open(&head, &t->timeline));
    name_rows(t);
    return TG_OK;
}

tg_status tg_step_trace_open(const tg_step_trace_options *options, tg_step_trace **out)
{
    tg_step_trace *t = calloc(1, sizeof *t);
    if (!t)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a trace");
    t->options = *options;
    tg_status status = open_parts(t);
    if (status < 0)
        tg_step_trace_close(t);
    else
        *out = t;
    return status;
}

void tg_step_trace_close(tg_step_trace *t)
{
    if (!t)
        return;
    tg_timeline_free(t->timeline);
    free(t);
}

size_t tg_step_trace_bytes(const tg_step_trace *t)
{
    return tg_timeline_bytes(t->timeline);
}

/* An event with its arguments, one by one. */
typedef struct event {
    tg_timeline_event base;
    tg_timeline_argument arguments[ARGUMENTS];
} event;

static void put(event *e, const char *name, double value, const char *text)
{
    e->arguments[e->base.argument_count++] = (tg_timeline_argument){name, value, text};
}

static void add(tg_step_trace *t, int row, event *e)
{
    e->base.arguments = e->arguments;
    tg_timeline_add(t->timeline, row, &e->base);
}

static void add_plain(tg_step_trace *t, int row, const char *name, int64_t begin_ns, int64_t end_ns)
{
    event e = {
        .base = {
            .name = name, .category = "user_annotation", .begin_ns = begin_ns, .end_ns = end_ns}};
    add(t, row, &e);
}

/* What makes a kernel of it, launched by the step that it belongs to. */
static void put_stream(const tg_step_trace *t, event *e, int row)
{
    e->base.category = "kernel";
    put(e, "stream", row, NULL);
    put(e, "device", 0, NULL);
    put(e, "correlation", t->launch, NULL);
    put(e, "External id", t->launch, NULL);
}

static void print_shape(const tg_trace_key *key, char *out, size_t bytes)
{
    size_t length = 0;
    out[0] = 0;
    for (int d = 0; d < TG_TRACE_DIMENSIONS && key->shape[d] && length < bytes; d++)
        length +=
            (size_t)snprintf(out + length, bytes - length, "%s%zu", d ? "x" : "", key->shape[d]);
}

static bool is_phase(const tg_trace_key *key)
{
    return key->group || (key->phase && strcmp(key->phase, "wait") == 0) ||
           strcmp(key->name, "data") == 0;
}

/* What is no computing of the step is none to those who add it up either. */
static bool computes(const tg_trace_key *key)
{
    return !key->phase || (strcmp(key->phase, "data") != 0 && strcmp(key->phase, "loader") != 0);
}

static void add_operation(tg_step_trace *t, int row, const tg_trace_span *span)
{
    char shape[96];
    event e = {.base = {.name = span->key.name,
                        .category = "cpu_op",
                        .begin_ns = span->begin_ns,
                        .end_ns = span->end_ns}};
    print_shape(&span->key, shape, sizeof shape);
    if (computes(&span->key))
        put_stream(t, &e, row);
    if (span->key.phase)
        put(&e, "phase", 0, span->key.phase);
    if (span->layer >= 0)
        put(&e, "layer", span->layer, NULL);
    if (shape[0])
        put(&e, "shape", 0, shape);
    if (span->key.dtype)
        put(&e, "dtype", 0, span->key.dtype);
    add(t, row, &e);
}

/* Operations of one block that follow each other. */
typedef struct run {
    int layer;
    int64_t begin_ns, end_ns;
} run;

static void end_run(tg_step_trace *t, int row, run *r)
{
    char name[32];
    snprintf(name, sizeof name, "block %d", r->layer);
    if (r->layer >= 0)
        add_plain(t, row, name, r->begin_ns, r->end_ns);
    r->layer = TG_TRACE_NO_LAYER;
}

static void extend_run(tg_step_trace *t, int row, run *r, const tg_trace_span *span)
{
    if (span->layer != r->layer) {
        end_run(t, row, r);
        *r = (run){.layer = span->layer, .begin_ns = span->begin_ns};
    }
    r->end_ns = span->end_ns;
}

/* The first span of a thread, in the order in which they ended, that may lie in the window. */
static uint64_t first_in(const tg_trace *trace, int thread, int64_t begin_ns)
{
    tg_trace_span span;
    uint64_t number = tg_trace_recorded(trace, thread);
    while (number > 0 && tg_trace_get_span(trace, thread, number - 1, &span) &&
           span.end_ns > begin_ns)
        number--;
    return number;
}

static void add_thread(tg_step_trace *t, const tg_trace *trace, int thread, int row,
                       const tg_step_window *w)
{
    const uint64_t recorded = tg_trace_recorded(trace, thread);
    run r = {.layer = TG_TRACE_NO_LAYER};
    tg_trace_span span;
    for (uint64_t i = first_in(trace, thread, w->begin_ns); i < recorded; i++) {
        if (!tg_trace_get_span(trace, thread, i, &span) || span.begin_ns < w->begin_ns)
            continue;
        if (span.end_ns > w->end_ns)
            break;
        if (is_phase(&span.key)) {
            add_plain(t, STEPS, span.key.name, span.begin_ns, span.end_ns);
            continue;
        }
        extend_run(t, row, &r, &span);
        add_operation(t, row, &span);
    }
    end_run(t, row, &r);
}

/* A row on which nothing is under way any more; LANES: there is none. */
static int take_lane(tg_step_trace *t, const tg_comm_record *r)
{
    int lane = 0;
    while (lane < LANES && t->lane_end_ns[lane] > r->begun_ns)
        lane++;
    if (lane < LANES && !t->lane_end_ns[lane]) {
        char name[32] = "exchange";
        if (lane)
            snprintf(name, sizeof name, "exchange %d", lane + 1);
        tg_timeline_name_row(t->timeline, EXCHANGES + lane, name);
    }
    return lane;
}

static const char *kind_name(tg_comm_kind kind)
{
    static const char *const names[] = {[TG_COMM_REDUCE_SCATTER] = "reduce_scatter",
                                        [TG_COMM_ALL_GATHER] = "all_gather",
                                        [TG_COMM_ALL_REDUCE] = "all_reduce",
                                        [TG_COMM_MEET] = "meet"};
    return names[kind];
}

static void add_exchange(tg_step_trace *t, const tg_comm_record *r, int64_t step, size_t number)
{
    char name[96];
    const int lane = take_lane(t, r);
    if (lane == LANES)
        return;
    snprintf(name, sizeof name, "ncclKernel:%s %s %zu", kind_name(r->kind), r->what, number);
    event e = {.base = {.name = name, .begin_ns = r->begun_ns, .end_ns = r->done_ns}};
    put_stream(t, &e, EXCHANGES + lane);
    put(&e, "step", (double)step, NULL);
    put(&e, "mib", (double)r->bytes / 1048576, NULL);
    put(&e, "queued_us", (double)(r->begun_ns - r->queued_ns) * 1e-3, NULL);
    add(t, EXCHANGES + lane, &e);
    t->lane_end_ns[lane] = r->done_ns;
}

void tg_step_trace_add(tg_step_trace *t, const tg_step_window *w)
{
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)w->step);
    t->launch = (double)(w->step + FIRST_LAUNCH);
    event e = {.base = {.name = name,
                        .category = "user_annotation",
                        .begin_ns = w->begin_ns,
                        .end_ns = w->end_ns}};
    put(&e, "correlation", t->launch, NULL);
    put(&e, "External id", t->launch, NULL);
    add(t, STEPS, &e);
    for (int i = 0; i < t->options.threads; i++)
        add_thread(t, t->options.compute, i, OPERATIONS + i, w);
    for (int i = 0; t->options.loader && i < tg_trace_threads(t->options.loader); i++)
        add_thread(t, t->options.loader, i, WORKERS + i, w);
    for (size_t i = 0, number = 0; i < w->record_count; i++, number++) {
        if (i > 0 && w->records[i].kind != w->records[i - 1].kind)
            number = 0;
        add_exchange(t, &w->records[i], w->step, number);
    }
}

tg_status tg_step_trace_write(tg_step_trace *t, const char *folder)
{
    char name[64];
    snprintf(name, sizeof name, "rank-%d.json.gz", t->options.comm->rank);
    char *path = tg_path_join(folder, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_folder_make(folder);
    if (status == TG_OK)
        status = tg_timeline_write(t->timeline, path);
    free(path);
    return status;
}
