/* rule.h - a rule reads the history of a run and says what it finds.
 *
 * A rule is a constant in the file of its theme (loader.c, machine.c, ranks.c, ...), listed in rules.c. It is called only where all
 * that it needs is there; else the outcome says what it lacked. Rules change nothing, and know nothing of one another;
 * what two of them would say twice is sorted out in diagnose.c.
 */
#ifndef TG_DIAGNOSE_RULE_H
#define TG_DIAGNOSE_RULE_H

#include "diagnose/finding.h"
#include "run/history.h"

typedef struct tg_rule {
    const char *name; /* "CPUBottleneck" */
    const char *asks; /* what it looks for, in a sentence */
    unsigned needs;   /* tg_history_input, or-ed */
    /* TG_OK, with or without a finding; TG_END with *lack set: it needs something finer that is not there */
    tg_status (*check)(const tg_history *history, tg_findings *out, const char **lack);
} tg_rule;

/* Every rule; *out_count of them. */
const tg_rule *const *tg_rules(size_t *out_count);

typedef enum tg_rule_outcome { TG_RULE_QUIET, TG_RULE_FIRED, TG_RULE_LACKS } tg_rule_outcome;

typedef struct tg_rule_result {
    const tg_rule *rule;
    tg_rule_outcome outcome;
    char lacks[160]; /* what was not there */
} tg_rule_result;

typedef struct tg_diagnosis {
    tg_findings findings;    /* worst first */
    tg_rule_result *results; /* of every rule */
    size_t result_count;
} tg_diagnosis;

tg_status tg_diagnose(const tg_history *history, tg_diagnosis *out) TG_MUST_CHECK;
void tg_diagnosis_done(tg_diagnosis *diagnosis);

/* findings.json of the run: written aside and renamed. */
tg_status tg_diagnosis_write(const tg_diagnosis *diagnosis, const tg_history *history,
                             const char *path) TG_MUST_CHECK;
/* The same as JSON, and as text for people. */
void tg_diagnosis_print_json(const tg_diagnosis *diagnosis, const tg_history *history,
                             tg_text *out);
void tg_diagnosis_print_text(const tg_diagnosis *diagnosis, const tg_history *history,
                             tg_text *out);

#endif
