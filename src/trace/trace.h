/* trace.h - where the time goes: spans added up per name and thread, the last ones kept in a ring.
 *
 * A program registers names ("forward", "linear.forward", ...) and attaches its threads; a thread
 * that is not attached records nothing and pays one thread-local load per begin and per end.
 *
 *   int64_t begin = tg_trace_begin();
 *   ... work ...
 *   tg_trace_end(id, begin, flops, bytes);
 *
 * Spans may nest; each counts its whole time, so a parent's total includes its children's.
 *
 * Memory  tg_trace_new allocates everything (heap); recording allocates nothing.
 * Errors  TG_ERROR_MACHINE when memory is short. More than TG_TRACE_NAMES names is an assert.
 * Threads each attached thread writes its own slot without locks. Read totals and spans while
 *         attached threads are quiet (between steps).
 */
#ifndef TG_TRACE_TRACE_H
#define TG_TRACE_TRACE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TG_TRACE_NAMES 128

typedef struct tg_trace tg_trace;

typedef struct tg_trace_totals {
    const char *name; /* as registered */
    uint64_t calls;
    int64_t ns;
    double flops, bytes; /* as given to tg_trace_end */
} tg_trace_totals;

typedef struct tg_trace_span {
    int32_t id;
    int64_t begin_ns, end_ns; /* tg_clock_ns */
} tg_trace_span;

/* Room for `threads` threads, each keeping its last `ring_spans` spans (0: totals only). */
tg_status tg_trace_new(int threads, size_t ring_spans, tg_trace **out) TG_MUST_CHECK;
/* Threads must be detached first. */
void tg_trace_free(tg_trace *trace);

/* The id of a name, registered now if it is new. `name` is borrowed for the trace's life. */
int tg_trace_register(tg_trace *trace, const char *name);
int tg_trace_name_count(const tg_trace *trace);

/* This thread records as thread number `thread` from now on; NULL detaches it. */
void tg_trace_attach(tg_trace *trace, int thread);

/* Now, or 0 when this thread is not attached. */
int64_t tg_trace_begin(void);
/* Adds a span that began at `begin_ns`; nothing when that is 0. */
void tg_trace_end(int id, int64_t begin_ns, double flops, double bytes);

/* Sums over threads. */
tg_trace_totals tg_trace_total(const tg_trace *trace, int id);
/* Copies the last spans of one thread, oldest first, at most `capacity`; returns how many. */
size_t tg_trace_spans(const tg_trace *trace, int thread, tg_trace_span *out, size_t capacity);
/* Forgets totals and spans, keeps names. */
void tg_trace_reset(tg_trace *trace);

#endif
