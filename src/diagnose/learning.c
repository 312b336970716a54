/* LossNotDecreasing, ExplodingTensor and VanishingGradient, of the withdrawn tool: whether the job learns, told by the
 * records of its steps. */
#include "diagnose/rules.h"
#include "diagnose/series.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS, FALL, RISE };
enum { LEAST_STEPS = 100, WINDOWS = 20 };
#define BY_CHANCE 0.02 /* of ln K */
#define SURE 3.0       /* standard errors */

static const tg_rule_limit LOSS_LIMITS[] = {
    {"num_steps", 10, 1, 1e9, "steps whose losses are averaged, at least"},
    {"diff_percent", 0.1, 0, 100, "percent that the loss has to fall by"},
    {"increase_threshold_percent", 5, 0, 1e4, "percent above its lowest from which it rises"},
};

/* Mean losses of one window after another. */
typedef struct windows {
    double mean[2 * WINDOWS], error[2 * WINDOWS];
    int64_t last_step[2 * WINDOWS];
    size_t count;
} windows;

static tg_status read_windows(const tg_history *h, size_t least, windows *out)
{
    size_t size = h->step_count / WINDOWS, known;
    double *values = malloc(h->step_count * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for losses");
    for (size_t i = 0; i < h->step_count; i++)
        values[i] = h->steps[i].loss;
    size = size < least ? least : size;
    *out = (windows){0};
    for (size_t begin = 0; begin + size <= h->step_count && out->count < 2 * WINDOWS;
         begin += size) {
        const size_t w = out->count++;
        out->mean[w] = tg_series_mean(values + begin, size, &out->error[w], &known);
        out->last_step[w] = h->steps[begin + size - 1].step;
        if (2 * known < size)
            out->mean[w] = NAN;
    }
    free(values);
    return TG_OK;
}

static size_t lowest(const windows *w)
{
    size_t low = 0;
    for (size_t i = 1; i < w->count; i++)
        low = w->mean[i] < w->mean[low] ? i : low;
    return low;
}

static void explain_flat(const tg_history *h, double loss, tg_finding *f)
{
    const double classes = tg_history_info_number(h, "data.classes");
    if (fabs(loss - log(classes)) <= BY_CHANCE * log(classes))
        TG_FINDING_SAY(
            f->cause,
            "it is that of answers by chance, the logarithm of %.0f classes: the network "
            "says the same of every photo",
            classes);
    else
        TG_FINDING_SAY(f->cause, "the rate is too low, or so high that steps undo one another, or "
                                 "photos and labels do not belong together");
    TG_FINDING_SAY(f->advice,
                   "Try --lr a tenth of it and three times as much for a hundred --steps "
                   "each; `tagine data check` finds labels that cannot be right");
}

/* The last window against the first: has anything been learnt? */
static tg_status say_flat(const tg_history *h, const windows *w, tg_findings *out)
{
    const size_t last = w->count - 1;
    tg_finding *f = tg_findings_add(out, "LossNotDecreasing", TG_SEVERITY_SERIOUS);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "The loss is %.4g after %lld steps and was %.4g at the start: it does "
                   "not fall",
                   w->mean[last], (long long)w->last_step[last], w->mean[0]);
    f->first_step = h->steps[0].step;
    f->last_step = w->last_step[last];
    tg_finding_add_evidence(f, "loss of the first steps, mean", w->mean[0], "");
    tg_finding_add_evidence(f, "loss of the last steps, mean", w->mean[last], "");
    tg_finding_add_evidence(f, "its standard error", w->error[last], "");
    tg_finding_add_evidence(f, "rate of the last step", h->steps[h->step_count - 1].lr, "");
    explain_flat(h, w->mean[last], f);
    return TG_OK;
}

static tg_status say_rising(const windows *w, size_t low, tg_findings *out)
{
    const size_t last = w->count - 1;
    tg_finding *f = tg_findings_add(out, "LossNotDecreasing", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "The loss rises: %.4g now, %.0f %% above the %.4g after %lld steps",
                   w->mean[last], 100 * (w->mean[last] / w->mean[low] - 1), w->mean[low],
                   (long long)w->last_step[low]);
    f->first_step = w->last_step[low];
    f->last_step = w->last_step[last];
    tg_finding_add_evidence(f, "loss at its lowest, mean", w->mean[low], "");
    tg_finding_add_evidence(f, "loss of the last steps, mean", w->mean[last], "");
    tg_finding_add_evidence(f, "its standard error", w->error[last], "");
    TG_FINDING_SAY(f->cause, "steps go too far: the rate is too high for what has been learnt");
    TG_FINDING_SAY(f->advice,
                   "Go on from the best checkpoint with a lower --lr, or with --clip-grad 1");
    return TG_OK;
}

static tg_status check_loss(const tg_history *history, const double *limits, tg_findings *out,
                            const char **lack)
{
    windows w;
    if (history->step_count < LEAST_STEPS) {
        *lack = "more steps (100 at least)";
        return TG_END;
    }
    TG_TRY(read_windows(history, (size_t)limits[STEPS], &w));
    const size_t last = w.count - 1, low = lowest(&w);
    if (w.count < 2 || isnan(w.mean[last]) || isnan(w.mean[0]))
        return TG_OK; /* not finite: ExplodingTensor says so */
    const double error = hypot(w.error[0], w.error[last]);
    if (w.mean[0] - w.mean[last] <=
        limits[FALL] / 100 * fabs(w.mean[0]) + (w.mean[last] > w.mean[0] ? 0 : error))
        return say_flat(history, &w, out);
    const double rise = w.mean[last] - w.mean[low];
    if (rise > limits[RISE] / 100 * fabs(w.mean[low]) &&
        rise > SURE * hypot(w.error[low], w.error[last]))
        return say_rising(&w, low, out);
    return TG_OK;
}

