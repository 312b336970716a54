/* NonFiniteLoss, FlatLoss: steps that teach nothing. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include "base/median.h"

#include <math.h>

enum { COUNT };

static const tg_rule_limit FINITE_LIMITS[] = {
    {"count", 1, 1, 1e9, "steps that are not finite"},
};

typedef struct bad_steps {
    size_t count, in_a_row, longest;
    int64_t first, last;
    double begin, end, lr, norm_before; /* norm_before: of the last finite step before the first */
} bad_steps;

static bool is_finite(const tg_step_record *r)
{
    return isfinite(r->loss) && isfinite(r->grad_norm);
}

static bad_steps find_bad(const tg_history *h)
{
    bad_steps b = {.begin = NAN, .end = NAN, .lr = NAN, .norm_before = NAN};
    for (size_t i = 0; i < h->step_count; i++) {
        const tg_step_record *r = &h->steps[i];
        if (is_finite(r)) {
            b.in_a_row = 0;
            continue;
        }
        if (b.count++ == 0) {
            b.first = r->step;
            b.begin = r->time - r->t_step;
            b.lr = r->lr;
            b.norm_before = i ? h->steps[i - 1].grad_norm : NAN;
        }
        b.last = r->step;
        b.end = r->time;
        b.in_a_row++;
        b.longest = b.in_a_row > b.longest ? b.in_a_row : b.longest;
    }
    return b;
}

static tg_status check_finite(const tg_history *history, const double *limits, tg_findings *out,
                              const char **lack)
{
    const bad_steps b = find_bad(history);
    (void)lack;
    if ((double)b.count < limits[COUNT])
        return TG_OK;
    const bool ends = history->step_count && !is_finite(&history->steps[history->step_count - 1]);
    tg_finding *f = tg_findings_add(
        out, "NonFiniteLoss", b.longest > 1 || ends ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(
        f->title,
        "%zu of %zu steps had a loss or gradient that is not finite, the first is step %lld",
        b.count, history->step_count, (long long)b.first);
    TG_FINDING_SAY(
        f->cause,
        "numbers grew beyond what float32 holds%s; such a step changes no weight, and 20 in "
        "a row end the job",
        b.norm_before > 100 ? ", after gradients that were large already" : "");
    f->begin = b.begin;
    f->end = b.end;
    f->first_step = b.first;
    f->last_step = b.last;
    tg_finding_add_evidence(f, "steps that are not finite", (double)b.count, "steps");
    tg_finding_add_evidence(f, "most in a row", (double)b.longest, "steps");
    tg_finding_add_evidence(f, "learning rate then", b.lr, "");
    tg_finding_add_evidence(f, "norm of the gradient a step before", b.norm_before, "");
    const double clip = tg_history_option_number(history, "clip-grad");
    if (clip == 0)
        tg_finding_set_number(f, "clip-grad", 0, 1);
    else if (b.lr > 0)
        tg_finding_set_number(f, "lr", tg_history_option_number(history, "lr"), b.lr / 3);
    TG_FINDING_SAY(f->advice,
                   "A smaller --lr or more --warmup-epochs; where it is one photo again and again, "
                   "tagine data check");
    return TG_OK;
}

static const char *const FINITE_YIELD[] = {"ExplodingTensor", NULL};

const tg_rule tg_rule_non_finite_loss = {
    .name = "NonFiniteLoss",
    .asks = "whether losses or gradients are no numbers",
    .needs = TG_INPUT_STEPS,
    .yields_to = FINITE_YIELD,
    .limits = FINITE_LIMITS,
    .limit_count = sizeof FINITE_LIMITS / sizeof *FINITE_LIMITS,
    .check = check_finite,
};

enum { STEPS, NEAR };

static const tg_rule_limit FLAT_LIMITS[] = {
    {"steps", 200, 20, 1e9, "steps after which the loss must be better than guessing"},
    {"near", 2, 0, 100, "percent of ln(classes) that is as good as it"},
};

enum { LAST = 50 };

/* Of the label loss of the last steps; NaN: too few know it. */
static double last_loss(const tg_history *h)
{
    double values[LAST];
    size_t n = 0;
    for (size_t i = h->step_count; i > 0 && n < LAST; i--)
        if (isfinite(h->steps[i - 1].loss_task))
            values[n++] = h->steps[i - 1].loss_task;
    return n == LAST ? tg_median(values, n) : NAN;
}

static double largest_rate(const tg_history *h)
{
    double most = 0;
    for (size_t i = 0; i < h->step_count; i++)
        most = fmax(most, h->steps[i].lr);
    return most;
}

static tg_status report_flat(const tg_history *h, double loss, double chance, tg_findings *out)
{
    const double rate = largest_rate(h);
    const tg_step_record *last = &h->steps[h->step_count - 1];
    tg_finding *f = tg_findings_add(out, "FlatLoss", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "after %zu steps the loss is %.3f, and guessing among the classes gives %.3f",
                   h->step_count, loss, chance);
    f->begin = h->steps[0].time;
    f->end = last->time;
    f->first_step = h->steps[0].step;
    f->last_step = last->step;
    tg_finding_add_evidence(f, "median label loss of the last 50 steps", loss, "");
    tg_finding_add_evidence(f, "ln of the number of classes", chance, "");
    tg_finding_add_evidence(f, "largest learning rate so far", rate, "");
    tg_finding_add_evidence(f, "norm of the last gradient", last->grad_norm, "");
    if (rate < 1e-5) {
        TG_FINDING_SAY(f->cause,
                       "the learning rate is too small to learn anything in so many steps");
        tg_finding_set_number(f, "lr", rate, 1e-3);
    } else if (rate > 5e-3) {
        TG_FINDING_SAY(f->cause, "the learning rate is so large that the weights are thrown about");
        tg_finding_set_number(f, "lr", rate, 1e-3);
    } else {
        TG_FINDING_SAY(f->cause,
                       "the rate is a usual one, so look at the photos: labels that do not "
                       "belong to them look like this");
        TG_FINDING_SAY(f->advice,
                       "tagine data check and data stats; more --warmup-epochs where the rate is "
                       "reached at once");
    }
    return TG_OK;
}

static tg_status check_flat(const tg_history *history, const double *limits, tg_findings *out,
                            const char **lack)
{
    const double loss = last_loss(history);
    const double chance = log(tg_history_info_number(history, "data.classes"));
    if (isnan(loss) || isnan(chance)) {
        *lack = "50 steps with a label loss, and the number of classes (run.json)";
        return TG_END;
    }
    if ((double)history->step_count < limits[STEPS] || loss < (1 - limits[NEAR] / 100) * chance)
        return TG_OK;
    return report_flat(history, loss, chance, out);
}

static const char *const FLAT_YIELD[] = {"NonFiniteLoss", "ExplodingTensor", NULL};

const tg_rule tg_rule_flat_loss = {
    .name = "FlatLoss",
    .asks = "whether the loss is still that of guessing",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS,
    .yields_to = FLAT_YIELD,
    .limits = FLAT_LIMITS,
    .limit_count = sizeof FLAT_LIMITS / sizeof *FLAT_LIMITS,
    .check = check_flat,
};
