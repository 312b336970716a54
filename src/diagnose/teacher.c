/* Distillation: TeacherCost, TeacherDisagrees, KdShareSmall. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>
#include <string.h>

/* A teacher's answer to a photo, as TinyViT keeps it: its 100 likeliest classes, 2 bytes each for class and value, and the
 * seed of what the photo was turned into. */
enum { KEPT_CLASSES = 100, KEPT_BYTES = 4, SEED_BYTES = 4 };

static bool distils(const tg_history *history)
{
    return tg_history_option(history, "teacher") != NULL;
}

enum { SHARE };

static const tg_rule_limit COST_LIMITS[] = {
    {"share", 20, 0, 100, "percent of the step that the teacher takes"},
};

/* The disk that answers to all photos of all epochs would take; NaN: not known. */
static double cache_bytes(const tg_history *history, double epochs)
{
    const double classes = tg_history_info_number(history, "data.classes");
    const double images = tg_history_info_number(history, "data.train_images");
    return images * epochs * (KEPT_BYTES * fmin(classes, KEPT_CLASSES) + SEED_BYTES);
}

/* bfloat16 is what the program can do about it today. */
static void advise_cost(const tg_history *history, const tg_use_steps *s, double share,
                        tg_finding *f)
{
    char all[TG_COMMON_SECONDS] = "an unknown amount";
    const double epochs = tg_history_option_number(history, "epochs");
    const double bytes = cache_bytes(history, epochs);
    if (bytes > 0)
        tg_common_bytes(bytes, all);
    tg_finding_add_evidence(f, "answers of all epochs, kept on a disk", bytes, "bytes");
    tg_finding_add_evidence(f, "answers of 10 epochs, used again and again",
                            cache_bytes(history, fmin(10, epochs)), "bytes");
    TG_FINDING_SAY(
        f->advice,
        "Kept answers would take %s of disk and make steps %.2g times as fast: from the "
        "next run on, or with those of 10 epochs used again from epoch 11 on. This program "
        "cannot keep them yet; a smaller teacher%s costs less today",
        all, 1 / (1 - share), tg_common_option_is(history, "amp", "true") ? "" : ", or --amp,");
    tg_finding_add_evidence(f, "step without the teacher", s->step_s - s->teacher_s, "s");
}

static tg_status check_cost(const tg_history *history, const double *limits, tg_findings *out,
                            const char **lack)
{
    char time[TG_COMMON_SECONDS];
    const tg_use_steps s = tg_use_of_steps(history);
    if (!distils(history))
        return TG_OK;
    if (!s.steps) {
        *lack = TG_LACKS_STEPS;
        return TG_END;
    }
    const double share = s.teacher_s / s.step_s;
    if (share < limits[SHARE] / 100)
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "TeacherCost", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "the frozen teacher takes %.0f %% of the step, %s", 100 * share,
                   tg_common_seconds(s.teacher_s, time));
    TG_FINDING_SAY(f->cause, "it answers the same photos in every epoch, and does not change");
    tg_common_mark(f, &s);
    tg_finding_add_evidence(f, "teacher, a step", s.teacher_s, "s");
    tg_finding_add_evidence(f, "teacher, a photo", s.teacher_s / s.images, "s");
    advise_cost(history, &s, share, f);
    return TG_OK;
}

const tg_rule tg_rule_teacher_cost = {
    .name = "TeacherCost",
    .asks =
        "how much of the step the frozen teacher takes, and what keeping its answers would bring",
    .needs = TG_INPUT_OPTIONS | TG_INPUT_STEPS,
    .limits = COST_LIMITS,
    .limit_count = sizeof COST_LIMITS / sizeof *COST_LIMITS,
    .check = check_cost,
};

enum { CHANCES, BEHIND };

static const tg_rule_limit DISAGREES_LIMITS[] = {
    {"chances", 2, 1, 1e4, "times the accuracy of guessing that a teacher must have"},
    {"behind", 5, 0, 100, "points of top-1 by which the student may be better than it"},
};

static double best_student(const tg_history *history)
{
    double best = NAN;
    for (size_t i = 0; i < history->eval_count; i++)
        best = fmax(best, history->evals[i].val_top1);
    return best;
}

static tg_status report_disagrees(double top1, double chance, double student, double photos,
                                  bool guesses, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "TeacherDisagrees",
                                    guesses ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    if (guesses)
        TG_FINDING_SAY(
            f->title,
            "the teacher is right on %.1f %% of the validation photos; guessing is on %.1f", top1,
            chance);
    else
        TG_FINDING_SAY(
            f->title,
            "the student is right on %.1f %% of the validation photos, its teacher on %.1f",
            student, top1);
    TG_FINDING_SAY(
        f->cause, "%s",
        guesses ? "a teacher that does not know these classes teaches noise: it was trained on "
                  "others, its classes are in another order, or it was given other photos "
                  "than it learned with (mean, std, size)"
                : "what the student knows beyond its teacher it has from the labels, and the "
                  "teacher now holds it back");
    TG_FINDING_SAY(
        f->advice, "%s",
        guesses ? "tagine eval --model TEACHER --data DATA shows what it knows; look at the class "
                  "names and the preprocessing in its config.json"
                : "A smaller --kd-alpha, or a better teacher");
    tg_finding_add_evidence(f, "the teacher's top-1", top1, "%");
    tg_finding_add_evidence(f, "guessing", chance, "%");
    tg_finding_add_evidence(f, "the student's best top-1", student, "%");
    tg_finding_add_evidence(f, "validation photos", photos, "photos");
    return TG_OK;
}

