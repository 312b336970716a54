#include "diagnose/diagnose.h"

#include "base/nearest.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_in_list(const char *name, const char *list)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncasecmp(at, name, n) == 0)
            return true;
    return false;
}

static tg_status unknown_rule(const char *name)
{
    size_t count;
    const tg_rule *const *rules = tg_rules(&count);
    tg_nearest nearest = {.word = name};
    for (size_t i = 0; i < count; i++)
        tg_nearest_offer(&nearest, rules[i]->name);
    return tg_fail(TG_ERROR_USAGE, "\"%s\" is no rule" TG_NEAREST_FORMAT "%s", name,
                   TG_NEAREST_HINT(nearest.best),
                   nearest.best ? "" : "; \"tagine diagnose --list-rules\" lists them");
}

/* The next item of a list with commas; false at its end. Longer ones than fit are cut. */
static bool next_item(const char **at, char *out, size_t size)
{
    if (!**at)
        return false;
    const size_t n = strcspn(*at, ",");
    snprintf(out, size, "%.*s", (int)n, *at);
    *at += n;
    *at += **at == ',';
    return true;
}

static tg_status check_rules(const char *list)
{
    char name[64];
    for (const char *at = list; next_item(&at, name, sizeof name);)
        if (!tg_rule_find(name))
            return unknown_rule(name);
    return TG_OK;
}

static tg_status unknown_limit(const tg_rule *rule, const char *name)
{
    tg_text names = {0};
    for (size_t i = 0; i < rule->limit_count; i++)
        tg_text_append_format(&names, "%s%s", i ? ", " : "", rule->limits[i].name);
    tg_status status =
        tg_fail(TG_ERROR_USAGE, "%s has no limit \"%s\"%s%s", rule->name, name,
                names.length ? "; there are: " : "; it has none", tg_text_string(&names));
    tg_text_done(&names);
    return status;
}

/* "StepOutlier.stddev=4": which, and its value. */
static tg_status parse_limit(char *item, const tg_rule **out_rule, size_t *out_index,
                             double *out_value)
{
    char *dot = strchr(item, '.'), *equals = strchr(item, '=');
    if (!dot || !equals || equals < dot)
        return tg_fail(TG_ERROR_USAGE,
                       "\"%s\" is no limit: RULE.NAME=NUMBER, as in "
                       "StepOutlier.stddev=4",
                       item);
    *dot = *equals = '\0';
    const tg_rule *rule = tg_rule_find(item);
    if (!rule)
        return unknown_rule(item);
    size_t i = 0;
    while (i < rule->limit_count && strcasecmp(rule->limits[i].name, dot + 1) != 0)
        i++;
    if (i == rule->limit_count)
        return unknown_limit(rule, dot + 1);
    const tg_rule_limit *limit = &rule->limits[i];
    if (!tg_number_parse_double(equals + 1, strlen(equals + 1), out_value) ||
        *out_value < limit->low || *out_value > limit->high)
        return tg_fail(TG_ERROR_USAGE, "%s.%s=%s: a number from %g to %g is needed", rule->name,
                       limit->name, equals + 1, limit->low, limit->high);
    *out_rule = rule;
    *out_index = i;
    return TG_OK;
}

/* The limits of one rule: as they are, and as the list says. rule NULL: the list is checked alone. */
static tg_status read_limits(const char *list, const tg_rule *rule, double *out)
{
    char item[160];
    for (size_t i = 0; rule && i < rule->limit_count; i++)
        out[i] = rule->limits[i].initial;
    for (const char *at = list ? list : ""; next_item(&at, item, sizeof item);) {
        const tg_rule *whose = NULL;
        size_t index = 0;
        double value = NAN;
        TG_TRY(parse_limit(item, &whose, &index, &value));
        if (whose == rule)
            out[index] = value;
    }
    return TG_OK;
}

tg_status tg_diagnose_check_options(const tg_diagnose_options *options)
{
    if (options->rules)
        TG_TRY(check_rules(options->rules));
    return read_limits(options->limits, NULL, NULL);
}

/* What brings an input; "": nothing that a user could do. */
static const char *how_to_get(unsigned input)
{
    switch (input) {
    case TG_INPUT_EVALS:
        return "; a validation split brings them";
    case TG_INPUT_RANKS:
        return "; a job of several ranks writes them";
    case TG_INPUT_SYSTEM:
        return "; --monitor-interval of the job takes them";
    case TG_INPUT_DEVICES:
        return "; there are none, or their library cannot be opened";
    case TG_INPUT_OPERATIONS:
        return "; a job writes them while it records";
    default:
        return "";
    }
}

/* The first input that a rule needs and the run has not; 0: all are there. */
static unsigned missing_input(const tg_rule *rule, const tg_history *history)
{
    const unsigned missing = rule->needs & ~history->inputs;
    return missing & (~missing + 1);
}

