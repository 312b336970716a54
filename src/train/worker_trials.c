#include "train/worker_trials.h"

#include "base/median.h"
#include "train/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Waiting less than this share, more workers cannot help. */
static const double NO_WAIT = 0.01, TIMED_S = 0.5, DECLINE = 0.97, HOPELESS = 0.8;
/* Trials that the length of each is planned for; fewer candidates are the usual case. */
enum { PLANNED = 3 * TG_WORKERS_ROUNDS, FEWEST_TRIALS = 4, SHORT_EPOCHS = 2 };

static const double WINDOW_S = 20, RISE = 0.1, FIRST_PAUSE_S = 900;
enum { WINDOWS_HIGH = 3, PAUSES_DOUBLED = 8 };

static void add_candidate(tg_worker_trials *t, int workers)
{
    size_t at = t->count;
    if (workers > t->plan.most || t->count == TG_TUNE_POINTS)
        return;
    while (at > 0 && t->candidates[at - 1] >= workers)
        at--;
    if (at < t->count && t->candidates[at] == workers)
        return;
    memmove(t->candidates + at + 1, t->candidates + at, (t->count - at) * sizeof *t->candidates);
    t->candidates[at] = workers;
    t->count++;
}

static int64_t at_least(int64_t least, int64_t value)
{
    return value > least ? value : least;
}

/* Steps of a trial, so that all of them fit; false: not even a few do. */
static bool size_trials(tg_worker_trials *t)
{
    const tg_worker_plan *p = &t->plan;
    const double budget = (double)p->left * TG_WORKERS_SHARE;
    const double wanted = fmin(ceil(TIMED_S / fmax(p->step_s, 1e-6)), budget / PLANNED);
    t->settle = p->settle;
    t->timed = at_least(TG_WORKERS_TIMED, (int64_t)wanted - t->settle);
    t->by_epoch = p->epoch < SHORT_EPOCHS * (t->settle + t->timed);
    if (t->by_epoch) {
        t->settle = 0;
        t->timed = (t->timed + p->epoch - 1) / p->epoch * p->epoch;
    }
    return (double)(FEWEST_TRIALS * (t->settle + t->timed)) <= budget;
}

bool tg_worker_trials_begin(tg_worker_trials *t, const tg_worker_plan *plan)
{
    *t = (tg_worker_trials){.plan = *plan};
    add_candidate(t, 0);
    for (int n = 1; n <= plan->most && n < 1 << 20; n *= 2)
        add_candidate(t, n);
    add_candidate(t, plan->first);
    return plan->epoch > 0 && size_trials(t);
}

/* The middle of a column over all trials of so many workers; NaN where there is none. */
static double middle(const tg_worker_trials *t, int workers, size_t offset)
{
    double values[TG_TUNE_TRIALS];
    size_t n = 0;
    for (size_t i = 0; i < t->trial_count; i++) {
        const double value = *(const double *)((const char *)&t->trials[i] + offset);
        if (t->trials[i].workers == workers && !isnan(value))
            values[n++] = value;
    }
    return n ? tg_median(values, n) : NAN;
}

static double rate_of(const tg_worker_trials *t, int workers)
{
    return middle(t, workers, offsetof(tg_tune_point, images_per_s));
}

static double best_rate(const tg_worker_trials *t)
{
    double best = 0;
    for (size_t i = 0; i < t->count; i++)
        best = fmax(best, rate_of(t, t->candidates[i])); /* NaN loses */
    return best;
}

static bool is_spent(const tg_worker_trials *t)
{
    const int64_t next = t->settle + t->timed;
    const double seconds = t->steps ? t->seconds / (double)t->steps * (double)next : 0;
    if (t->trial_count == TG_TUNE_TRIALS)
        return true;
    return t->trial_count > 1 &&
           ((double)(t->steps + next) > (double)t->plan.left * TG_WORKERS_SHARE ||
            t->seconds + seconds > TG_WORKERS_MOST_S);
}

/* Upward, downward, upward. */
static int candidate_at(const tg_worker_trials *t)
{
    return t->candidates[t->round % 2 ? t->count - 1 - t->at : t->at];
}

static void sum_up(const tg_worker_trials *t, int workers, tg_tune_point *out);

/* Whether the numbers near the best are known as well as a tie asks for. */
static bool is_settled(const tg_worker_trials *t)
{
    const double best = best_rate(t);
    bool settled = true;
    for (size_t i = 0; i < t->count; i++) {
        tg_tune_point p;
        sum_up(t, t->candidates[i], &p);
        settled = settled && !(p.images_per_s >= HOPELESS * best && p.noise > TG_TUNE_TIE * best);
    }
    return settled;
}

static bool has_rounds(const tg_worker_trials *t)
{
    return t->round < TG_WORKERS_ROUNDS || (t->round < TG_WORKERS_MOST_ROUNDS && !is_settled(t));
}

bool tg_worker_trials_next(const tg_worker_trials *t, int *out_workers)
{
    if (!has_rounds(t) || is_spent(t))
        return false;
    *out_workers = candidate_at(t);
    return true;
}

/* Whether more workers than the last tried, on the way up, may help. */
static bool may_go_up(const tg_worker_trials *t)
{
    const tg_tune_point *last = &t->trials[t->trial_count - 1];
    const double best = best_rate(t);
    if (last->workers == 0 || t->trial_count < 2)
        return true;
    if (last->wait_share < NO_WAIT)
        return false;
    return last->images_per_s >= DECLINE * best || last[-1].images_per_s >= DECLINE * best;
}