static tg_status check_disagrees(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    const double top1 = tg_history_info_number(history, "teacher_score.val_top1");
    const double photos = tg_history_info_number(history, "teacher_score.val_images");
    const double chance = 100 / tg_history_info_number(history, "data.classes");
    const double student = best_student(history);
    if (!distils(history))
        return TG_OK;
    if (isnan(top1) || isnan(chance)) {
        *lack = "the teacher's score on a validation split (run.json)";
        return TG_END;
    }
    /* three standard deviations of so few photos */
    const double noise = 300 * sqrt(chance / 100 * (1 - chance / 100) / fmax(1, photos));
    const bool guesses = top1 < fmin(limits[CHANCES] * chance, chance + fmax(noise, 1));
    if (!guesses && !(student > top1 + fmax(limits[BEHIND], noise)))
        return TG_OK;
    return report_disagrees(top1, chance, student, photos, guesses, out);
}

const tg_rule tg_rule_teacher_disagrees = {
    .name = "TeacherDisagrees",
    .asks = "whether the teacher knows these classes, and more of them than the student",
    .needs = TG_INPUT_INFO | TG_INPUT_OPTIONS,
    .limits = DISAGREES_LIMITS,
    .limit_count = sizeof DISAGREES_LIMITS / sizeof *DISAGREES_LIMITS,
    .check = check_disagrees,
};

enum { SMALL };

static const tg_rule_limit SMALL_LIMITS[] = {
    {"share", 1, 0, 100, "percent of the loss that the teacher's term must be"},
};

/* alpha kd over the loss, a mean of the steps; NaN: not known. */
static double kd_share(const tg_history *history, double alpha, const tg_use_steps *s)
{
    double kd = 0, all = 0;
    for (size_t i = 0; i < history->step_count; i++) {
        const tg_step_record *r = &history->steps[i];
        if (r->step < s->first_step || r->step > s->last_step || !isfinite(r->loss_kd) ||
            !isfinite(r->loss_task))
            continue;
        kd += alpha * r->loss_kd;
        all += alpha * r->loss_kd + (1 - alpha) * r->loss_task;
    }
    return all > 0 ? kd / all : NAN;
}

static tg_status report_small(const tg_history *history, const tg_use_steps *s, double alpha,
                              double share, tg_findings *out)
{
    const bool divided = tg_common_option_is(history, "kd-reduction", "mean");
    const bool cold = tg_history_option_number(history, "kd-temperature") < 1;
    tg_finding *f = tg_findings_add(out, "KdShareSmall", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "the teacher's term is %.2g %% of the loss: the student hardly learns from it",
                   100 * share);
    TG_FINDING_SAY(f->cause, "%s",
                   divided ? "--kd-reduction mean divides the term by the number of classes as well"
                   : cold  ? "a temperature below 1 with its square before the term makes it small"
                           : "the share that --kd-alpha gives it is small, or the student already "
                             "agrees with the teacher");
    tg_common_mark(f, s);
    tg_finding_add_evidence(f, "the teacher's term of the loss", 100 * share, "%");
    tg_finding_add_evidence(f, "kd-alpha", alpha, "");
    tg_finding_add_evidence(f, "teacher, of the step", 100 * s->teacher_s / s->step_s, "%");
    if (divided)
        tg_finding_set_option(f, "kd-reduction", "mean", "batchmean");
    else if (cold)
        tg_finding_set_number(f, "kd-temperature",
                              tg_history_option_number(history, "kd-temperature"), 4);
    else if (alpha < 0.5)
        tg_finding_set_number(f, "kd-alpha", alpha, 0.5);
    return TG_OK;
}

static tg_status check_small(const tg_history *history, const double *limits, tg_findings *out,
                             const char **lack)
{
    const tg_use_steps s = tg_use_of_steps(history);
    const double alpha = tg_history_option_number(history, "kd-alpha");
    if (!distils(history) || alpha >= 1)
        return TG_OK;
    const double share = s.steps ? kd_share(history, alpha, &s) : NAN;
    if (isnan(share)) {
        *lack = s.steps ? "both terms of the loss (metrics.jsonl)" : TG_LACKS_STEPS;
        return TG_END;
    }
    return share < limits[SMALL] / 100 ? report_small(history, &s, alpha, share, out) : TG_OK;
}

const tg_rule tg_rule_kd_share_small = {
    .name = "KdShareSmall",
    .asks = "whether the teacher's term is a share of the loss that matters",
    .needs = TG_INPUT_OPTIONS | TG_INPUT_STEPS,
    .limits = SMALL_LIMITS,
    .limit_count = sizeof SMALL_LIMITS / sizeof *SMALL_LIMITS,
    .check = check_small,
};