static tg_status ask(const tg_rule *rule, const tg_history *history, tg_rule_result *result,
                     tg_findings *findings)
{
    const unsigned missing = missing_input(rule, history);
    const char *lack = NULL;
    const size_t before = findings->count;
    result->rule = rule;
    if (missing) {
        result->outcome = TG_RULE_LACKS;
        snprintf(result->lacks, sizeof result->lacks, "%s%s",
                 tg_history_input_name((tg_history_input)missing), how_to_get(missing));
        return TG_OK;
    }
    const tg_status status = rule->check(history, result->limits, findings, &lack);
    TG_TRY(status);
    if (status == TG_END) {
        result->outcome = TG_RULE_LACKS;
        snprintf(result->lacks, sizeof result->lacks, "%s", lack ? lack : "");
    } else if (findings->count > before) {
        result->outcome = TG_RULE_FIRED;
    }
    return TG_OK;
}

static bool same_place(const tg_finding *a, const tg_finding *b)
{
    const bool rank = a->rank == b->rank || a->rank < 0 || b->rank < 0;
    return rank && (!a->host[0] || !b->host[0] || strcmp(a->host, b->host) == 0);
}

static bool yields(const tg_finding *a, const tg_finding *b)
{
    const tg_rule *rule = tg_rule_find(a->rule);
    for (const char *const *name = rule ? rule->yields_to : NULL; name && *name; name++)
        if (strcmp(*name, b->rule) == 0)
            return true;
    return false;
}

static double or_nothing(double value)
{
    return isnan(value) ? 0 : value;
}

/* Both advise on the same setting: whether b does it better. */
static bool advises_better(const tg_finding *a, const tg_finding *b, bool b_is_first)
{
    if (!a->option[0] || strcmp(a->option, b->option) != 0)
        return false;
    const double ca = or_nothing(a->confidence), cb = or_nothing(b->confidence);
    const double ga = or_nothing(tg_finding_gain(a)), gb = or_nothing(tg_finding_gain(b));
    if (ca != cb)
        return cb > ca;
    return gb > ga || (gb == ga && b_is_first);
}

/* A trifle does not explain away what is worse. */
static bool explains(const tg_finding *a, const tg_finding *b)
{
    return yields(a, b) && (b->severity >= TG_SEVERITY_WARNING || b->severity >= a->severity);
}

/* Who yields is settled before who advises, so that what is explained already explains nothing of the second kind. */
static void sort_out(tg_findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        for (size_t j = 0; j < f->count && !f->each[i].explained_by; j++)
            if (i != j && same_place(&f->each[i], &f->each[j]) &&
                explains(&f->each[i], &f->each[j]))
                f->each[i].explained_by = f->each[j].rule;
    for (size_t i = 0; i < f->count; i++)
        for (size_t j = 0; j < f->count && !f->each[i].explained_by; j++)
            if (i != j && !f->each[j].explained_by && same_place(&f->each[i], &f->each[j]) &&
                advises_better(&f->each[i], &f->each[j], j < i))
                f->each[i].explained_by = f->each[j].rule;
}

static bool is_worse(const tg_finding *a, const tg_finding *b)
{
    if (!a->explained_by != !b->explained_by)
        return !a->explained_by;
    if (a->severity != b->severity)
        return a->severity > b->severity;
    return or_nothing(tg_finding_gain(a)) > or_nothing(tg_finding_gain(b));
}

/* Insertion: few, and equal ones keep their order. */
static void sort_worst_first(tg_findings *f)
{
    for (size_t i = 1; i < f->count; i++) {
        const tg_finding moved = f->each[i];
        size_t to = i;
        for (; to && is_worse(&moved, &f->each[to - 1]); to--)
            f->each[to] = f->each[to - 1];
        f->each[to] = moved;
    }
}

static tg_status ask_all(const tg_history *history, const tg_diagnose_options *options,
                         tg_diagnosis *out)
{
    size_t count;
    const tg_rule *const *rules = tg_rules(&count);
    out->results = calloc(count, sizeof *out->results);
    if (!out->results)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for findings");
    for (size_t i = 0; i < count; i++) {
        if (options && options->rules && !is_in_list(rules[i]->name, options->rules))
            continue;
        tg_rule_result *result = &out->results[out->result_count++];
        TG_TRY(read_limits(options ? options->limits : NULL, rules[i], result->limits));
        TG_TRY(ask(rules[i], history, result, &out->findings));
    }
    return TG_OK;
}

tg_status tg_diagnose(const tg_history *history, const tg_diagnose_options *options,
                      tg_diagnosis *out)
{
    tg_diagnosis diagnosis = {0};
    tg_status status = options ? tg_diagnose_check_options(options) : TG_OK;
    if (status == TG_OK)
        status = ask_all(history, options, &diagnosis);
    if (status < 0) {
        tg_diagnosis_done(&diagnosis);
        return status;
    }
    sort_out(&diagnosis.findings);
    sort_worst_first(&diagnosis.findings);
    *out = diagnosis;
    return TG_OK;
}

void tg_diagnosis_done(tg_diagnosis *diagnosis)
{
    tg_findings_done(&diagnosis->findings);
    free(diagnosis->results);
    *diagnosis = (tg_diagnosis){0};
}
