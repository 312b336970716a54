#include "os/clock.h"
#include "tagine/trace.h"
#include "trace/timeline.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 64, NAME_BYTES = 128, BUDGET_BYTES = 50 << 20, WRITE_SHARE = 50 };
static const int64_t WRITE_NS = INT64_C(1000000000);

typedef struct open_span {
    char name[NAME_BYTES];
    int64_t begin_ns;
} open_span;

/* What one thread has begun; written by that thread alone. */
typedef struct thread_spans {
    struct thread_spans *next;
    pthread_t thread;
    int row;
    size_t depth; /* begun; those beyond DEPTH are not kept */
    open_span spans[DEPTH];
} thread_spans;

struct tagine_trace {
    int64_t started_ns; /* with the address, what tells it from one that was freed */
    char path[PATH_MAX];
    pthread_mutex_t lock; /* of all below */
    tg_timeline *timeline;
    thread_spans *threads;
    int rows;
    bool failed, dirty;
    int64_t written_ns, write_ns;
};

/* Where this thread wrote last. */
static _Thread_local struct {
    const tagine_trace *trace;
    int64_t started_ns;
    thread_spans *spans;
} last;

static tagine_status public_status(tg_status status)
{
    return (tagine_status)tg_status_exit_code(status);
}

static tg_status write_file(tagine_trace *trace)
{
    const int64_t begin = tg_clock_ns();
    tg_status status = tg_timeline_write(trace->timeline, trace->path);
    trace->dirty = false;
    trace->written_ns = tg_clock_ns();
    trace->write_ns = trace->written_ns - begin;
    return status;
}

static tg_status open_trace(tagine_trace *trace, const char *path)
{
    char host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof host - 1);
    const tg_timeline_head head = {.ranks = 1, .host = host, .budget_bytes = BUDGET_BYTES};
    if (snprintf(trace->path, sizeof trace->path, "%s", path) >= (int)sizeof trace->path)
        return tg_fail(TG_ERROR_USAGE, "the path of the trace is too long");
    TG_TRY(tg_timeline_open(&head, &trace->timeline));
    return write_file(trace);
}

static void free_trace(tagine_trace *trace)
{
    while (trace->threads) {
        thread_spans *next = trace->threads->next;
        free(trace->threads);
        trace->threads = next;
    }
    tg_timeline_free(trace->timeline);
    pthread_mutex_destroy(&trace->lock);
    free(trace);
}

tagine_status tagine_trace_start(const char *path, tagine_trace **out)
{
    if (!path || !out)
        return public_status(tg_fail(TG_ERROR_USAGE, "%s is NULL", path ? "out" : "path"));
    tagine_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return public_status(tg_fail(TG_ERROR_MACHINE, "out of memory for a trace"));
    trace->started_ns = tg_clock_ns();
    pthread_mutex_init(&trace->lock, NULL);
    tg_status status = open_trace(trace, path);
    if (status < 0)
        free_trace(trace);
    else
        *out = trace;
    return public_status(status);
}

/* A row for this thread. Call under the lock. */
static thread_spans *new_thread(tagine_trace *trace)
{
    char name[48];
    thread_spans *spans = calloc(1, sizeof *spans);
    if (!spans) {
        trace->failed = true;
        return NULL;
    }
    spans->thread = pthread_self();
    spans->row = trace->rows++;
    spans->next = trace->threads;
    trace->threads = spans;
    snprintf(name, sizeof name, "thread %d", spans->row);
    tg_timeline_name_row(trace->timeline, spans->row, name);
    return spans;
}

/* NULL: no memory. */
static thread_spans *spans_of(tagine_trace *trace)
{
    if (last.trace == trace && last.started_ns == trace->started_ns)
        return last.spans;
    pthread_mutex_lock(&trace->lock);
    thread_spans *spans = trace->threads;
    while (spans && !pthread_equal(spans->thread, pthread_self()))
        spans = spans->next;
    if (!spans)
        spans = new_thread(trace);
    pthread_mutex_unlock(&trace->lock);
    last.trace = spans ? trace : NULL;
    last.started_ns = trace->started_ns;
    last.spans = spans;
    return spans;
}

void tagine_annotate_begin(tagine_trace *trace, const char *name)
{
    thread_spans *spans = trace ? spans_of(trace) : NULL;
    if (!spans || spans->depth++ >= DEPTH)
        return;
    open_span *span = &spans->spans[spans->depth - 1];
    const size_t n = name ? strnlen(name, NAME_BYTES - 1) : 0;
    memcpy(span->name, name ? name : "", n);
    span->name[n] = 0;
    span->begin_ns = tg_clock_ns();
}

/* Call under the lock. */
static void end_span(tagine_trace *trace, thread_spans *spans, int64_t end_ns)
{
    if (spans->depth-- > DEPTH)
        return;
    const open_span *span = &spans->spans[spans->depth];
    const tg_timeline_event event = {.name = span->name,
                                     .category = "user_annotation",
                                     .begin_ns = span->begin_ns,
                                     .end_ns = end_ns};
    tg_timeline_add(trace->timeline, spans->row, &event);
    trace->dirty = true;
}

void tagine_annotate_end(tagine_trace *trace)
{
    const int64_t now = tg_clock_ns();
    thread_spans *spans = trace ? spans_of(trace) : NULL;
    if (!spans || spans->depth == 0)
        return;
    pthread_mutex_lock(&trace->lock);
    end_span(trace, spans, now);
    const int64_t since = now - trace->written_ns;
    if (since >= WRITE_NS && since >= WRITE_SHARE * trace->write_ns)
        trace->failed = write_file(trace) < 0 || trace->failed;
    pthread_mutex_unlock(&trace->lock);
}

tagine_status tagine_trace_stop(tagine_trace *trace)
{
    if (!trace)
        return TAGINE_OK;
    const int64_t now = tg_clock_ns();
    pthread_mutex_lock(&trace->lock);
    for (thread_spans *spans = trace->threads; spans; spans = spans->next)
        while (spans->depth > 0)
            end_span(trace, spans, now);
    tg_status status = write_file(trace);
    if (status == TG_OK && trace->failed)
        status =
            tg_fail(TG_ERROR_MACHINE, "%s: not all of the trace found memory or disk", trace->path);
    pthread_mutex_unlock(&trace->lock);
    free_trace(trace);
    return public_status(status);
}
