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
    SPANS = 1 << 14, /* of a step */
    LANES = 64,      /* rows of collectives, more than are ever under way at once */
    BUDGET_BYTES = 64 << 20,
};

struct tg_step_trace {
    tg_comm *comm;
    tg_trace *spans;
    tg_trace_span *copy; /* [SPANS] */
    tg_timeline *timeline;
    int64_t begin_ns;
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

static tg_status open_parts(tg_step_trace *t)
{
    tg_timeline_head head = {.rank = t->comm->rank,
                             .ranks = t->comm->size,
                             .host = tg_comm_host(t->comm, t->comm->rank),
                             .budget_bytes = BUDGET_BYTES};
    TG_TRY(tg_step_trace_align(t->comm, &head.offset_ns, &head.offset_error_ns));
    t->copy = malloc(SPANS * sizeof *t->copy);
    if (!t->copy)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a trace of %d spans", SPANS);
    TG_TRY(tg_trace_new(1, SPANS, &t->spans));
    TG_TRY(tg_timeline_open(&head, &t->timeline));
    tg_timeline_name_row(t->timeline, 0, "compute");
    return TG_OK;
}

tg_status tg_step_trace_open(tg_comm *comm, tg_step_trace **out)
{
    tg_step_trace *t = calloc(1, sizeof *t);
    if (!t)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a trace");
    t->comm = comm;
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
    if (t->spans && tg_trace_attached() == t->spans)
        tg_trace_attach(NULL, 0);
    tg_trace_free(t->spans);
    tg_timeline_free(t->timeline);
    free(t->copy);
    free(t);
}

void tg_step_trace_begin(tg_step_trace *t)
{
    tg_trace_reset(t->spans);
    tg_trace_attach(t->spans, 0);
    t->begin_ns = tg_clock_ns();
}

static void add(tg_step_trace *t, const char *name, const char *category, int64_t begin_ns,
                int64_t end_ns)
{
    const tg_timeline_event event = {
        .name = name, .category = category, .begin_ns = begin_ns, .end_ns = end_ns};
    tg_timeline_add(t->timeline, 0, &event);
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
        tg_timeline_name_row(t->timeline, lane + 1, name);
    }
    return lane;
}

static void add_exchange(tg_step_trace *t, const tg_comm_record *r, int64_t step, size_t number)
{
    char name[64];
    const int lane = take_lane(t, r);
    const tg_timeline_argument arguments[] = {
        {"step", (double)step},
        {"mib", (double)r->bytes / 1048576},
        {"queued_us", (double)(r->begun_ns - r->queued_ns) * 1e-3}};
    snprintf(name, sizeof name, "%s %zu", r->what, number);
    const tg_timeline_event event = {.name = name,
                                     .category = "exchange",
                                     .begin_ns = r->begun_ns,
                                     .end_ns = r->done_ns,
                                     .arguments = arguments,
                                     .argument_count = sizeof arguments / sizeof *arguments};
    if (lane == LANES)
        return;
    tg_timeline_add(t->timeline, lane + 1, &event);
    t->lane_end_ns[lane] = r->done_ns;
}

void tg_step_trace_end(tg_step_trace *t, int64_t step, const tg_ranks *ranks)
{
    char name[32];
    const int64_t now = tg_clock_ns();
    tg_trace_attach(NULL, 0);
    snprintf(name, sizeof name, "step %lld", (long long)step);
    add(t, name, "step", t->begin_ns, now);
    const size_t spans = tg_trace_spans(t->spans, 0, t->copy, SPANS);
    for (size_t i = 0; i < spans; i++)
        add(t, t->copy[i].key.name, "phase", t->copy[i].begin_ns, t->copy[i].end_ns);
    for (size_t i = 0, number = 0; ranks && i < ranks->record_count; i++, number++) {
        if (i > 0 && ranks->records[i].kind != ranks->records[i - 1].kind)
            number = 0;
        add_exchange(t, &ranks->records[i], step, number);
    }
}

tg_status tg_step_trace_write(tg_step_trace *t, const char *folder)
{
    char name[64];
    snprintf(name, sizeof name, "rank-%d.json.gz", t->comm->rank);
    char *path = tg_path_join(folder, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_folder_make(folder);
    if (status == TG_OK)
        status = tg_timeline_write(t->timeline, path);
    free(path);
    return status;
}