static void go_on(tg_worker_trials *t)
{
    if (t->round == 0 && !may_go_up(t))
        t->count = t->at + 1;
    do {
        if (++t->at == t->count) {
            t->at = 0;
            t->round++;
        }
    } while (t->round > 1 && t->round < TG_WORKERS_MOST_ROUNDS &&
             rate_of(t, candidate_at(t)) < HOPELESS * best_rate(t));
}

void tg_worker_trials_add(tg_worker_trials *t, const tg_tune_point *trial, int64_t steps,
                          double seconds)
{
    t->steps += steps;
    t->seconds += seconds;
    t->trials[t->trial_count++] = *trial;
    go_on(t);
}

static void sum_up(const tg_worker_trials *t, int workers, tg_tune_point *out)
{
    double low = INFINITY, high = 0;
    *out = (tg_tune_point){.workers = workers};
    for (size_t i = 0; i < t->trial_count; i++) {
        const tg_tune_point *trial = &t->trials[i];
        if (trial->workers != workers)
            continue;
        out->step = out->trials++ ? out->step : trial->step;
        out->steps += trial->steps;
        out->images += trial->images;
        out->seconds += trial->seconds;
        low = fmin(low, trial->images_per_s);
        high = fmax(high, trial->images_per_s);
    }
    out->images_per_s = rate_of(t, workers);
    out->noise = fmax((high - low) / 2, TG_TUNE_NOISE * out->images_per_s);
    if (out->trials == 1)
        out->noise *= 3;
    double *const rest[] = {&out->wait_share,
                            &out->loader_images_per_s,
                            &out->voluntary_per_s,
                            &out->involuntary_per_s,
                            &out->compute_voluntary_per_s,
                            &out->compute_involuntary_per_s,
                            &out->run_queue,
                            &out->pressure};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        *rest[i] = middle(t, workers, (size_t)((char *)rest[i] - (char *)out));
}

static bool ties(const tg_tune_point *best, const tg_tune_point *p)
{
    const double noise = fmin(fmax(best->noise, p->noise), TG_TUNE_TIE * best->images_per_s);
    return best->images_per_s - p->images_per_s <= noise;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

static void give_reason(const tg_tune_point *best, const tg_tune_point *chosen,
                        const tg_tune_point *fewer, char out[TG_TUNE_WHY_BYTES])
{
    const double short_by = 100 * (1 - chosen->images_per_s / best->images_per_s);
    if (chosen != best)
        snprintf(out, TG_TUNE_WHY_BYTES,
                 "%d worker%s: the fewest within the noise of the best, %d worker%s, which give "
                 "%.1f %% more",
                 chosen->workers, plural(chosen->workers), best->workers, plural(best->workers),
                 short_by > 0 ? 100 * short_by / (100 - short_by) : 0);
    else if (fewer)
        snprintf(out, TG_TUNE_WHY_BYTES,
                 "%d worker%s: the fastest; %d give%s %.1f %% less, and wait%s for photos %.0f %% "
                 "of the time",
                 best->workers, plural(best->workers), fewer->workers,
                 fewer->workers == 1 ? "s" : "",
                 100 * (1 - fewer->images_per_s / best->images_per_s),
                 fewer->workers == 1 ? "s" : "", 100 * fewer->wait_share);
    else
        snprintf(out, TG_TUNE_WHY_BYTES, "%d workers: the fastest, and the fewest", best->workers);
}

void tg_worker_trials_decide(const tg_worker_trials *t, tg_tune_search_record *out)
{
    const tg_tune_point *best, *chosen;
    out->point_count = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!isnan(rate_of(t, t->candidates[i])))
            sum_up(t, t->candidates[i], &out->points[out->point_count++]);
    best = chosen = out->points;
    for (size_t i = 1; i < out->point_count; i++)
        if (out->points[i].images_per_s > best->images_per_s)
            best = &out->points[i];
    while (!ties(best, chosen))
        chosen++;
    memcpy(out->trials, t->trials, t->trial_count * sizeof *t->trials);
    out->trial_count = t->trial_count;
    out->steps = t->steps;
    out->seconds = t->seconds;
    out->best = best->workers;
    out->chosen = chosen->workers;
    const double a_step = (double)chosen->images / (double)chosen->steps / chosen->images_per_s;
    out->cost_s = fmax(0, t->seconds - (double)t->steps * a_step);
    give_reason(best, chosen, chosen > out->points ? chosen - 1 : NULL, out->why);
}

void tg_worker_watch_begin(tg_worker_watch *w, double base, int searches)
{
    *w = (tg_worker_watch){.base = isnan(base) ? 0 : base, .pause_s = FIRST_PAUSE_S};
    for (int i = 1; i < searches && i < PAUSES_DOUBLED; i++)
        w->pause_s *= 2;
}

bool tg_worker_watch_add(tg_worker_watch *w, double step_s, double wait_s)
{
    w->since_s += step_s;
    w->window_s += step_s;
    w->wait_s += wait_s;
    if (w->window_s < WINDOW_S)
        return false;
    const bool high = w->wait_s > (w->base + RISE) * w->window_s;
    w->high = high ? w->high + 1 : 0;
    w->window_s = w->wait_s = 0;
    return w->high >= WINDOWS_HIGH && w->since_s >= w->pause_s;
}
