/* recorder.h - what a job spends its time on, operation by operation: recorded always, added up while it is recorded.
 *
 *   open -> (resume) -> { begin_step -> (the step) -> end_step -> count_step } ... -> write -> ... -> close
 *
 * Threads    of computing: number 0 is the one that trains, the others those of its stream; they record between
 *            begin_step and end_step what the table of kern/traced.h does. Of the loader: always, "read", "decode",
 *            "transform" of each photo. Messages: what each exchange took, from the records of comm/, so that exchanges
 *            side by side count once.
 * Phases     "data", "teacher", "forward", "backward", "optimizer" of the thread that trains; "wait": what it waited for
 *            other ranks; "exchange": what was under way between them, most of it beside computing; "loader".
 * File       run/operations.h. Of a run that goes on it holds all attempts: steps that were done twice took their time
 *            twice.
 * Memory     as open takes it, whatever the run's length: 0.6 MiB a computing thread, 0.15 a loader worker.
 * Errors     TG_ERROR_MACHINE; TG_ERROR_INPUT from resume for a file that is none.
 * Threads    the one that trains.
 */
#ifndef TG_TRAIN_RECORDER_H
#define TG_TRAIN_RECORDER_H

#include "kern/peak.h"
#include "run/operations.h"
#include "trace/trace.h"
#include "train/ranks.h"

typedef struct tg_recorder {
    tg_trace *compute; /* threads of the stream, and one place for exchanges */
    tg_trace *loader;  /* its workers; NULL: none */
    tg_operations earlier;
    tg_operations now; /* of this process, without the list */
    double span_cost_ns;
    int64_t own_ns;      /* of bookkeeping, besides spans */
    uint64_t spans;      /* of thread 0 */
    int64_t written_ns;  /* when; 0: not yet */
    int64_t interval_ns; /* until the file is written again */
} tg_recorder;

/* Zeroed, it records nothing, and close is all that may be called. */
tg_status tg_recorder_open(int threads, int workers, tg_recorder *out) TG_MUST_CHECK;
void tg_recorder_close(tg_recorder *recorder);
/* Goes on from what an earlier process has written; it need not be there. */
tg_status tg_recorder_resume(tg_recorder *recorder, const char *path) TG_MUST_CHECK;

/* This thread records from here to end_step. */
void tg_recorder_begin_step(tg_recorder *recorder);
void tg_recorder_end_step(tg_recorder *recorder);
/* Step number `step` took `seconds`. ranks: NULL without others; its records are those of the step. */
void tg_recorder_count_step(tg_recorder *recorder, int64_t step, double seconds,
                            const tg_ranks *ranks);

/* Whether a write is due: after 2, 4, 8, ... at most every 30 s, and so that writing takes no 0.2 % of the time. */
bool tg_recorder_is_due(const tg_recorder *recorder);
/* All so far. */
tg_status tg_recorder_write(tg_recorder *recorder, const char *path, int rank) TG_MUST_CHECK;
/* What recording has taken of the steps' time, as far as it knows: spans as they were timed at the start, and
 * bookkeeping. */
double tg_recorder_own_seconds(const tg_recorder *recorder);

#endif