static const char *const LOSS_YIELD[] = {"ExplodingTensor", "VanishingGradient", NULL};

const tg_rule tg_rule_loss_not_decreasing = {
    .name = "LossNotDecreasing",
    .asks = "whether the loss falls",
    .needs = TG_INPUT_STEPS,
    .yields_to = LOSS_YIELD,
    .limits = LOSS_LIMITS,
    .limit_count = sizeof LOSS_LIMITS / sizeof *LOSS_LIMITS,
    .check = check_loss,
};

#define MANY 0.01 /* of the steps */

static tg_status check_exploding(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    size_t count = 0, behind = 0;
    int64_t first = 0, last = 0;
    (void)limits;
    (void)lack;
    for (size_t i = 0; i < history->step_count; i++) {
        const tg_step_record *r = &history->steps[i];
        const bool finite = isfinite(r->loss) && isfinite(r->grad_norm);
        behind = finite ? 0 : behind + 1; /* how many at the end */
        count += !finite;
        first = !finite && !first ? r->step : first;
        last = finite ? last : r->step;
    }
    if (!count)
        return TG_OK;
    const bool many = (double)count > MANY * (double)history->step_count || behind > 2;
    tg_finding *f =
        tg_findings_add(out, "ExplodingTensor", many ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    const double lr = history->steps[history->step_count - 1].lr;
    TG_FINDING_SAY(f->title, "Loss or gradient of %zu of %zu steps are not finite%s", count,
                   history->step_count, behind > 2 ? ", up to the last one" : "");
    f->first_step = first;
    f->last_step = last;
    tg_finding_add_evidence(f, "steps that changed nothing", (double)count, "");
    tg_finding_add_evidence(f, "of them in a row at the end", (double)behind, "");
    tg_finding_add_evidence(f, "rate of the last step", lr, "");
    TG_FINDING_SAY(f->cause, "numbers outgrew their type; such a step is left out, and the photos "
                             "in it taught nothing");
    TG_FINDING_SAY(f->advice, "A lower --lr or a longer --warmup-epochs, if they come back");
    const double clip = tg_history_option_number(history, "clip-grad");
    if (!(clip > 0))
        tg_finding_set_option(f, "clip-grad", isnan(clip) ? "" : "0", "1");
    return TG_OK;
}

const tg_rule tg_rule_exploding_tensor = {
    .name = "ExplodingTensor",
    .asks = "whether losses and gradients are finite",
    .needs = TG_INPUT_STEPS,
    .check = check_exploding,
};

enum { GRADIENT };
#define LEARNT 0.01 /* of the first loss: then there is nothing left to learn */

static const tg_rule_limit GRADIENT_LIMITS[] = {
    {"threshold", 1e-7, 0, 1, "mean absolute gradient of a parameter"},
};

static double number_of_parameters(const tg_history *h)
{
    double bytes = tg_history_info_number(h, "memory.weights_bytes.most");
    if (!(bytes > 0))
        bytes = tg_history_info_number(h, "memory.weights_bytes.predicted");
    return bytes / sizeof(float);
}

/* The norm bounds the mean: mean |g| <= norm / sqrt(n), by Cauchy and Schwarz. */
static tg_status check_vanishing(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    double recent[50];
    const size_t n = sizeof recent / sizeof *recent, steps = history->step_count;
    const double parameters = number_of_parameters(history);
    if (!(parameters > 0) || steps < n) {
        *lack = steps < n ? "more steps (50 at least)" : "the size of the model (run.json, memory)";
        return TG_END;
    }
    size_t known = 0;
    for (size_t i = steps - n; i < steps; i++)
        if (isfinite(history->steps[i].grad_norm))
            recent[known++] = history->steps[i].grad_norm;
    const double norm = tg_series_median(recent, known), mean = norm / sqrt(parameters);
    if (!(mean < limits[GRADIENT]) ||
        history->steps[steps - 1].loss < LEARNT * history->steps[0].loss)
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "VanishingGradient", TG_SEVERITY_SERIOUS);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "Gradients vanish: %.2g for a parameter on the average, at most",
                   mean);
    f->first_step = history->steps[steps - n].step;
    f->last_step = history->steps[steps - 1].step;
    tg_finding_add_evidence(f, "norm of the gradient, median of the last steps", norm, "");
    tg_finding_add_evidence(f, "parameters", parameters, "");
    TG_FINDING_SAY(f->cause, "what the loss says does not reach the weights");
    TG_FINDING_SAY(f->advice, "Start from trained weights (--initial-checkpoint), and look at "
                              "--kd-alpha and --kd-temperature where a teacher is the only one to "
                              "learn from");
    return TG_OK;
}

const tg_rule tg_rule_vanishing_gradient = {
    .name = "VanishingGradient",
    .asks = "whether gradients are too small to teach anything",
    .needs = TG_INPUT_STEPS,
    .limits = GRADIENT_LIMITS,
    .limit_count = 1,
    .check = check_vanishing,
};
