/* The steps that a run is judged by. */
#include "diagnose/use.h"

#include "base/median.h"

#include <math.h>
#include <stdlib.h>

#define STALL 5.0 /* medians */

static bool counts(const tg_history *h, size_t i)
{
    const tg_step_record *r = &h->steps[i];
    for (size_t s = 0; s < h->span_count; s++) /* the first step of each start warms up */
        if (h->spans[s].kind == TG_SPAN_START && h->spans[s].step + 1 == r->step)
            return false;
    return i > 0 && r->t_step > 0;
}

static double median_step(const tg_history *h, size_t first, size_t *out_count)
{
    double *values = malloc((h->step_count - first + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = first; values && i < h->step_count; i++)
        if (counts(h, i))
            values[n++] = h->steps[i].t_step;
    const double median = n ? tg_median(values, n) : NAN;
    free(values);
    *out_count = n;
    return median;
}

static void add(tg_use_steps *sum, const tg_step_record *r)
{
    if (sum->steps++ == 0) {
        sum->first_step = r->step;
        sum->begin = r->time - r->t_step;
    }
    sum->last_step = r->step;
    sum->end = r->time;
    sum->images += (double)r->images;
    sum->step_s += r->t_step;
    sum->data_s += r->t_data;
    sum->teacher_s += r->t_teacher;
    sum->forward_s += r->t_forward;
    sum->backward_s += r->t_backward;
    sum->exchange_s += r->t_reduce;
    sum->optimizer_s += r->t_optimizer;
    sum->other_s += r->t_other;
}

static void divide(tg_use_steps *sum)
{
    double *const parts[] = {&sum->images,     &sum->step_s,      &sum->data_s,
                             &sum->teacher_s,  &sum->forward_s,   &sum->backward_s,
                             &sum->exchange_s, &sum->optimizer_s, &sum->other_s};
    const double n = sum->steps >= TG_USE_STEPS_LEAST ? (double)sum->steps : NAN;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        *parts[i] /= n;
    if (isnan(n))
        *sum = (tg_use_steps){.steps = 0,
                              .begin = NAN,
                              .end = NAN,
                              .step_s = NAN,
                              .median_s = NAN,
                              .images = NAN,
                              .data_s = NAN,
                              .teacher_s = NAN,
                              .forward_s = NAN,
                              .backward_s = NAN,
                              .exchange_s = NAN,
                              .optimizer_s = NAN,
                              .other_s = NAN};
}

tg_use_steps tg_use_of_steps(const tg_history *history)
{
    tg_use_steps use = {.begin = NAN, .end = NAN};
    size_t n;
    const size_t first =
        history->step_count > TG_USE_STEPS ? history->step_count - TG_USE_STEPS : 0;
    const double median = median_step(history, first, &n);
    for (size_t i = first; i < history->step_count; i++)
        if (counts(history, i) && history->steps[i].t_step <= STALL * median)
            add(&use, &history->steps[i]);
    use.median_s = median;
    divide(&use);
    return use;
}
