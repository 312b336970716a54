#include "profile/step_times.h"

#include "base/median.h"
#include "profile/sane.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *key, *name;
    size_t in_step, in_rank; /* offsets of the part in either record */
} PARTS[TG_PARTS] = {
#define PART(key, name)                                                                            \
    {                                                                                              \
#key, name, offsetof(tg_step_record, key), offsetof(tg_rank_step, key)                     \
    }
    PART(t_data, "waiting for photos"),
    PART(t_teacher, "teacher"),
    PART(t_forward, "forward and loss"),
    PART(t_backward, "backward"),
    PART(t_reduce, "waiting for ranks"),
    PART(t_optimizer, "optimizer"),
    PART(t_other, "other"),
};

const char *tg_step_part_key(tg_step_part part)
{
    return PARTS[part].key;
}

const char *tg_step_part_name(tg_step_part part)
{
    return PARTS[part].name;
}

static double number_at(const void *record, size_t offset)
{
    return tg_sane_seconds(*(const double *)((const char *)record + offset));
}

/* Of one column of the steps; values: room for all. */
static tg_step_spread spread_of(const tg_history *h, size_t offset, double *values)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        const double value = number_at(&h->steps[i], offset);
        if (isnan(value))
            continue;
        values[n++] = value;
        sum += value;
    }
    if (!n)
        return (tg_step_spread){NAN, NAN, NAN, NAN, NAN, NAN};
    tg_sort_doubles(values, n);
    return (tg_step_spread){.mean = sum / (double)n,
                            .median = tg_quantile(values, n, 0.5),
                            .p5 = tg_quantile(values, n, 0.05),
                            .p95 = tg_quantile(values, n, 0.95),
                            .least = values[0],
                            .most = values[n - 1]};
}

static double images_per_s(const tg_history *h)
{
    double images = 0, seconds = 0;
    for (size_t i = 0; i < h->step_count; i++) {
        images += (double)h->steps[i].images;
        seconds += tg_sane_sum(h->steps[i].t_step);
    }
    return seconds > 0 ? images / seconds : NAN;
}

static tg_slow_step describe(const tg_step_times *t, const tg_step_record *s)
{
    tg_slow_step slow = {
        .step = s->step, .seconds = s->t_step, .time = s->time, .beyond_s = -INFINITY};
    for (int p = 0; p < TG_PARTS; p++) {
        const double beyond = number_at(s, PARTS[p].in_step) - t->parts[p].median;
        if (!(beyond > slow.beyond_s))
            continue;
        slow.part = (tg_step_part)p;
        slow.beyond_s = beyond;
    }
    return slow;
}

/* Into the list of the worst, which begins with the slowest. */
static void keep_worst(tg_step_times *t, const tg_slow_step *slow)
{
    size_t at = t->worst_count;
    if (at == TG_STEP_WORST && slow->seconds <= t->worst[at - 1].seconds)
        return;
    if (at == TG_STEP_WORST)
        at--;
    else
        t->worst_count++;
    for (; at > 0 && t->worst[at - 1].seconds < slow->seconds; at--)
        t->worst[at] = t->worst[at - 1];
    t->worst[at] = *slow;
}

static void find_slow(const tg_history *h, tg_step_times *t)
{
    for (size_t i = 0; i < h->step_count; i++) {
        const tg_step_record *s = &h->steps[i];
        if (!(tg_sane_seconds(s->t_step) > TG_STEP_SLOW * t->step.median))
            continue;
        t->slow++;
        t->slow_beyond_s += s->t_step - t->step.median;
        const tg_slow_step slow = describe(t, s);
        keep_worst(t, &slow);
    }
}

/* Steps of as many ranks as the last ones count: a run may have gone on with others. */
static size_t last_ranks(const tg_history *h)
{
    return h->rank_row_count ? h->rank_rows[h->rank_row_count - 1].ranks : 0;
}

static tg_part_ranks ranks_of(const tg_history *h, size_t ranks, size_t offset, double *sums)
{
    size_t rows = 0;
    for (size_t r = 0; r < ranks; r++)
        sums[r] = 0;
    for (size_t i = 0; i < h->rank_row_count; i++) {
        if (h->rank_rows[i].ranks != ranks)
            continue;
        rows++;
        for (size_t r = 0; r < ranks; r++)
            sums[r] += tg_sane_sum(number_at(&h->rank_rows[i].each[r], offset));
    }
    tg_part_ranks p = {.least = INFINITY, .most = -INFINITY};
    for (size_t r = 0; r < ranks; r++) {
        const double mean = sums[r] / (double)rows;
        p.mean += mean / (double)ranks;
        if (mean < p.least) {
            p.least = mean;
            p.least_rank = (int)r;
        }
        if (mean > p.most) {
            p.most = mean;
            p.most_rank = (int)r;
        }
    }
    return p;
}

tg_status tg_step_times_make(const tg_history *history, tg_step_times *out)
{
    const size_t ranks = last_ranks(history);
    const size_t room = history->step_count > ranks ? history->step_count : ranks;
    double *values = malloc((room + 1) * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the times of %zu steps", room);
    tg_step_times t = {
        .steps = history->step_count, .ranks = ranks, .images_per_s = images_per_s(history)};
    t.step = spread_of(history, offsetof(tg_step_record, t_step), values);
    for (int p = 0; p < TG_PARTS; p++) {
        t.parts[p] = spread_of(history, PARTS[p].in_step, values);
        t.part_ranks[p] = ranks ? ranks_of(history, ranks, PARTS[p].in_rank, values)
                                : (tg_part_ranks){.least = NAN, .mean = NAN, .most = NAN};
    }
    find_slow(history, &t);
    free(values);
    *out = t;
    return TG_OK;
}
