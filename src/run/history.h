/* history.h - a run directory as its readers see it: everything that a job has left behind so far, in memory.
 *
 * For a run that lives, has ended, was killed, or was copied from another machine. What is not there is empty, never an
 * error; only a path that is no run directory is one. Long runs are thinned to bounds: samples of machines are merged
 * (run/system.h); steps are all kept.
 *
 * Errors  TG_ERROR_INPUT: PATH is no run directory; TG_ERROR_MACHINE for memory.
 * Memory  heap, owned by the struct. Threads reentrant; a history may be read by many.
 */
#ifndef TG_RUN_HISTORY_H
#define TG_RUN_HISTORY_H

#include "base/json.h"
#include "base/yaml.h"
#include "run/metrics.h"
#include "run/operations.h"
#include "run/rank_steps.h"
#include "run/spans.h"
#include "run/system.h"
#include "run/tune.h"

#include <stdbool.h>

/* What a reader may ask for; a rule names what it needs. */
typedef enum tg_history_input {
    TG_INPUT_INFO = 1 << 0,       /* run.json */
    TG_INPUT_OPTIONS = 1 << 1,    /* job.yaml */
    TG_INPUT_STEPS = 1 << 2,      /* metrics.jsonl, steps */
    TG_INPUT_EVALS = 1 << 3,      /* metrics.jsonl, evaluations */
    TG_INPUT_RANKS = 1 << 4,      /* ranks.jsonl: several ranks */
    TG_INPUT_SPANS = 1 << 5,      /* spans.jsonl */
    TG_INPUT_SYSTEM = 1 << 6,     /* system/: samples of at least one machine */
    TG_INPUT_DEVICES = 1 << 7,    /* samples of accelerators */
    TG_INPUT_OPERATIONS = 1 << 8, /* trace/operations-rank-N.json */
    TG_INPUT_TUNE = 1 << 9,       /* tune.json */
    TG_INPUT_COUNT = 10
} tg_history_input;

typedef struct tg_history_rank_row {
    int64_t step;
    tg_rank_step *each; /* [ranks] */
    size_t ranks;
} tg_history_rank_row;

typedef struct tg_history {
    char *path;
    unsigned inputs; /* tg_history_input that are there */
    tg_json info;    /* run.json; ask with tg_history_info_* */
    tg_yaml options; /* job.yaml; ask with tg_history_option */
    tg_step_record *steps;
    size_t step_count;
    tg_eval_record *evals;
    size_t eval_count;
    tg_history_rank_row *rank_rows;
    size_t rank_row_count;
    tg_span *spans;
    size_t span_count;
    tg_system_host *hosts; /* by name */
    size_t host_count;
    tg_operations *operations; /* by rank */
    size_t operation_ranks;
    tg_tune_file tune;
    int ranks;        /* of the last attempt */
    size_t bad_lines; /* that were no record, of all files */
} tg_history;

enum { TG_HISTORY_SAMPLES = 16384 }; /* kept of a machine at most */

tg_status tg_history_open(const char *path, tg_history *out) TG_MUST_CHECK;
void tg_history_close(tg_history *history);

/* "samples of the machine (system/)": for messages. */
const char *tg_history_input_name(tg_history_input input);

/* An option of the run as text ("batch-size" -> "64"); NULL when it is not there or null. */
const char *tg_history_option(const tg_history *history, const char *name);
/* As a number; NaN when it is not there, or none. */
double tg_history_option_number(const tg_history *history, const char *name);

/* The node of run.json at a path of keys; false when there is none. */
bool tg_history_info_find(const tg_history *history, const char *path, tg_json_node *out);
/* A value of run.json by a path of keys ("machine.cpus", "memory.moments_bytes.predicted"): NaN, NULL when absent. */
double tg_history_info_number(const tg_history *history, const char *path);
const char *tg_history_info_text(const tg_history *history, const char *path);

/* Whether it has ended (run.json has an end). */
bool tg_history_ended(const tg_history *history);
/* Wall time of its first moment and its last known one, as tg_clock_unix says it; NaN: not known. */
double tg_history_begin(const tg_history *history);
double tg_history_end(const tg_history *history);

#endif
