#include "trace/trace.h"

#include "base/checked.h"
#include "os/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A span in the ring: when it began, and in one word how long it took, its key and its layer. */
enum { DURATION_BITS = 40, KEY_BITS = 12, LAYER_BITS = 12, PLACES = 4 * TG_TRACE_KEYS };
_Static_assert(DURATION_BITS + KEY_BITS + LAYER_BITS == 64, "one word");
_Static_assert(TG_TRACE_KEYS <= 1 << KEY_BITS, "keys have numbers");

typedef struct span {
    _Atomic int64_t begin_ns;
    _Atomic uint64_t rest;
} span;

/* Written by one thread, read by any: plain loads and stores on every machine we know. */
typedef struct entry {
    tg_trace_key key; /* fixed before key_count says that it is there */
    _Atomic uint64_t calls;
    _Atomic int64_t ns;
    _Atomic double flops, bytes;
} entry;

typedef struct slot {
    entry entries[TG_TRACE_KEYS];
    uint16_t place[PLACES]; /* of the key's number + 1, from where its hash says; 0: free */
    _Atomic size_t key_count;
    int layer;
    span *ring;
    size_t ring_size;          /* and one more, which may be half written */
    _Atomic uint64_t recorded; /* spans since reset; the ring holds the last ring_size */
} slot;

struct tg_trace {
    int threads;
    const char *phase;
    slot *slots;
};

static _Thread_local slot *current;
static _Thread_local tg_trace *attached;

tg_status tg_trace_new(int threads, size_t ring_spans, tg_trace **out)
{
    size_t ring_bytes;
    tg_trace *trace = calloc(1, sizeof *trace);
    if (!trace || !tg_mul_size(ring_spans + 1, sizeof(span), &ring_bytes))
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
    if (current)
        current->layer = TG_TRACE_NO_LAYER;
}

void tg_trace_set_phase(tg_trace *trace, const char *phase)
{
    if (trace)
        trace->phase = phase;
}

void tg_trace_set_layer(int layer)
{
    if (current)
        current->layer = layer;
}

