/* Steps and their phases, and what both learn. */
#include "report/compare_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PHASE(field)                                                                               \
    static double field(const tg_step_record *s)                                                   \
    {                                                                                              \
        return s->field;                                                                           \
    }
PHASE(t_step)
PHASE(t_data)
PHASE(t_teacher)
PHASE(t_forward)
PHASE(t_backward)
PHASE(t_reduce)
PHASE(t_optimizer)
PHASE(t_other)

static double images(const tg_step_record *s)
{
    return (double)s->images;
}

typedef struct quantity {
    const char *key, *name;
    tg_compare_value value;
} quantity;

static const quantity PHASES[] = {
    {"data_s", "waiting for photos", t_data},
    {"teacher_s", "teacher", t_teacher},
    {"forward_s", "forward", t_forward},
    {"backward_s", "backward", t_backward},
    {"reduce_s", "waiting for ranks", t_reduce},
    {"optimizer_s", "optimizer", t_optimizer},
    {"other_s", "other", t_other},
};

/* What takes less than a thousandth of the step in both is left out. */
static tg_status add_phase(const tg_history *a, const tg_history *b, const quantity *q,
                           double scale_b, tg_comparison *c)
{
    const tg_compare_row *step = tg_comparison_row(c, "step_s");
    tg_compare_row row = {.section = TG_COMPARE_PHASES, .unit = "s", .good = -1};
    snprintf(row.key, sizeof row.key, "%s", q->key);
    snprintf(row.name, sizeof row.name, "%s", q->name);
    TG_TRY(tg_compare_measure_steps(a, q->value, &row.a));
    TG_TRY(tg_compare_measure_steps(b, q->value, &row.b));
    row.b = tg_measure_scale(row.b, scale_b);
    if (step && row.a.mean < 0.001 * step->a.mean && row.b.mean < 0.001 * step->b.mean)
        return TG_OK;
    return tg_compare_add_row(c, &row);
}

/* Photos over time, as noisy as the time is. */
static tg_measure rate_of(const tg_measure *step, double photos)
{
    tg_measure rate = *step;
    rate.mean = photos / step->mean;
    rate.half_width = rate.mean * step->half_width / step->mean;
    return rate;
}

static tg_status add_rates(const tg_history *a, const tg_history *b, double scale_b,
                           tg_comparison *c)
{
    tg_compare_row step = {
        .section = TG_COMPARE_SPEED, .unit = "s", .good = -1, .key = "step_s", .name = "step"};
    tg_compare_row rate = {.section = TG_COMPARE_SPEED,
                           .unit = "images/s",
                           .good = 1,
                           .key = "images_per_s",
                           .name = "images/s"};
    TG_TRY(tg_compare_measure_steps(a, t_step, &step.a));
    TG_TRY(tg_compare_measure_steps(b, t_step, &step.b));
    rate.a = rate_of(&step.a, c->images_a);
    rate.b = rate_of(&step.b, c->images_b);
    step.b = tg_measure_scale(step.b, scale_b);
    TG_TRY(tg_compare_add_row(c, &rate));
    return tg_compare_add_row(c, &step);
}

/* Means: the last step of an epoch may be smaller. */
tg_status tg_compare_speed(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    tg_measure in_a, in_b;
    TG_TRY(tg_compare_measure_steps(a, images, &in_a));
    TG_TRY(tg_compare_measure_steps(b, images, &in_b));
    c->images_a = in_a.mean;
    c->images_b = in_b.mean;
    c->scaled = fabs(in_a.mean - in_b.mean) > 0.01 * in_a.mean;
    const double scale = c->scaled ? in_a.mean / in_b.mean : 1;
    TG_TRY(add_rates(a, b, scale, c));
    for (size_t p = 0; p < sizeof PHASES / sizeof PHASES[0]; p++)
        TG_TRY(add_phase(a, b, &PHASES[p], scale, c));
    return TG_OK;
}

/* Top-1 in percent with the interval that so many photos leave it (normal approximation, 95 %). */
static tg_measure accuracy(const tg_eval_record *eval)
{
    tg_measure m = tg_measure_exact(eval ? eval->val_top1 : NAN);
    const double p = m.mean / 100;
    if (eval && eval->val_images > 0)
        m.half_width = 100 * 1.96 * sqrt(fmax(p * (1 - p), 0) / (double)eval->val_images);
    return m;
}

static const tg_eval_record *best_of(const tg_history *h)
{
    const tg_eval_record *best = NULL;
    for (size_t i = 0; i < h->eval_count; i++)
        if (!best || h->evals[i].val_top1 > best->val_top1)
            best = &h->evals[i];
    return best;
}

static const tg_eval_record *eval_at(const tg_history *h, int64_t epoch)
{
    for (size_t i = 0; i < h->eval_count; i++)
        if (h->evals[i].epoch == epoch)
            return &h->evals[i];
    return NULL;
}

