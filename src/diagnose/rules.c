#include "diagnose/rules.h"

#include <strings.h>

static const tg_rule *const RULES[] = {
    /* clang-format off: one a line */
    /* loaders and cores */
    &tg_rule_cpu_bottleneck, &tg_rule_dataloader,
    /* over time */
    &tg_rule_max_initialization_time,
    /* clang-format on */
};

const tg_rule *const *tg_rules(size_t *out_count)
{
    *out_count = sizeof RULES / sizeof *RULES;
    return RULES;
}

const tg_rule *tg_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (strcasecmp(RULES[i]->name, name) == 0)
            return RULES[i];
    return NULL;
}