int64_t tg_trace_begin(void)
{
    return current ? tg_clock_ns() : 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Shapes first: they differ more often than names do, and are cheaper to compare. */
static bool same_key(const tg_trace_key *a, const tg_trace_key *b)
{
    return memcmp(a->shape, b->shape, sizeof a->shape) == 0 && same_text(a->name, b->name) &&
           same_text(a->phase, b->phase) && same_text(a->dtype, b->dtype);
}

/* Of addresses: equal names at several make several entries, which are put together when they are collected. */
static size_t hash_of(const tg_trace_key *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key->name * 0x9E3779B97F4A7C15U;
    h ^= (uint64_t)(uintptr_t)key->phase * 0xC2B2AE3D27D4EB4FU;
    h ^= (uint64_t)(uintptr_t)key->dtype * 0x165667B19E3779F9U;
    for (int d = 0; d < TG_TRACE_DIMENSIONS; d++)
        h = (h ^ key->shape[d]) * 0xFF51AFD7ED558CCDU;
    return (size_t)(h >> 40);
}

static bool is_entry(const entry *e, const tg_trace_key *key)
{
    return e->key.name == key->name && e->key.phase == key->phase && e->key.dtype == key->dtype &&
           memcmp(e->key.shape, key->shape, sizeof key->shape) == 0;
}

/* The number of the entry of `key`, added when it is new; the last one is kept for all that find none. */
static size_t number_of(slot *s, const tg_trace_key *key)
{
    size_t place = hash_of(key) % PLACES;
    for (; s->place[place]; place = (place + 1) % PLACES)
        if (is_entry(&s->entries[s->place[place] - 1], key))
            return s->place[place] - 1U;
    const size_t count = atomic_load_explicit(&s->key_count, memory_order_relaxed);
    if (count == TG_TRACE_KEYS)
        return TG_TRACE_KEYS - 1;
    entry *added = &s->entries[count];
    added->key = count + 1 == TG_TRACE_KEYS ? (tg_trace_key){.name = TG_TRACE_MORE} : *key;
    if (count + 1 < TG_TRACE_KEYS)
        s->place[place] = (uint16_t)(count + 1);
    atomic_store_explicit(&s->key_count, count + 1, memory_order_release);
    return count;
}

static void add_double(_Atomic double *sum, double value)
{
    atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

static void count(entry *e, int64_t ns, double flops, double bytes)
{
    atomic_store_explicit(&e->calls, atomic_load_explicit(&e->calls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&e->ns, atomic_load_explicit(&e->ns, memory_order_relaxed) + ns,
                          memory_order_relaxed);
    add_double(&e->flops, flops);
    add_double(&e->bytes, bytes);
}

/* What a reader sees of a place that is overwritten meanwhile, it also sees in `recorded`: hence release. */
static void keep(slot *s, size_t number, int64_t begin_ns, int64_t end_ns)
{
    const uint64_t most = (UINT64_C(1) << DURATION_BITS) - 1;
    const uint64_t recorded = atomic_load_explicit(&s->recorded, memory_order_relaxed);
    uint64_t took = (uint64_t)(end_ns - begin_ns);
    took = took < most ? took : most;
    if (s->ring_size) {
        span *to = &s->ring[recorded % (s->ring_size + 1)];
        const uint64_t layer = (uint64_t)(s->layer + 1) & ((1U << LAYER_BITS) - 1);
        atomic_store_explicit(&to->begin_ns, begin_ns, memory_order_release);
        atomic_store_explicit(&to->rest,
                              took | number << DURATION_BITS | layer << (DURATION_BITS + KEY_BITS),
                              memory_order_release);
    }
    atomic_store_explicit(&s->recorded, recorded + 1, memory_order_release);
}

void tg_trace_end(const tg_trace_key *key, int64_t begin_ns, double flops, double bytes)
{
    slot *s = current;
    if (!s || !begin_ns)
        return;
    tg_trace_key whole = *key;
    if (!whole.phase)
        whole.phase = attached->phase;
    const int64_t end_ns = tg_clock_ns();
    const size_t number = number_of(s, &whole);
    if (!key->group)
        count(&s->entries[number], (end_ns - begin_ns) / (key->threads > 1 ? key->threads : 1),
              flops, bytes);
    keep(s, number, begin_ns, end_ns);
}

void tg_trace_count(tg_trace *trace, int thread, const tg_trace_key *key, int64_t ns, double flops,
                    double bytes)
{
    slot *s = &trace->slots[thread];
    count(&s->entries[number_of(s, key)], ns, flops, bytes);
}

/* The sum of a key among those so far. */
static tg_trace_totals *total_of(tg_trace_totals *totals, size_t *count, const tg_trace_key *key)
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

size_t tg_trace_collect(const tg_trace *trace, tg_trace_totals out[TG_TRACE_KEYS])
{
    size_t count = 0;
    for (int t = 0; t < trace->threads; t++) {
        const slot *s = &trace->slots[t];
        const size_t keys = atomic_load_explicit(&s->key_count, memory_order_acquire);
        for (size_t i = 0; i < keys; i++) {
            const entry *e = &s->entries[i];
            if (e->key.group)
                continue;
            tg_trace_totals *sum = total_of(out, &count, &e->key);
            sum->calls += atomic_load_explicit(&e->calls, memory_order_relaxed);
            sum->ns += atomic_load_explicit(&e->ns, memory_order_relaxed);
            sum->flops += atomic_load_explicit(&e->flops, memory_order_relaxed);
            sum->bytes += atomic_load_explicit(&e->bytes, memory_order_relaxed);
        }
    }
    return count;
}

uint64_t tg_trace_recorded(const tg_trace *trace, int thread)
{
    return atomic_load_explicit(&trace->slots[thread].recorded, memory_order_acquire);
}

bool tg_trace_get_span(const tg_trace *trace, int thread, uint64_t number, tg_trace_span *out)
{
    const slot *s = &trace->slots[thread];
    if (!s->ring_size || number >= tg_trace_recorded(trace, thread))
        return false;
    const span *from = &s->ring[number % (s->ring_size + 1)];
    const int64_t begin_ns = atomic_load_explicit(&from->begin_ns, memory_order_acquire);
    const uint64_t rest = atomic_load_explicit(&from->rest, memory_order_acquire);
    if (number + s->ring_size < tg_trace_recorded(trace, thread))
        return false;
    const uint64_t took = rest & ((UINT64_C(1) << DURATION_BITS) - 1);
    *out = (tg_trace_span){.key = s->entries[rest >> DURATION_BITS & ((1U << KEY_BITS) - 1)].key,
                           .begin_ns = begin_ns,
                           .end_ns = begin_ns + (int64_t)took,
                           .layer = (int)(rest >> (DURATION_BITS + KEY_BITS)) - 1};
    return true;
}

size_t tg_trace_spans(const tg_trace *trace, int thread, tg_trace_span *out, size_t capacity)
{
    const uint64_t recorded = tg_trace_recorded(trace, thread);
    const uint64_t size = trace->slots[thread].ring_size;
    uint64_t kept = recorded < size ? recorded : size;
    size_t copied = 0;
    for (kept = kept < capacity ? kept : capacity; kept > 0; kept--)
        copied += tg_trace_get_span(trace, thread, recorded - kept, &out[copied]);
    return copied;
}

void tg_trace_reset(tg_trace *trace)
{
    for (int t = 0; t < trace->threads; t++) {
        slot *s = &trace->slots[t];
        memset(s->entries, 0, sizeof s->entries);
        memset(s->place, 0, sizeof s->place);
        atomic_store(&s->key_count, 0);
        atomic_store(&s->recorded, 0);
    }
}

double tg_trace_span_cost_ns(void)
{
    enum { ROUNDS = 500, EACH = 8 };
    slot *const before = current;
    tg_trace *const trace_before = attached;
    tg_trace *trace;
    if (tg_trace_new(1, ROUNDS, &trace) < 0)
        return 0;
    tg_trace_attach(trace, 0);
    const int64_t begin = tg_clock_ns();
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < EACH; k++)
            tg_trace_end(&(tg_trace_key){.name = "x", .shape = {k + 1, 1}}, tg_trace_begin(), 1, 1);
    const int64_t end = tg_clock_ns();
    current = before;
    attached = trace_before;
    tg_trace_free(trace);
    return (double)(end - begin) / (ROUNDS * EACH);
}
