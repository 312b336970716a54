/* spans.h - spans.jsonl: what a job's wall time went to besides its steps, one JSON object a line.
 *
 *   {"attempt":1,"what":"attempt","time":1772000000.1,"seconds":null,"step":0}   a process (the first rank) began
 *   {"attempt":1,"what":"start","time":1772000000.1,"seconds":1.2,"step":0}      from there to its first step
 *   {"attempt":1,"what":"checkpoint","time":1772000060.0,"seconds":0.4,"step":112}
 *   {"attempt":1,"what":"end","time":1772000090.0,"seconds":0,"step":224}
 *
 * Kept whole: a resumed run appends, so that the ledger covers all attempts and what lay between. An attempt without
 * an end was killed, or runs. What a resumed run drops from metrics.jsonl it says here as one span, "dropped".
 * Spans of an attempt neither nest nor overlap, nor do they contain steps. Errors, memory, threads: run/lines.h.
 */
#ifndef TG_RUN_SPANS_H
#define TG_RUN_SPANS_H

#include "run/lines.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tg_span_kind {
    TG_SPAN_ATTEMPT,    /* the moment alone: seconds NaN */
    TG_SPAN_START,      /* opening, checking, reading the teacher and the checkpoint */
    TG_SPAN_EVALUATION, /* of student or teacher */
    TG_SPAN_CHECKPOINT, /* saving the state, and the best model */
    TG_SPAN_TUNE,       /* trying settings */
    TG_SPAN_RECORDS, /* writing records, operations, timelines, where that took long; short is in steps */
    TG_SPAN_FINISH, /* from the last step, evaluation or save to the end */
    TG_SPAN_DROPPED, /* seconds of steps that an earlier attempt did and a later one repeats; no moment */
    TG_SPAN_END, /* the moment alone: seconds 0 */
    TG_SPAN_KINDS
} tg_span_kind;

typedef struct tg_span {
    int64_t attempt; /* from 1 */
    tg_span_kind kind;
    double time, seconds; /* begin as tg_clock_unix says it; NaN: not known */
    int64_t step;         /* updates done then; of dropped ones: how many */
} tg_span;

typedef struct tg_spans {
    tg_lines lines;
    int64_t attempt; /* the one under way */
} tg_spans;

/* "attempt", "start", ... */
const char *tg_span_kind_name(tg_span_kind kind);

/* Starts an empty file with attempt 1, or continues one (resume; it may be absent) with the next attempt. */
tg_status tg_spans_open(const char *path, bool resume, tg_spans *out) TG_MUST_CHECK;
/* span->attempt is the writer's. A failed write leaves the writer usable; the line is lost. */
tg_status tg_spans_write(tg_spans *writer, const tg_span *span) TG_MUST_CHECK;
void tg_spans_close(tg_spans *writer);

typedef void (*tg_spans_visit)(void *user, const tg_span *span);
/* *out_bad (may be NULL): lines that were no span. */
tg_status tg_spans_read(const char *path, tg_spans_visit visit, void *user,
                        size_t *out_bad) TG_MUST_CHECK;
/* One line, as a reader that follows the file has it (run/tail.h); false: it is no span. */
bool tg_spans_take(const char *line, size_t length, tg_spans_visit visit, void *user);

#endif
