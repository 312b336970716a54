/* Overfit, Overtraining, StalledTraining and ClassImbalance, of the withdrawn tool: what evaluations and the clock say of
 * a job's learning. */
#include "diagnose/rules.h"
#include "diagnose/series.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

enum { GAP, OVERFIT_PATIENCE };

static const tg_rule_limit OVERFIT_LIMITS[] = {
    {"ratio_threshold", 0.1, 0, 1e3,
     "validation loss above training loss, as a share of the latter"},
    {"patience", 5, 1, 1e6, "evaluations in a row"},
};

/* Mean label term of an epoch's steps (epochs done: e). */
static double training_loss(const tg_history *h, int64_t e)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        const tg_step_record *r = &h->steps[i];
        if (r->epoch + 1 != e || !isfinite(r->loss_task))
            continue;
        sum += r->loss_task;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

static double gap_of(const tg_history *h, size_t eval)
{
    const double training = training_loss(h, h->evals[eval].epoch);
    return (h->evals[eval].val_loss - training) / training;
}

static tg_status say_overfit(const tg_history *h, double before, double now, size_t patience,
                             tg_findings *out)
{
    const tg_eval_record *last = &h->evals[h->eval_count - 1];
    const tg_eval_record *then = &h->evals[h->eval_count - patience];
    const bool better = last->val_top1 > then->val_top1;
    tg_finding *f =
        tg_findings_add(out, "Overfit", better ? TG_SEVERITY_NOTE : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "The validation loss is %.0f %% above that of training, and was %.0f %% "
                   "%zu evaluations before",
                   100 * now, 100 * before, patience);
    f->begin = then->time;
    f->end = last->time;
    tg_finding_add_evidence(f, "validation loss", last->val_loss, "");
    tg_finding_add_evidence(f, "label term of training, mean of the epoch",
                            training_loss(h, last->epoch), "");
    tg_finding_add_evidence(f, "validation top-1 now", last->val_top1, "%");
    tg_finding_add_evidence(f, "validation top-1 then", then->val_top1, "%");
    TG_FINDING_SAY(f->cause, better ? "it learns photos by heart; accuracy still grows"
                                    : "it learns photos by heart, and others no longer gain by it");
    TG_FINDING_SAY(f->advice,
                   "More varied photos: --aa, --mixup, --reprob, or --drop-path and more "
                   "--weight-decay; or a teacher (`tagine distill`)");
    return TG_OK;
}

static tg_status check_overfit(const tg_history *history, const double *limits, tg_findings *out,
                               const char **lack)
{
    const size_t patience = (size_t)limits[OVERFIT_PATIENCE];
    double before = NAN, now = NAN;
    if (history->eval_count < patience + 1) {
        *lack = "more evaluations (six at least, --eval-interval)";
        return TG_END;
    }
    for (size_t i = history->eval_count - patience; i < history->eval_count; i++) {
        now = gap_of(history, i);
        if (isnan(before))
            before = now;
        if (!(now > limits[GAP]))
            return TG_OK;
    }
    return now > before ? say_overfit(history, before, now, patience, out) : TG_OK;
}

const tg_rule tg_rule_overfit = {
    .name = "Overfit",
    .asks = "whether training goes on to gain where validation does not",
    .needs = TG_INPUT_STEPS | TG_INPUT_EVALS,
    .limits = OVERFIT_LIMITS,
    .limit_count = sizeof OVERFIT_LIMITS / sizeof *OVERFIT_LIMITS,
    .check = check_overfit,
};

enum { DELTA, TRAINING_PATIENCE };

static const tg_rule_limit OVERTRAINING_LIMITS[] = {
    {"delta", 0.01, 0, 1e3, "that the validation loss must fall by to count"},
    {"patience_validation", 5, 1, 1e6, "evaluations without that"},
};

/* The last evaluation that beat all before it by delta. */
static size_t last_progress(const tg_history *h, double delta)
{
    size_t best = 0;
    for (size_t i = 1; i < h->eval_count; i++)
        if (h->evals[i].val_loss < h->evals[best].val_loss - delta ||
            h->evals[i].val_top1 > h->evals[best].val_top1 + 100 * delta)
            best = i;
    return best;
}

static tg_status check_overtraining(const tg_history *history, const double *limits,
                                    tg_findings *out, const char **lack)
{
    if ((double)history->eval_count <= limits[TRAINING_PATIENCE]) {
        *lack = "more evaluations (six at least, --eval-interval)";
        return TG_END;
    }
    const size_t best = last_progress(history, limits[DELTA]), last = history->eval_count - 1;
    if ((double)(last - best) < limits[TRAINING_PATIENCE])
        return TG_OK;
    const tg_eval_record *b = &history->evals[best], *now = &history->evals[last];
    tg_finding *f = tg_findings_add(out, "Overtraining", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "Nothing was gained in the last %zu evaluations, since epoch %lld",
                   last - best, (long long)b->epoch);
    f->begin = b->time;
    f->end = now->time;
    tg_finding_add_evidence(f, "validation loss at its best", b->val_loss, "");
    tg_finding_add_evidence(f, "validation loss now", now->val_loss, "");
    tg_finding_add_evidence(f, "validation top-1 then", b->val_top1, "%");
    tg_finding_add_evidence(f, "validation top-1 now", now->val_top1, "%");
    tg_finding_add_evidence(f, "time since", now->time - b->time, "s");
    TG_FINDING_SAY(f->cause, "what can be learnt from these photos with this recipe is learnt; the "
                             "best model is kept in model/");
    TG_FINDING_SAY(f->advice, "Stop here, or plan fewer epochs: the rate then falls sooner, which "
                              "is worth more than epochs at a high one");
    tg_finding_set_number(f, "epochs", tg_history_option_number(history, "epochs"),
                          (double)b->epoch + 1);
    return TG_OK;
}

