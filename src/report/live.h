/* live.h - a run as it goes: what somebody knows who looks at its files now and then.
 *
 * Reads only what has come since the last look (run/tail.h), and keeps it in bounded room whatever the length of the run:
 * the last steps, curves of the whole run, the newest sample of each machine. Serves tagine watch, and the files for
 * dashboards that a running job writes. A run may live, have ended, or have been killed; what is not there is unknown.
 *
 * States   open -> look ... -> close.
 * Errors   open: TG_ERROR_INPUT for what is no run directory. look: TG_ERROR_MACHINE for memory and the disk.
 * Memory   heap, owned by the struct. Threads: one at a time.
 */
#ifndef TG_REPORT_LIVE_H
#define TG_REPORT_LIVE_H

#include "base/json.h"
#include "report/series.h"
#include "run/metrics.h"
#include "run/rank_steps.h"
#include "run/spans.h"
#include "run/system.h"
#include "run/system_line.h"
#include "run/tail.h"

#include <stdbool.h>
#include <sys/stat.h>

enum {
    TG_LIVE_STEPS = 512,
    TG_LIVE_SPANS = 64,
    TG_LIVE_WARNINGS = 4,
    TG_LIVE_FINDINGS = 8,
    TG_LIVE_TEXT = 400
};
/* Of a longer file of steps the end is read. */
#define TG_LIVE_METRICS_BYTES (UINT64_C(64) << 20)

typedef enum tg_live_phase {
    TG_LIVE_DATA,
    TG_LIVE_TEACHER,
    TG_LIVE_FORWARD,
    TG_LIVE_BACKWARD,
    TG_LIVE_REDUCE,
    TG_LIVE_OPTIMIZER,
    TG_LIVE_OTHER,
    TG_LIVE_PHASES
} tg_live_phase;

const char *tg_live_phase_name(tg_live_phase phase);
/* Seconds of each phase of a step. */
void tg_live_step_phases(const tg_step_record *step, double out[TG_LIVE_PHASES]);

typedef enum tg_live_state {
    TG_LIVE_RUNS,
    TG_LIVE_ENDED, /* run.json says how */
    TG_LIVE_SILENT /* neither: it was killed, or its machine is gone */
} tg_live_state;

/* What is called as lines come in, in the order of each file; any may be NULL. */
typedef struct tg_live_visit {
    void *user;
    void (*step)(void *user, const tg_step_record *step);
    void (*eval)(void *user, const tg_eval_record *eval);
} tg_live_visit;

typedef struct tg_live_host {
    tg_tail tail;
    tg_system_head head;
    tg_system_sample sample; /* mean of the last second or two; seconds 0: none yet */
} tg_live_host;

/* A JSON document of the run that is replaced as a whole. */
typedef struct tg_live_document {
    const char *name;
    struct stat seen;
    tg_json json; /* root NULL: none */
} tg_live_document;

typedef struct tg_live_finding {
    char rule[64], severity[16], title[TG_LIVE_TEXT];
} tg_live_finding;

/* Means over the last steps of one rank. */
typedef struct tg_live_rank {
    double phases[TG_LIVE_PHASES], t_step;
} tg_live_rank;

typedef struct tg_live {
    char *path;
    tg_live_visit visit;
    tg_tail metrics, ranks_file, spans_file, log;

    tg_step_record steps[TG_LIVE_STEPS]; /* a ring: step i at i % TG_LIVE_STEPS */
    size_t step_count;                   /* that have come */
    tg_series loss, rate, top1;
    tg_eval_record eval, best;
    size_t eval_count;

    tg_live_rank *ranks;
    size_t rank_count, rank_rows;

    tg_span spans[TG_LIVE_SPANS]; /* a ring */
    size_t span_count;
    int64_t attempt;
    double attempt_begin; /* NaN: not known */
    int64_t attempt_step; /* updates done then */

    tg_live_host *hosts; /* in the order of their names */
    size_t host_count;

    char warnings[TG_LIVE_WARNINGS][TG_LIVE_TEXT]; /* a ring: "TIME LEVEL TEXT" */
    size_t warning_count;

    tg_live_document info, findings_file;
    tg_live_finding findings[TG_LIVE_FINDINGS]; /* worst first */
    size_t finding_count;                       /* of the file */

    double now;      /* wall time of the last look */
    double heard_at; /* of the last look that found something new */
} tg_live;

tg_status tg_live_open(const char *path, const tg_live_visit *visit, tg_live *out) TG_MUST_CHECK;
void tg_live_close(tg_live *live);

/* now: wall time in seconds. *out_news (may be NULL): something has come. */
tg_status tg_live_look(tg_live *live, double now, bool *out_news) TG_MUST_CHECK;

tg_live_state tg_live_get_state(const tg_live *live);

/* The last step; NULL: none yet. */
const tg_step_record *tg_live_last_step(const tg_live *live);
/* The i-th last one (0: the last); NULL beyond what is kept. */
const tg_step_record *tg_live_step_back(const tg_live *live, size_t i);

/* A value of run.json by a path of keys ("machine.host"): NaN or NULL when it is not there. */
double tg_live_info_number(const tg_live *live, const char *path);
const char *tg_live_info_text(const tg_live *live, const char *path);

/* Steps planned for the whole run, and seconds until then at the pace so far; NaN: not known. */
double tg_live_steps_planned(const tg_live *live);
double tg_live_seconds_left(const tg_live *live);

/* What the last `seconds` went to, as shares of them: the phases of steps, evaluation, checkpoint, start and else. Of fewer
 * seconds where the run is younger. */
typedef struct tg_live_ledger {
    double seconds;
    double phases[TG_LIVE_PHASES], evaluation, checkpoint, start, rest;
    double images_per_s; /* over all of these seconds */
    double step_s;       /* mean; NaN: no step ended in them */
    size_t steps;
} tg_live_ledger;

void tg_live_get_ledger(const tg_live *live, double seconds, tg_live_ledger *out);

/* The rank that the others wait for, its phase, and by what part of a step its own work exceeds the median of the others'.
 * -1: of one rank, or none stands out by 5 %. */
int tg_live_slowest(const tg_live *live, tg_live_phase *out_phase, double *out_share);

#endif
