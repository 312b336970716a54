/* timeline.h - what happened when, as a file that Perfetto and chrome://tracing open.
 *
 * Format   Chrome's trace events (JSON, gzip): complete events ("ph":"X") on rows of one process, which is a rank;
 *          its number is the pid, rows are threads. Times are microseconds of a clock that all ranks of a job
 *          share: offset_ns is added to this rank's own.
 *          HolisticTraceAnalysis finds in it what it asks for: schemaVersion, deviceProperties, distributedInfo, and the
 *          arguments stream, correlation and External id of what is a "kernel" to it.
 * Rules    events of one row nest: two of them are apart, or one holds the other. The caller sees to it.
 * Memory   the file is kept compressed (heap), to be written again and again while it grows, whole each time; beyond
 *          budget_bytes, or TG_TIMELINE_MOST_BYTES before compression (more than that no viewer opens), events are counted
 *          and left out, and the file says how many, as its last event too.
 * Errors   TG_ERROR_MACHINE, from open and write; events that find no memory are told by write.
 * Threads  one at a time.
 */
#ifndef TG_TRACE_TIMELINE_H
#define TG_TRACE_TIMELINE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TG_TIMELINE_MOST_BYTES ((uint64_t)400 << 20)

typedef struct tg_timeline tg_timeline;

typedef struct tg_timeline_head {
    int rank, ranks;
    const char *host;
    const char *backend; /* what joins the ranks; NULL: nothing does */
    int threads;         /* that compute */
    int64_t offset_ns,
        offset_error_ns; /* of the common clock: what is added, and how far it may be off */
    size_t budget_bytes;
} tg_timeline_head;

typedef struct tg_timeline_argument {
    const char *name;
    double value;
    const char *text; /* not NULL: in place of the value */
} tg_timeline_argument;

typedef struct tg_timeline_event {
    const char *name, *category;
    int64_t begin_ns, end_ns; /* tg_clock_ns */
    const tg_timeline_argument *arguments;
    size_t argument_count;
} tg_timeline_event;

tg_status tg_timeline_open(const tg_timeline_head *head, tg_timeline **out) TG_MUST_CHECK;
/* NULL is allowed. */
void tg_timeline_free(tg_timeline *timeline);
/* Names a row; rows are shown in the order of their numbers. */
void tg_timeline_name_row(tg_timeline *timeline, int row, const char *name);
void tg_timeline_add(tg_timeline *timeline, int row, const tg_timeline_event *event);
/* Writes what there is so far, as a whole document; more may be added, and written, after. */
tg_status tg_timeline_write(tg_timeline *timeline, const char *path) TG_MUST_CHECK;
/* Of the compressed file so far. */
size_t tg_timeline_bytes(const tg_timeline *timeline);

#endif
