/* MaxInitializationTime and OverallFrameworkMetrics, of the withdrawn tool. */
#include "diagnose/rules.h"
#include "diagnose/use.h"

#include <math.h>

enum { THRESHOLD };

static const tg_rule_limit INITIALIZATION_LIMITS[] = {
    {"threshold", 20, 0.01, 1e6, "minutes until the first step ends"},
};

/* From the begin of the last attempt to the end of its first step; NaN: not known. */
static double time_to_first_step(const tg_history *h, double *out_begin, int64_t *out_step)
{
    const tg_span *start = NULL;
    for (size_t i = 0; i < h->span_count; i++)
        if (h->spans[i].kind == TG_SPAN_START)
            start = &h->spans[i];
    if (!start)
        return NAN;
    *out_begin = start->time;
    for (size_t i = 0; i < h->step_count; i++)
        if (h->steps[i].step > start->step) {
            *out_step = h->steps[i].step;
            return start->seconds + h->steps[i].t_step;
        }
    return start->seconds;
}

static tg_status check_initialization(const tg_history *history, const double *limits,
                                      tg_findings *out, const char **lack)
{
    double begin;
    int64_t step = 0;
    const double seconds = time_to_first_step(history, &begin, &step);
    if (isnan(seconds)) {
        *lack = "the span of the start (spans.jsonl)";
        return TG_END;
    }
    if (seconds <= 60 * limits[THRESHOLD])
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "MaxInitializationTime", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f minutes passed until the first step was done", seconds / 60);
    f->begin = begin;
    f->end = begin + seconds;
    f->first_step = f->last_step = step;
    tg_finding_add_evidence(f, "from the start to the end of the first step", seconds, "s");
    TG_FINDING_SAY(f->cause, "listing and checking the photos, and reading the teacher or a "
                             "checkpoint, come before the first step");
    TG_FINDING_SAY(f->advice, "Put photos and models on a local disk; run `tagine data check` once "
                              "before, not in each job");
    return TG_OK;
}

const tg_rule tg_rule_max_initialization_time = {
    .name = "MaxInitializationTime",
    .asks = "whether too long passes until the first step",
    .needs = TG_INPUT_SPANS,
    .limits = INITIALIZATION_LIMITS,
    .limit_count = sizeof INITIALIZATION_LIMITS / sizeof *INITIALIZATION_LIMITS,
    .check = check_initialization,
};

enum { PART_COUNT = 7 };
static const char *const PART_NAMES[PART_COUNT] = {
    "waiting for photos",      "teacher",   "forward", "backward",
    "waiting for other ranks", "optimizer", "the rest"};

static tg_status check_framework(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    const tg_use_steps use = tg_use_of_steps(history);
    (void)limits;
    if (!use.steps) {
        *lack = "more steps (20 at least)";
        return TG_END;
    }
    tg_finding *f = tg_findings_add(out, "OverallFrameworkMetrics", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    const double parts[PART_COUNT] = {use.data_s,     use.teacher_s,  use.forward_s,
                                      use.backward_s, use.exchange_s, use.optimizer_s,
                                      use.other_s};
    TG_FINDING_SAY(f->title,
                   "Of a step, photos are waited for %.0f %%, teacher %.0f, forward %.0f, backward "
                   "%.0f, other ranks %.0f, optimizer %.0f, rest %.0f",
                   100 * parts[0] / use.step_s, 100 * parts[1] / use.step_s,
                   100 * parts[2] / use.step_s, 100 * parts[3] / use.step_s,
                   100 * parts[4] / use.step_s, 100 * parts[5] / use.step_s,
                   100 * parts[6] / use.step_s);
    TG_FINDING_SAY(f->cause, "means over steps %lld to %lld", (long long)use.first_step,
                   (long long)use.last_step);
    f->first_step = use.first_step;
    f->last_step = use.last_step;
    for (size_t p = 0; p < PART_COUNT; p++)
        tg_finding_add_evidence(f, PART_NAMES[p], parts[p], "s");
    return TG_OK;
}

const tg_rule tg_rule_overall_framework_metrics = {
    .name = "OverallFrameworkMetrics",
    .asks = "what a step's time goes to (always said)",
    .needs = TG_INPUT_STEPS,
    .check = check_framework,
};