static tg_status add_learned(tg_comparison *c, const char *key, const char *name, const char *unit,
                             tg_measure a, tg_measure b, int good)
{
    tg_compare_row row = {
        .section = TG_COMPARE_LEARNING, .unit = unit, .a = a, .b = b, .good = good};
    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.name, sizeof row.name, "%s", name);
    return tg_compare_add_row(c, &row);
}

static tg_status add_evaluations(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    char name[48];
    int64_t epoch = 0; /* the last that both have */
    for (size_t i = 0; i < a->eval_count; i++)
        if (a->evals[i].epoch > epoch && eval_at(b, a->evals[i].epoch))
            epoch = a->evals[i].epoch;
    TG_TRY(add_learned(c, "best_top1", "best top-1", "%", accuracy(best_of(a)),
                       accuracy(best_of(b)), 1));
    const tg_eval_record *in_a = eval_at(a, epoch), *in_b = eval_at(b, epoch);
    if (!in_a || !in_b)
        return TG_OK;
    snprintf(name, sizeof name, "top-1 after epoch %lld", (long long)epoch);
    TG_TRY(add_learned(c, "top1", name, "%", accuracy(in_a), accuracy(in_b), 1));
    snprintf(name, sizeof name, "validation loss, epoch %lld", (long long)epoch);
    return add_learned(c, "val_loss", name, "", tg_measure_exact(in_a->val_loss),
                       tg_measure_exact(in_b->val_loss), -1);
}

enum { PARTS = 20 };

static double photos(const tg_history *h)
{
    double sum = 0;
    for (size_t i = 0; i < h->step_count; i++)
        sum += (double)h->steps[i].images;
    return sum;
}

/* Mean losses over PARTS equal parts of the first `most` photos; NaN: no finite loss in it. */
static void course(const tg_history *h, double most, double out[PARTS])
{
    double seen = 0, sums[PARTS] = {0};
    size_t counts[PARTS] = {0};
    for (size_t i = 0; i < h->step_count && seen < most; i++) {
        const double middle = seen + 0.5 * (double)h->steps[i].images;
        const int part = (int)fmin(middle / most * PARTS, PARTS - 1);
        seen += (double)h->steps[i].images;
        if (!isfinite(h->steps[i].loss))
            continue;
        sums[part] += h->steps[i].loss;
        counts[part]++;
    }
    for (int p = 0; p < PARTS; p++)
        out[p] = counts[p] ? sums[p] / (double)counts[p] : NAN;
}

static void compare_courses(const tg_history *a, const tg_history *b, tg_compare_alike *out)
{
    double in_a[PARTS], in_b[PARTS];
    const double most = fmin(photos(a), photos(b));
    size_t within = 0;
    *out = (tg_compare_alike){.within = NAN, .most = NAN};
    if (!(most > 0))
        return;
    course(a, most, in_a);
    course(b, most, in_b);
    for (int p = 0; p < PARTS; p++) {
        const double off = fabs(in_a[p] - in_b[p]) / fmax(fabs(in_a[p]), fabs(in_b[p]));
        if (isnan(off))
            continue;
        out->parts++;
        within += off <= 0.02;
        out->most = fmax(out->most, off); /* of NaN and a number, the number */
    }
    out->within = (double)within / (double)out->parts;
    out->alike = out->within >= 0.9;
}

static size_t equal_steps(const tg_history *a, const tg_history *b)
{
    size_t i = 0;
    while (i < a->step_count && i < b->step_count && a->steps[i].step == b->steps[i].step &&
           fabs(a->steps[i].loss - b->steps[i].loss) <= 1e-6 * fabs(a->steps[i].loss))
        i++;
    return i;
}

/* Losses of the last tenth of the first `most` photos. */
static tg_status measure_end(const tg_history *h, double most, tg_measure *out)
{
    double seen = 0;
    size_t count = 0;
    double *losses = malloc((h->step_count + 1) * sizeof *losses);
    if (!losses)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
    for (size_t i = 0; i < h->step_count && seen < most; i++) {
        seen += (double)h->steps[i].images;
        if (seen > 0.9 * most)
            losses[count++] = h->steps[i].loss;
    }
    *out = tg_measure_of(losses, count);
    free(losses);
    return TG_OK;
}

/* The loss is taken where the shorter of the two ends. */
tg_status tg_compare_learning(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    const double most = fmin(photos(a), photos(b));
    tg_measure in_a, in_b;
    compare_courses(a, b, &c->alike);
    c->alike.equal_steps = equal_steps(a, b);
    if (most > 0) {
        TG_TRY(measure_end(a, most, &in_a));
        TG_TRY(measure_end(b, most, &in_b));
        TG_TRY(add_learned(c, "loss", "loss after as many photos", "", in_a, in_b, -1));
    }
    return add_evaluations(a, b, c);
}
