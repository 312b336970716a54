/* finding.h - what a rule found: evidence, cause, the setting to change, and what that should bring.
 *
 * findings.json of a run holds them (docs/FORMATS.md), text and report show them, and the next run is measured against
 * the prediction.
 * Severity  of a finding with a prediction follows from its gain (tg_finding_predict); others say their own.
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
/* Shares of the step that can be gained: from here on a finding is a warning, or serious. */
#define TG_GAIN_WARNING 0.05
#define TG_GAIN_SERIOUS 0.20

/* "involuntary switches of compute threads", 5300, "1/s". */
typedef struct tg_evidence {
    char name[96],
        unit[16]; /* unit "%": value is in percent; "bytes", "s": shown in fitting multiples */
    double value;
} tg_evidence;

typedef struct tg_finding {
    const char *rule; /* "LoaderOversubscription": of the rule table */
    tg_severity severity;
    char title[TG_FINDING_WORDS];  /* one sentence with the numbers that matter, no full stop */
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
    double step_s,
        predicted_step_s; /* now, and with the new value alone, of as many photos; NaN: cannot be said */
    double confidence;        /* 0 to 1 that the prediction holds to a quarter of the gain */
    const char *explained_by; /* rule whose finding says it better (diagnose.h); NULL: none */
} tg_finding;

typedef struct tg_findings {
    tg_finding *each;
    size_t count, capacity;
} tg_findings;

/* A finding with nothing in it but the rule's name, rank -1, numbers NaN; NULL when memory is short (recorded). Valid
 * until the next one is added. */
tg_finding *tg_findings_add(tg_findings *findings, const char *rule, tg_severity severity);
void tg_findings_done(tg_findings *findings);

/* printf with the numbers of the C locale into title, cause, advice or a value; cut at a character where it is too
 * long. */
void tg_finding_say(char *out, size_t size, const char *format, ...) TG_PRINTF(3, 4);
#define TG_FINDING_SAY(field, ...) tg_finding_say(field, sizeof(field), __VA_ARGS__)

/* Dropped beyond TG_FINDING_EVIDENCE, and where the value is NaN: unknown is no evidence. */
void tg_finding_add_evidence(tg_finding *finding, const char *name, double value, const char *unit);
/* The option to change, as text; numbers that are whole are written without a point. */
void tg_finding_set_option(tg_finding *finding, const char *option, const char *old_value,
                           const char *new_value);
void tg_finding_set_number(tg_finding *finding, const char *option, double old_value,
                           double new_value);
/* Now and predicted, and the severity that follows from the gain. A prediction that is no gain is not kept. */
void tg_finding_predict(tg_finding *finding, double step_s, double predicted_step_s,
                        double confidence);
/* 1 - predicted_step_s / step_s; NaN where nothing is predicted. */
double tg_finding_gain(const tg_finding *finding);

const char *tg_severity_name(tg_severity severity);

#endif
