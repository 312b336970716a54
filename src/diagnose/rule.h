/* rule.h - a rule reads the history of a run and says what it finds.
 *
 * A rule is a constant in the file of its theme (loader.c, machine.c, ranks.c, ...), listed in rules.c. It is called
 * only where all that it needs is there; else the outcome says what it lacked. Rules change nothing and call none of
 * one another: what two of them would say of the same thing is sorted out in diagnose.c, by what they declare here.
 *
 * Limits    numbers that a user may change ("CPUBottleneck.cpu_threshold"); check gets their values in the order of
 *           the rule's table. Names that the withdrawn tool had, with its units (percent, minutes).
 * Unknown   a value that is NaN counts neither way; a rule that has too little of it lacks its input (diagnose/use.h).
 */
#ifndef TG_DIAGNOSE_RULE_H
#define TG_DIAGNOSE_RULE_H

#include "diagnose/finding.h"
#include "run/history.h"

#include <stdbool.h>

typedef struct tg_rule_limit {
    const char *name; /* "cpu_threshold" */
    double initial, low, high;
    const char *help; /* with its unit; starts in lower case, no full stop */
} tg_rule_limit;

enum { TG_RULE_LIMITS = 8 }; /* of one rule at most */

typedef struct tg_rule {
    const char *name; /* "CPUBottleneck" */
    const char *asks; /* what it looks for, in a sentence without full stop */
    unsigned needs;   /* tg_history_input, or-ed */
    /* Rules whose findings are the measured cause of what this one sees: where one of them fires, this one's finding is
     * explained by it. Ended by NULL; NULL: none. */
    const char *const *yields_to;
    const tg_rule_limit *limits;
    size_t limit_count;
    /* TG_OK, with or without a finding; TG_END with *lack set: it needs something finer that is not there, and what
     * brings it ("times of several ranks"). limits: [limit_count]. */
    tg_status (*check)(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack);
} tg_rule;

/* Every rule, by theme; *out_count of them. */
const tg_rule *const *tg_rules(size_t *out_count);
/* By name, in any case; NULL: there is none. */
const tg_rule *tg_rule_find(const char *name);

#endif
