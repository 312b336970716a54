/* rules.h - every rule that there is, each in the file of its theme; rules.c puts them in order. */
#ifndef TG_DIAGNOSE_RULES_H
#define TG_DIAGNOSE_RULES_H

#include "diagnose/rule.h"

/* The withdrawn tool's, by its names. */
extern const tg_rule tg_rule_cpu_bottleneck;          /* old_loader.c */
extern const tg_rule tg_rule_dataloader;              /* old_loader.c */
extern const tg_rule tg_rule_max_initialization_time; /* old_steps.c */

#endif
