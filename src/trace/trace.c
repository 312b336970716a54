#include "trace/trace.h"

#include "base/checked.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
    tg_trace_totals totals[TG_TRACE_NAMES];
    tg_trace_span *ring;
    size_t ring_size;
    uint64_t recorded; /* spans since reset; the ring holds the last ring_size */
} slot;

struct tg_trace {
    const char *names[TG_TRACE_NAMES];
    int name_count;
    int threads;
    slot *slots;
};

static _Thread_local slot *current;

tg_status tg_trace_new(int threads, size_t ring_spans, tg_trace **out)
{
    size_t ring_bytes;
    tg_trace *trace = calloc(1, sizeof *trace);
    if (!trace || !tg_mul_size(ring_spans, sizeof(tg_trace_span), &ring_bytes))
        goto no_memory;
    trace->slots = calloc((size_t)threads, sizeof *trace->slots);
    if (!trace->slots)
        goto no_memory;
    for (trace->threads = 0; trace->threads < threads; trace->threads++) {
        slot *s = &trace->slots[trace->threads];
        s->ring_size = ring_spans;
        s->ring = ring_spans ? malloc(ring_bytes) : NULL;
        if (ring_spans && !s->ring)
            goto no_memory;
    }
    *out = trace;
    return TG_OK;

no_memory:
    tg_trace_free(trace);
    return tg_fail(TG_ERROR_MACHINE, "trace: out of memory for %d threads of %zu spans", threads,
                   ring_spans);
}

void tg_trace_free(tg_trace *trace)
{
    if (!trace)
        return;
    for (int t = 0; t < trace->threads; t++)
        free(trace->slots[t].ring);
    free(trace->slots);
    free(trace);
}

int tg_trace_register(tg_trace *trace, const char *name)
{
    for (int id = 0; id < trace->name_count; id++)
        if (strcmp(trace->names[id], name) == 0)
            return id;
    assert(trace->name_count < TG_TRACE_NAMES);
    trace->names[trace->name_count] = name;
    return trace->name_count++;
}

int tg_trace_name_count(const tg_trace *trace)
{
    return trace->name_count;
}

void tg_trace_attach(tg_trace *trace, int thread)
{
    assert(!trace || (thread >= 0 && thread < trace->threads));
    current = trace ? &trace->slots[thread] : NULL;
}

int64_t tg_trace_begin(void)
{
    return current ? tg_clock_ns() : 0;
}

void tg_trace_end(int id, int64_t begin_ns, double flops, double bytes)
{
    slot *s = current;
    if (!s || !begin_ns)
        return;
    int64_t end_ns = tg_clock_ns();
    tg_trace_totals *total = &s->totals[id];
    total->calls++;
    total->ns += end_ns - begin_ns;
    total->flops += flops;
    total->bytes += bytes;
    if (s->ring_size)
        s->ring[s->recorded % s->ring_size] =
            (tg_trace_span){.id = id, .begin_ns = begin_ns, .end_ns = end_ns};
    s->recorded++;
}

tg_trace_totals tg_trace_total(const tg_trace *trace, int id)
{
    tg_trace_totals sum = {.name = trace->names[id]};
    for (int t = 0; t < trace->threads; t++) {
        const tg_trace_totals *part = &trace->slots[t].totals[id];
        sum.calls += part->calls;
        sum.ns += part->ns;
        sum.flops += part->flops;
        sum.bytes += part->bytes;
    }
    return sum;
}

size_t tg_trace_spans(const tg_trace *trace, int thread, tg_trace_span *out, size_t capacity)
{
    const slot *s = &trace->slots[thread];
    uint64_t kept = s->recorded < s->ring_size ? s->recorded : s->ring_size;
    size_t count = kept < capacity ? (size_t)kept : capacity;
    for (size_t i = 0; i < count; i++)
        out[i] = s->ring[(s->recorded - count + i) % s->ring_size];
    return count;
}

void tg_trace_reset(tg_trace *trace)
{
    for (int t = 0; t < trace->threads; t++) {
        memset(trace->slots[t].totals, 0, sizeof trace->slots[t].totals);
        trace->slots[t].recorded = 0;
    }
}