const tg_rule tg_rule_overtraining = {
    .name = "Overtraining",
    .asks = "whether evaluations still get better",
    .needs = TG_INPUT_EVALS,
    .limits = OVERTRAINING_LIMITS,
    .limit_count = sizeof OVERTRAINING_LIMITS / sizeof *OVERTRAINING_LIMITS,
    .check = check_overtraining,
};

enum { SILENCE };

static const tg_rule_limit STALLED_LIMITS[] = {
    {"threshold", 1800, 1, 1e9, "seconds without a step, an evaluation or a checkpoint"},
};

/* Seconds of [begin, end] that spans account for. */
static double accounted(const tg_history *h, double begin, double end)
{
    double sum = 0;
    for (size_t i = 0; i < h->span_count; i++) {
        const double from = fmax(begin, h->spans[i].time);
        const double to = fmin(end, h->spans[i].time + h->spans[i].seconds);
        if (!isnan(h->spans[i].seconds) && to > from)
            sum += to - from;
    }
    return sum;
}

/* Whether a start lies in it: then an attempt had ended, and nothing stalled. */
static bool restarted(const tg_history *h, double begin, double end)
{
    for (size_t i = 0; i < h->span_count; i++)
        if ((h->spans[i].kind == TG_SPAN_ATTEMPT || h->spans[i].kind == TG_SPAN_START) &&
            h->spans[i].time > begin && h->spans[i].time < end)
            return true;
    return false;
}

static tg_status say_stalled(int64_t step, double begin, double end, double silent, bool still,
                             tg_findings *out)
{
    tg_finding *f =
        tg_findings_add(out, "StalledTraining", still ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   still ? "No step for %.0f minutes, since step %lld"
                         : "%.0f minutes without anything to show for it, after step %lld",
                   silent / 60, (long long)step);
    f->begin = begin;
    f->end = end;
    f->first_step = f->last_step = step;
    tg_finding_add_evidence(f, "without a step, an evaluation or a checkpoint", silent, "s");
    TG_FINDING_SAY(f->cause, "a rank, a disk or a file system that does not answer, or a machine "
                             "that was put to sleep");
    TG_FINDING_SAY(f->advice,
                   "The logs of all ranks (log/) say who waits for what; --stall-seconds "
                   "ends a job whose ranks give nothing");
    return TG_OK;
}

static tg_status check_stalled(const tg_history *h, const double *limits, tg_findings *out,
                               const char **lack)
{
    double worst = limits[SILENCE];
    size_t at = SIZE_MAX;
    const size_t n = h->step_count;
    if (!n || isnan(h->steps[n - 1].time)) {
        *lack = "the time of each step (metrics.jsonl of a newer program)";
        return TG_END;
    }
    for (size_t i = 0; i < n; i++) {
        const double begin = h->steps[i].time;
        const double end = i + 1 < n ? h->steps[i + 1].time : tg_history_end(h);
        if (!(end - begin > worst) || (i + 1 == n && tg_history_ended(h)) ||
            restarted(h, begin, end))
            continue;
        const double silent =
            end - begin - accounted(h, begin, end) - (i + 1 < n ? 2 * h->steps[i].t_step : 0);
        if (silent <= worst)
            continue;
        worst = silent;
        at = i;
    }
    if (at == SIZE_MAX)
        return TG_OK;
    const double end = at + 1 < n ? h->steps[at + 1].time : tg_history_end(h);
    return say_stalled(h->steps[at].step, h->steps[at].time, end, worst, at + 1 == n, out);
}

const tg_rule tg_rule_stalled_training = {
    .name = "StalledTraining",
    .asks = "whether the job stands still",
    .needs = TG_INPUT_STEPS,
    .limits = STALLED_LIMITS,
    .limit_count = 1,
    .check = check_stalled,
};

enum { RATIO };

static const tg_rule_limit IMBALANCE_LIMITS[] = {
    {"threshold_imbalance", 10, 1, 1e9,
     "times as many photos in the largest class as in the smallest"},
};

static tg_status check_imbalance(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    const double most = tg_history_info_number(history, "data.class_images.most");
    const double least = tg_history_info_number(history, "data.class_images.least");
    if (isnan(most) || isnan(least)) {
        *lack =
            "photos of each class (run.json of a newer program; `tagine data stats` counts them)";
        return TG_END;
    }
    if (most < limits[RATIO] * fmax(1, least))
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "ClassImbalance", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "The largest class has %.0f photos and the smallest %.0f", most,
                   least);
    tg_finding_add_evidence(f, "photos of the largest class", most, "");
    tg_finding_add_evidence(f, "photos of the smallest class", least, "");
    TG_FINDING_SAY(f->cause,
                   "a network that always says the large classes is right more often than "
                   "it is useful");
    TG_FINDING_SAY(f->advice,
                   "More photos of the small classes (`tagine data stats` names them), or "
                   "their folders several times in --train-split");
    return TG_OK;
}

const tg_rule tg_rule_class_imbalance = {
    .name = "ClassImbalance",
    .asks = "whether some classes have far more photos than others",
    .needs = TG_INPUT_INFO,
    .limits = IMBALANCE_LIMITS,
    .limit_count = 1,
    .check = check_imbalance,
};
