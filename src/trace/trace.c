#include "trace/trace.h"

#include "base/checked.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
    tg_trace_totals totals[TG_TRACE_KEYS];
    size_t key_count;
    tg_trace_span *ring;
    size_t ring_size;
    uint64_t recorded; /* spans since reset; the ring holds the last ring_size */
} slot;

struct tg_trace {
    int threads;
    slot *slots;
};

static _Thread_local slot *current;
static _Thread_local tg_trace *attached;

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

tg_trace *tg_trace_attached(void)
{
    return attached;
}

int tg_trace_threads(const tg_trace *trace)
{
    return trace->threads;
}

void tg_trace_attach(tg_trace *trace, int thread)
{
    assert(!trace || (thread >= 0 && thread < trace->threads));
    current = trace ? &trace->slots[thread] : NULL;
    attached = trace;
}

int64_t tg_trace_begin(void)
{
    return current ? tg_clock_ns() : 0;
}

/* Shapes first: they differ more often than names do, and are cheaper to compare. */
static int same_key(const tg_trace_key *a, const tg_trace_key *b)
{
    return memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           (a->name == b->name || strcmp(a->name, b->name) == 0);
}

/* The entry of `key` among `*count`, added when it is new; the last place is kept for all that find
 * none. */
static tg_trace_totals *entry_of(tg_trace_totals *totals, size_t *count, const tg_trace_key *key)
{
    for (size_t i = 0; i < *count; i++)
        if (same_key(&totals[i].key, key))
            return &totals[i];
    if (*count == TG_TRACE_KEYS)
        return &totals[TG_TRACE_KEYS - 1];
    tg_trace_totals *added = &totals[(*count)++];
    *added = (tg_trace_totals){.key = *key};
    if (*count == TG_TRACE_KEYS)
        added->key = (tg_trace_key){.name = TG_TRACE_MORE};
    return added;
}

void tg_trace_end(const tg_trace_key *key, int64_t begin_ns, double flops, double bytes)
{
    slot *s = current;
    if (!s || !begin_ns)
        return;
    int64_t end_ns = tg_clock_ns();
    if (!key->group) {
        tg_trace_totals *total = entry_of(s->totals, &s->key_count, key);
        total->calls++;
        total->ns += (end_ns - begin_ns) / (key->threads > 1 ? key->threads : 1);
        total->flops += flops;
        total->bytes += bytes;
    }
    if (s->ring_size)
        s->ring[s->recorded % s->ring_size] =
            (tg_trace_span){.key = *key, .begin_ns = begin_ns, .end_ns = end_ns};
    s->recorded++;
}

size_t tg_trace_collect(const tg_trace *trace, tg_trace_totals out[TG_TRACE_KEYS])
{
    size_t count = 0;
    for (int t = 0; t < trace->threads; t++) {
        const slot *s = &trace->slots[t];
        for (size_t i = 0; i < s->key_count; i++) {
            tg_trace_totals *sum = entry_of(out, &count, &s->totals[i].key);
            sum->calls += s->totals[i].calls;
            sum->ns += s->totals[i].ns;
            sum->flops += s->totals[i].flops;
            sum->bytes += s->totals[i].bytes;
        }
    }
    return count;
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
        trace->slots[t].key_count = 0;
        trace->slots[t].recorded = 0;
    }
}
