/* trace.h - where the time goes: spans added up per key and thread while they are recorded, the last ones kept in a ring.
 *
 * A key is a name ("linear_forward"), the phase of the step it belongs to, the type and the shape of its work. Spans of
 * threads that work side by side count their share of the time, so that sums over threads are time that passed. A
 * thread that is attached to a trace records; one that is not records nothing and pays one thread-local load per begin
 * and per end.
 *
 *   int64_t begin = tg_trace_begin();
 *   ... work ...
 *   tg_trace_end(&(tg_trace_key){.name = "linear_forward", .shape = {R, in, out}}, begin, flops, bytes);
 *
 * Spans may nest; each counts its whole time. One that is there to hold others, a phase of a step, is a `group`: it
 * goes to the ring alone, so that totals are of what was done and add up to no more than the time that passed.
 *
 * Phase   that of a trace is set by the thread which leads the others, while they do nothing; all of them record it.
 * Layer   that of a thread is set by itself; spans in the ring have it, totals do not.
 * Cost    two readings of the clock, a look into a table and 16 bytes a span (tg_trace_span_cost_ns measures it).
 * Memory  tg_trace_new allocates everything (heap); recording allocates nothing. A thread keeps
 *         TG_TRACE_KEYS keys; all later ones are counted together under TG_TRACE_MORE.
 * Errors  TG_ERROR_MACHINE when memory is short.
 * Threads each attached thread writes its own slot without locks. Totals and spans may be read by any thread at any
 *         time: those of a thread that records meanwhile are of a moment ago. Reset only while all are quiet.
 */
#ifndef TG_TRACE_TRACE_H
#define TG_TRACE_TRACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_TRACE_KEYS = 256, TG_TRACE_DIMENSIONS = 4, TG_TRACE_NO_LAYER = -1 };
#define TG_TRACE_MORE "(more)"

typedef struct tg_trace tg_trace;

typedef struct tg_trace_key {
    /* borrowed for the trace's life; compared by their letters */
    const char *name;
    const char *phase;                 /* NULL: the trace's */
    const char *dtype;                 /* NULL: means nothing here */
    size_t shape[TG_TRACE_DIMENSIONS]; /* unused ones 0 */
    int threads; /* that run such spans side by side, each counting its share of the time; 0 as 1 */
    bool group;  /* made of other spans: in the ring, not in the totals */
} tg_trace_key;

typedef struct tg_trace_totals {
    tg_trace_key key;
    uint64_t calls;
    int64_t ns;
    double flops, bytes; /* as given to tg_trace_end */
} tg_trace_totals;

typedef struct tg_trace_span {
    tg_trace_key key;
    int64_t begin_ns, end_ns; /* tg_clock_ns; no longer than 2^40 ns, 18 minutes */
    int layer;                /* TG_TRACE_NO_LAYER: none */
} tg_trace_span;

/* Room for `threads` threads, each keeping its last `ring_spans` spans (0: totals only). */
tg_status tg_trace_new(int threads, size_t ring_spans, tg_trace **out) TG_MUST_CHECK;
/* Threads must be detached first. */
void tg_trace_free(tg_trace *trace);

/* This thread records as thread number `thread` from now on; NULL detaches it. */
void tg_trace_attach(tg_trace *trace, int thread);

/* What this thread records to, or NULL; a thread that starts others attaches them to it. */
tg_trace *tg_trace_attached(void);
/* Threads that the trace has room for. */
int tg_trace_threads(const tg_trace *trace);

/* The phase of keys that name none, from now on: borrowed for the trace's life; NULL: none. trace NULL: nothing. */
void tg_trace_set_phase(tg_trace *trace, const char *phase);
/* The layer of this thread's spans from now on. */
void tg_trace_set_layer(int layer);

/* Now, or 0 when this thread is not attached. */
int64_t tg_trace_begin(void);
/* Adds a span that began at `begin_ns`; nothing when that is 0. */
void tg_trace_end(const tg_trace_key *key, int64_t begin_ns, double flops, double bytes);
/* Counts work that was timed elsewhere in the totals of `thread`, which no thread is attached as. */
void tg_trace_count(tg_trace *trace, int thread, const tg_trace_key *key, int64_t ns, double flops,
                    double bytes);

/* Sums over threads, one entry a key, in the order of first appearance (threads in order of their
 * numbers). Writes at most TG_TRACE_KEYS entries and returns how many; keys beyond that are counted
 * under TG_TRACE_MORE. */
size_t tg_trace_collect(const tg_trace *trace, tg_trace_totals out[TG_TRACE_KEYS]);

/* Spans that a thread has recorded since the last reset. They are numbered from 0 in the order in which they ended. */
uint64_t tg_trace_recorded(const tg_trace *trace, int thread);
/* One of them; false when the ring no longer has it. */
bool tg_trace_get_span(const tg_trace *trace, int thread, uint64_t number, tg_trace_span *out);
/* Copies the last spans of one thread, oldest first, at most `capacity`; returns how many. */
size_t tg_trace_spans(const tg_trace *trace, int thread, tg_trace_span *out, size_t capacity);
/* Forgets keys, totals and spans. */
void tg_trace_reset(tg_trace *trace);

/* What recording a span takes on this machine: of a few thousand, with nothing else in the way. 0: no memory. */
double tg_trace_span_cost_ns(void);

#endif
