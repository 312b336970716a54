/* on_finding.h - --on-finding: what a job does when a rule finds something while it runs.
 *
 *   RULE=ACTION,...    RULE: a rule's name; "warning" or "serious": any finding as bad as that, or worse, that counts
 *   ACTION             warn           a line in the log (as every warning has without asking)
 *                      webhook:URL    the finding as JSON, by POST; webhook:@FILE: to the URL that FILE holds, which
 *                                     keeps a secret out of job.yaml
 *                      stop           save and leave, as a signal would
 *
 * A named rule acts also where another finding explains it: it was asked for by name.
 * Errors  TG_ERROR_USAGE. Memory none: texts are borrowed from the list.
 */
#ifndef TG_CLI_ON_FINDING_H
#define TG_CLI_ON_FINDING_H

#include "base/status.h"
#include "diagnose/finding.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_reaction_kind { TG_REACT_WARN, TG_REACT_WEBHOOK, TG_REACT_STOP } tg_reaction_kind;

enum { TG_REACTIONS = 32, TG_REACTION_TARGET = 2048 };

typedef struct tg_reaction {
    char rule[48]; /* as the rule table writes it; "warning", "serious" */
    tg_reaction_kind kind;
    char target[TG_REACTION_TARGET]; /* of a webhook: URL, or @FILE */
} tg_reaction;

typedef struct tg_reactions {
    tg_reaction each[TG_REACTIONS];
    size_t count;
} tg_reactions;

/* list NULL: none. */
tg_status tg_reactions_parse(const char *list, tg_reactions *out) TG_MUST_CHECK;

/* Whether it is asked for on this finding; explained: another one explains it. */
bool tg_reaction_is_for(const tg_reaction *reaction, const char *rule, tg_severity severity,
                        bool explained);

/* "stop", "webhook", ... */
const char *tg_reaction_name(tg_reaction_kind kind);

#endif
