/* step_trace.h - timelines of whole steps of one rank: phases, layers and operations of every thread, waits, what the
 * loader does beside them, and every exchange with other ranks.
 *
 *   open -> { (a step is recorded) -> add } ... write ... -> close
 *
 * Rows     "compute": the step (ProfilerStep#N) and in it phases and waits. "operations, thread T": what that thread
 *          recorded (kern/traced.h), in it the blocks that they belong to. "exchange", "exchange 2", ...: each collective
 *          from its first message to the moment it was done, on as many rows as are under way at once; "queued_us" is
 *          how long its data had been final before. Parameters are in the step whose forward waits for them.
 *          "loader worker W": reading, decoding, transforming.
 * Names    those that HolisticTraceAnalysis looks for: operations and exchanges are "kernel"s on streams, exchanges
 *          begin with "ncclKernel:" (that library is in no way part of it), steps are ProfilerStep#N, and have the
 *          "correlation" of what is done in them.
 * Spans    are read from the rings of the traces (trace/trace.h): of a step that was long ago some are gone.
 * Clock    rank 0's monotonic one. Ranks of its machine have the same; others estimate theirs from meetings, each of
 *          which nobody leaves before all have come, to half the interval that these leave.
 * File     FOLDER/rank-N.json.gz (trace/timeline.h).
 * Errors   TG_ERROR_MACHINE for memory and files; TG_ERROR_PEER from open, which all ranks call together.
 * Threads  the one that trains.
 */
#ifndef TG_TRAIN_STEP_TRACE_H
#define TG_TRAIN_STEP_TRACE_H

#include "train/overlap.h"
#include "train/step.h"

typedef struct tg_step_trace tg_step_trace;

typedef struct tg_step_trace_options {
    tg_comm *comm;                    /* all ranks, or tg_comm_self() */
    const tg_trace *compute, *loader; /* loader: NULL or of its workers; borrowed until close */
    int threads;                      /* of `compute` that compute */
    size_t budget_bytes;              /* of the file */
} tg_step_trace_options;

/* A step that has been recorded. */
typedef struct tg_step_window {
    int64_t step, begin_ns, end_ns;
    const tg_comm_record *records; /* of its exchanges */
    size_t record_count;
} tg_step_window;

tg_status tg_step_trace_open(const tg_step_trace_options *options,
                             tg_step_trace **out) TG_MUST_CHECK;
/* NULL is allowed. */
void tg_step_trace_close(tg_step_trace *trace);
/* Each step once, in their order. */
void tg_step_trace_add(tg_step_trace *trace, const tg_step_window *window);
/* Of the file so far. */
size_t tg_step_trace_bytes(const tg_step_trace *trace);
/* Makes the folder where it is missing, and in it this rank's file, of the steps so far. */
tg_status tg_step_trace_write(tg_step_trace *trace, const char *folder) TG_MUST_CHECK;

/* What this thread's clock lacks to the common one, and at most how much that is wrong; every rank calls it. */
tg_status tg_step_trace_align(tg_comm *comm, int64_t *out_offset_ns,
                              int64_t *out_error_ns) TG_MUST_CHECK;

#endif
