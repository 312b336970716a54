/* Findings of both runs, and what those of the first promised. */
#include "report/compare_parts.h"

#include "diagnose/use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a step: less is no gain whose part could be measured. */
#define LEAST_GAIN 0.01

static const tg_finding *find_rule(const tg_diagnosis *d, const char *rule)
{
    for (size_t i = 0; i < d->findings.count; i++)
        if (!d->findings.each[i].explained_by && strcmp(d->findings.each[i].rule, rule) == 0)
            return &d->findings.each[i];
    return NULL;
}

static bool is_listed(const tg_comparison *c, const char *rule)
{
    for (size_t i = 0; i < c->finding_count; i++)
        if (strcmp(c->findings[i].rule, rule) == 0)
            return true;
    return false;
}

static tg_status add_finding(tg_comparison *c, const tg_finding *shown, tg_finding_fate fate)
{
    tg_compare_finding *all = tg_compare_more(c->findings, c->finding_count, sizeof *all);
    if (!all)
        return TG_ERROR_MACHINE;
    c->findings = all;
    tg_compare_finding *f = &all[c->finding_count++];
    *f = (tg_compare_finding){.rule = shown->rule, .fate = fate, .severity = shown->severity};
    snprintf(f->title, sizeof f->title, "%s", shown->title);
    return TG_OK;
}

static bool was_asked(const tg_diagnosis *d, const char *rule)
{
    for (size_t i = 0; i < d->result_count; i++)
        if (strcmp(d->results[i].rule->name, rule) == 0)
            return d->results[i].outcome != TG_RULE_LACKS;
    return false;
}

/* OverallSystemUsage and OverallFrameworkMetrics are tables, and stand above as rows. */
static bool counts(const tg_finding *f)
{
    return !f->explained_by && strncmp(f->rule, "Overall", 7) != 0;
}

/* One a rule: of several ranks and machines the worst. */
static tg_status add_findings(tg_comparison *c, const tg_diagnosis *a, const tg_diagnosis *b)
{
    for (size_t i = 0; i < a->findings.count; i++) {
        const tg_finding *f = &a->findings.each[i];
        const tg_finding *in_b = find_rule(b, f->rule);
        if (!counts(f) || is_listed(c, f->rule))
            continue;
        TG_TRY(add_finding(c, in_b ? in_b : f,
                           in_b                    ? TG_FINDING_STILL
                           : was_asked(b, f->rule) ? TG_FINDING_RESOLVED
                                                   : TG_FINDING_UNASKED));
    }
    for (size_t i = 0; i < b->findings.count; i++) {
        const tg_finding *f = &b->findings.each[i];
        if (counts(f) && !is_listed(c, f->rule))
            TG_TRY(add_finding(c, f, was_asked(a, f->rule) ? TG_FINDING_NEW : TG_FINDING_UNASKED));
    }
    return TG_OK;
}

static const tg_compare_setting *find_setting(const tg_comparison *c, const char *option)
{
    for (size_t i = 0; i < c->setting_count; i++)
        if (c->settings[i].option && strcmp(c->settings[i].name, option) == 0)
            return &c->settings[i];
    return NULL;
}

static tg_status add_prediction(tg_comparison *c, const tg_history *b, const tg_finding *f)
{
    tg_compare_prediction *all = tg_compare_more(c->predictions, c->prediction_count, sizeof *all);
    if (!all)
        return TG_ERROR_MACHINE;
    c->predictions = all;
    tg_compare_prediction *p = &all[c->prediction_count++];
    *p = (tg_compare_prediction){.rule = f->rule,
                                 .step_s = f->step_s,
                                 .predicted_s = f->predicted_step_s,
                                 .confidence = f->confidence};
    snprintf(p->option, sizeof p->option, "%s", f->option);
    snprintf(p->old_value, sizeof p->old_value, "%s", f->old_value);
    snprintf(p->new_value, sizeof p->new_value, "%s", f->new_value);
    tg_compare_effective(b, f->option, p->tried);
    if (tg_compare_same_value(p->tried, p->new_value))
        p->advice = TG_ADVICE_FOLLOWED;
    else
        p->advice = find_setting(c, f->option) && !tg_compare_same_value(p->tried, p->old_value)
                        ? TG_ADVICE_OTHER
                        : TG_ADVICE_NOT_TRIED;
    return TG_OK;
}

static tg_status add_predictions(tg_comparison *c, const tg_history *b, const tg_diagnosis *of_a)
{
    for (size_t i = 0; i < of_a->findings.count; i++) {
        const tg_finding *f = &of_a->findings.each[i];
        if (!f->explained_by && f->option[0] && !isnan(f->predicted_step_s))
            TG_TRY(add_prediction(c, b, f));
    }
    return TG_OK;
}

static bool is_followed(const tg_comparison *c, const char *option)
{
    for (size_t i = 0; i < c->prediction_count; i++)
        if (c->predictions[i].advice == TG_ADVICE_FOLLOWED &&
            strcmp(c->predictions[i].option, option) == 0)
            return true;
    return false;
}

static size_t count_others(const tg_comparison *c)
{
    size_t others = 0;
    for (size_t i = 0; i < c->setting_count; i++)
        others += c->settings[i].time && !is_followed(c, c->settings[i].name);
    return others;
}

/* Several advices are taken to work one on what the others leave: the product of their shares. */
static double predict_together(tg_comparison *c, double step_s)
{
    for (size_t i = 0; i < c->prediction_count; i++) {
        const tg_compare_prediction *p = &c->predictions[i];
        if (p->advice != TG_ADVICE_FOLLOWED)
            continue;
        step_s *= p->predicted_s / p->step_s;
        c->joint.followed++;
    }
    return c->joint.followed ? step_s : NAN;
}

static double noise_of(const tg_comparison *c)
{
    const tg_compare_row *step = tg_comparison_row(c, "step_s");
    return step ? hypot(step->a.half_width, step->b.half_width) : NAN;
}

static void hold_against(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    const tg_use_steps in_a = tg_use_of_steps(a), in_b = tg_use_of_steps(b);
    tg_compare_joint *joint = &c->joint;
    *joint = (tg_compare_joint){.others = count_others(c),
                                .step_a_s = in_a.step_s,
                                .step_b_s = in_b.step_s,
                                .gain_came = NAN,
                                .gain_half_width = NAN};
    if (c->scaled)
        joint->step_b_s *= in_a.images / in_b.images;
    joint->predicted_s = predict_together(c, in_a.step_s);
    const double gain = joint->step_a_s - joint->predicted_s;
    if (joint->others || !(gain > LEAST_GAIN * joint->step_a_s))
        return;
    joint->gain_came = (joint->step_a_s - joint->step_b_s) / gain;
    joint->gain_half_width = noise_of(c) / gain;
}

tg_status tg_compare_findings(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    tg_diagnosis of_a = {0}, of_b = {0};
    tg_status status = tg_diagnose(a, NULL, &of_a);
    if (status == TG_OK)
        status = tg_diagnose(b, NULL, &of_b);
    if (status == TG_OK)
        status = add_findings(c, &of_a, &of_b);
    if (status == TG_OK)
        status = add_predictions(c, b, &of_a);
    if (status == TG_OK)
        hold_against(a, b, c);
    tg_diagnosis_done(&of_a);
    tg_diagnosis_done(&of_b);
    return status;
}
