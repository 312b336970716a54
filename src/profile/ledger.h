/* ledger.h - where the wall time of a job went: rows of seconds that add up to all of it, over all attempts.
 *
 *   total = sum over attempts of (end - begin) + what lay between them
 *
 * Begin     when the kernel started the first rank's process (spans.jsonl, "attempt").
 * End       as the attempt wrote it; of one that was killed, or runs, the last moment that any record has.
 * Steps     the first rank's (metrics.jsonl). Its waiting in exchanges is split by ranks.jsonl: what the rank that waited
 *           least in that step waited too is the exchange itself, the rest is waiting for slower ranks.
 * Repeated  steps that a resume dropped, because a later attempt does them again, and what a killed attempt had begun:
 *           from its last record to the last sample of its machine.
 * Other     what no row names; within rounding never negative. `other_steps` of it is inside steps (records, progress,
 *           tracing), the rest between steps and spans.
 * Missing   records of older programs have no moments: then the rows are what is known, `missing` says what is not, and
 *           the total is what run.json says, or what is known if that is more.
 *
 * Errors none. Memory none. Threads reentrant.
 */
#ifndef TG_PROFILE_LEDGER_H
#define TG_PROFILE_LEDGER_H

#include "run/history.h"

typedef enum tg_ledger_row {
    TG_LEDGER_START,
    TG_LEDGER_DATA,
    TG_LEDGER_TEACHER,
    TG_LEDGER_FORWARD,
    TG_LEDGER_BACKWARD,
    TG_LEDGER_EXCHANGE, /* exposed: nothing was computed meanwhile */
    TG_LEDGER_SLOWER,   /* waiting for slower ranks */
    TG_LEDGER_OPTIMIZER,
    TG_LEDGER_EVALUATION,
    TG_LEDGER_CHECKPOINT,
    TG_LEDGER_TUNE,
    TG_LEDGER_RECORDS, /* writing records, where a step did not hide it among its own */
    TG_LEDGER_FINISH,
    TG_LEDGER_REPEATED,
    TG_LEDGER_IDLE,
    TG_LEDGER_OTHER,
    TG_LEDGER_ROWS
} tg_ledger_row;

typedef struct tg_ledger {
    double seconds[TG_LEDGER_ROWS]; /* add up to total_s */
    double total_s;
    double other_steps_s;
    double begin, end;       /* as tg_clock_unix says them; NaN: not known */
    size_t attempts, killed; /* killed: another attempt followed one without an end */
    bool ended;              /* the last attempt wrote its end: else it runs, or was killed */
    int64_t steps, dropped;  /* done and kept; done and dropped */
    unsigned missing; /* tg_history_input that would tell more: TG_INPUT_SPANS, _STEPS, _RANKS */
} tg_ledger;

void tg_ledger_make(const tg_history *history, tg_ledger *out);

/* "start_up", "data", ...: for programs. */
const char *tg_ledger_row_key(tg_ledger_row row);
/* "waiting for photos": for people. */
const char *tg_ledger_row_name(tg_ledger_row row);

#endif
