#include "cli/on_finding.h"

#include "diagnose/rule.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const NAMES[] = {"warn", "webhook", "stop"};

const char *tg_reaction_name(tg_reaction_kind kind)
{
    return NAMES[kind];
}

static tg_status parse_rule(const char *name, tg_reaction *out)
{
    const tg_rule *rule = tg_rule_find(name);
    const bool warning = strcasecmp(name, "warning") == 0;
    if (!rule && !warning && strcasecmp(name, "serious") != 0)
        return tg_fail(TG_ERROR_USAGE,
                       "--on-finding %s: neither a rule nor \"warning\" or \"serious\"; \"tagine "
                       "diagnose --list-rules\" lists the rules",
                       name);
    snprintf(out->rule, sizeof out->rule, "%s",
             rule      ? rule->name
             : warning ? "warning"
                       : "serious");
    return TG_OK;
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static tg_status parse_action(const char *text, tg_reaction *out)
{
    static const char HOOK[] = "webhook:";
    for (int kind = TG_REACT_WARN; kind <= TG_REACT_STOP; kind++)
        if (kind != TG_REACT_WEBHOOK && strcmp(text, NAMES[kind]) == 0) {
            out->kind = (tg_reaction_kind)kind;
            return TG_OK;
        }
    const char *target = text + sizeof HOOK - 1;
    if (strncmp(text, HOOK, sizeof HOOK - 1) != 0 ||
        !(is_url(target) || (target[0] == '@' && target[1])))
        return tg_fail(TG_ERROR_USAGE,
                       "--on-finding %s: the action is warn, webhook:URL, webhook:@FILE or stop",
                       out->rule);
    out->kind = TG_REACT_WEBHOOK;
    snprintf(out->target, sizeof out->target, "%s", target);
    return TG_OK;
}

static tg_status parse_item(char *item, tg_reaction *out)
{
    char *equals = strchr(item, '=');
    if (!equals)
        return tg_fail(TG_ERROR_USAGE,
                       "--on-finding %s: RULE=ACTION is needed, as in "
                       "LossNotDecreasing=stop",
                       item);
    *equals = '\0';
    TG_TRY(parse_rule(item, out));
    return parse_action(equals + 1, out);
}

tg_status tg_reactions_parse(const char *list, tg_reactions *out)
{
    char item[TG_REACTION_TARGET + 64];
    *out = (tg_reactions){0};
    for (const char *at = list ? list : ""; *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if (n >= TG_REACTION_TARGET || out->count == TG_REACTIONS)
            return tg_fail(TG_ERROR_USAGE,
                           "--on-finding: at most %d actions, each of less than %d "
                           "bytes",
                           TG_REACTIONS, TG_REACTION_TARGET);
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        TG_TRY(parse_item(item, &out->each[out->count]));
        out->count++;
    }
    return TG_OK;
}

bool tg_reaction_is_for(const tg_reaction *reaction, const char *rule, tg_severity severity,
                        bool explained)
{
    if (strcmp(reaction->rule, "warning") == 0)
        return !explained && severity >= TG_SEVERITY_WARNING;
    if (strcmp(reaction->rule, "serious") == 0)
        return !explained && severity >= TG_SEVERITY_SERIOUS;
    return strcmp(reaction->rule, rule) == 0;
}
