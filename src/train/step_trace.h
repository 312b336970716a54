/* step_trace.h - timelines of whole steps of one rank: its phases, its waits, and every exchange with other ranks.
 *
 *   open -> { begin -> (the step) -> end } ... -> write -> close
 *
 * Rows     "compute": the step and in it what the thread recorded to trace/trace.h (phases, waits; operations too where
 *          the table is kern/traced.h's). "exchange", "exchange 2", ...: each collective from its first message to the
 *          moment it was done, on as many rows as are under way at once; "queued_us" is how long its data had been
 *          final before. Parameters are in the step whose forward waits for them.
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

/* comm: all ranks, or tg_comm_self(). */
tg_status tg_step_trace_open(tg_comm *comm, tg_step_trace **out) TG_MUST_CHECK;
/* NULL is allowed. */
void tg_step_trace_close(tg_step_trace *trace);

/* From here to end this thread records. */
void tg_step_trace_begin(tg_step_trace *trace);
/* Keeps step number `step`, begun by begin. ranks: NULL without others; its records are those of the step. */
void tg_step_trace_end(tg_step_trace *trace, int64_t step, const tg_ranks *ranks);
/* Makes the folder where it is missing, and in it this rank's file. Once. */
tg_status tg_step_trace_write(tg_step_trace *trace, const char *folder) TG_MUST_CHECK;

/* What this thread's clock lacks to the common one, and at most how much that is wrong; every rank calls it. */
tg_status tg_step_trace_align(tg_comm *comm, int64_t *out_offset_ns,
                              int64_t *out_error_ns) TG_MUST_CHECK;

#endif
