/* finding.h - what a rule found: evidence, cause, the setting to change, and what that should bring.
 *
 * findings.json of a run holds them (docs/FORMATS.md), text and report show them, and the next run is measured against
 * the prediction.
 * Memory  a finding is plain data; the list owns its array (heap). Errors TG_ERROR_MACHINE for memory and disk,
 * TG_ERROR_INPUT for a file that is none. Threads reentrant.
 */
#ifndef TG_DIAGNOSE_FINDING_H
#define TG_DIAGNOSE_FINDING_H

#include "base/status.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tg_severity { TG_SEVERITY_NOTE, TG_SEVERITY_WARNING, TG_SEVERITY_SERIOUS } tg_severity;

enum { TG_FINDING_EVIDENCE = 8, TG_FINDING_WORDS = 400, TG_FINDING_VALUE = 64 };

/* "involuntary switches of compute threads", 5300, "1/s". */
typedef struct tg_evidence {
    char name[96], unit[16];
    double value;
} tg_evidence;

typedef struct tg_finding {
    const char *rule; /* "LoaderOversubscription": of the rule table */
    tg_severity severity;
    char title[TG_FINDING_WORDS];  /* one sentence with the numbers that matter */
    char cause[TG_FINDING_WORDS];  /* why, in words */
    char advice[TG_FINDING_WORDS]; /* what to do, in words, where no option says it or besides it */
    tg_evidence evidence[TG_FINDING_EVIDENCE];
    size_t evidence_count;
    double begin, end; /* wall time that the evidence is of (tg_clock_unix); NaN: all of the run */
    int64_t first_step, last_step; /* 0: not of steps */
    int rank;                      /* -1: of no one rank */
    char host[256];                /* "": of no one machine */
    char option[32];               /* "workers"; "": none */
    char old_value[TG_FINDING_VALUE], new_value[TG_FINDING_VALUE];
    double step_s, predicted_step_s; /* now, and with the new value alone; NaN: cannot be said */
    double confidence;               /* 0 to 1 that the prediction holds to a quarter of the gain */
} tg_finding;

typedef struct tg_findings {
    tg_finding *each;
    size_t count, capacity;
} tg_findings;

/* A finding with nothing in it but the rule's name, rank -1, times NaN; NULL when memory is short (recorded). */
tg_finding *tg_findings_add(tg_findings *findings, const char *rule, tg_severity severity);
void tg_findings_done(tg_findings *findings);

/* Dropped beyond TG_FINDING_EVIDENCE. */
void tg_finding_add_evidence(tg_finding *finding, const char *name, double value, const char *unit);

const char *tg_severity_name(tg_severity severity);

#endif
