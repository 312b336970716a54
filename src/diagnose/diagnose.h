/* diagnose.h - all rules over one run: findings, worst first, and what each rule came to.
 *
 * Order     severity, then the share of the step that the finding's setting is predicted to take away
 *           (tg_finding_gain), then the order of the rules. Explained ones are last.
 * Twice     A finding is explained by another one (finding.h: explained_by) and no longer counts, when
 *           1 its rule yields to the other's rule (rule.h: what was measured wins over what follows from it), or
 *           2 both advise on the same option of the same rank and host: the one with the higher confidence wins, then the
 *             one with the greater gain. So no two findings that count can contradict each other on a setting.
 *           It is still shown, with the name of the one that explains it.
 * Errors    TG_ERROR_MACHINE for memory and disk; TG_ERROR_USAGE for limits and rules that there are none of.
 * Memory    heap, owned by the struct. Threads reentrant.
 */
#ifndef TG_DIAGNOSE_DIAGNOSE_H
#define TG_DIAGNOSE_DIAGNOSE_H

#include "base/json_writer.h"
#include "diagnose/rule.h"

typedef enum tg_rule_outcome { TG_RULE_QUIET, TG_RULE_FIRED, TG_RULE_LACKS } tg_rule_outcome;

typedef struct tg_rule_result {
    const tg_rule *rule;
    tg_rule_outcome outcome;
    char lacks[160]; /* what was not there */
    double limits[TG_RULE_LIMITS];
} tg_rule_result;

typedef struct tg_diagnose_options {
    const char *rules;  /* "StepOutlier,Dataloader": these alone; NULL: all */
    const char *limits; /* "StepOutlier.stddev=4,..."; NULL: as they are */
} tg_diagnose_options;

typedef struct tg_diagnosis {
    tg_findings findings;    /* worst first; explained ones behind the others */
    tg_rule_result *results; /* of every rule that was asked, in the order of tg_rules */
    size_t result_count;
} tg_diagnosis;

/* options may be NULL. */
tg_status tg_diagnose(const tg_history *history, const tg_diagnose_options *options,
                      tg_diagnosis *out) TG_MUST_CHECK;
void tg_diagnosis_done(tg_diagnosis *diagnosis);
/* Whether these options are any, before a run is there to be looked at. */
tg_status tg_diagnose_check_options(const tg_diagnose_options *options) TG_MUST_CHECK;

/* findings.json of the run: written aside and renamed. */
tg_status tg_diagnosis_write(const tg_diagnosis *diagnosis, const tg_history *history,
                             const char *path) TG_MUST_CHECK;
/* The same document on one line, and as text for people, for a terminal of 80 columns. */
void tg_diagnosis_print_json(const tg_diagnosis *diagnosis, const tg_history *history,
                             tg_text *out);
void tg_diagnosis_print_text(const tg_diagnosis *diagnosis, const tg_history *history,
                             tg_text *out);
/* "OPTION: NEW  # RULE, now OLD, step A s -> B s" a line, worst first: what --config of train and distill reads. Findings
 * of one rank alone are left out, and of several on one option all but the first. */
void tg_diagnosis_print_settings(const tg_diagnosis *diagnosis, tg_text *out);
/* One finding as an object of that document. */
void tg_finding_put_json(tg_json_writer *writer, const char *key, const tg_finding *finding);
/* "--workers 14"; "" when it names no option. */
void tg_finding_print_option(const tg_finding *finding, tg_text *out);

#endif
