/* Questions to a run that goes. */
#include "report/live.h"

#include "base/median.h"
#include "os/file.h"
#include "os/lock_held.h"
#include "run/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A job whose lock cannot be seen from here (another machine holds it) writes a sample twice a second. */
#define SILENT_S 30.0
#define STANDS_OUT 0.05

static const char *const PHASE_NAMES[TG_LIVE_PHASES] = {
    "data", "teacher", "forward", "backward", "reduce", "optimizer", "other"};

const char *tg_live_phase_name(tg_live_phase phase)
{
    return PHASE_NAMES[phase];
}

void tg_live_step_phases(const tg_step_record *step, double out[TG_LIVE_PHASES])
{
    const double phases[TG_LIVE_PHASES] = {step->t_data,     step->t_teacher, step->t_forward,
                                           step->t_backward, step->t_reduce,  step->t_optimizer,
                                           step->t_other};
    memcpy(out, phases, sizeof phases);
}

const tg_step_record *tg_live_step_back(const tg_live *live, size_t i)
{
    if (i >= live->step_count || i >= TG_LIVE_STEPS)
        return NULL;
    return &live->steps[(live->step_count - 1 - i) % TG_LIVE_STEPS];
}

const tg_step_record *tg_live_last_step(const tg_live *live)
{
    return tg_live_step_back(live, 0);
}

double tg_live_info_number(const tg_live *live, const char *path)
{
    const tg_history lent = {.info = live->info.json};
    return tg_history_info_number(&lent, path);
}

const char *tg_live_info_text(const tg_live *live, const char *path)
{
    const tg_history lent = {.info = live->info.json};
    return tg_history_info_text(&lent, path);
}

/* Wall time at which a file of the run was changed last. */
static double changed_at(const tg_live *live, const char *name)
{
    struct stat st;
    char *path = tg_path_join(live->path, name);
    const bool there = path && stat(path, &st) == 0;
    free(path);
    return there ? (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec : NAN;
}

static double last_sign(const tg_live *live)
{
    double at = fmax(changed_at(live, "metrics.jsonl"), changed_at(live, "log/rank-0.log"));
    for (size_t i = 0; i < live->host_count; i++) {
        struct stat st;
        if (stat(live->hosts[i].tail.path, &st) == 0)
            at = fmax(at, (double)st.st_mtim.tv_sec);
    }
    return at;
}

tg_live_state tg_live_get_state(const tg_live *live)
{
    char *lock = tg_path_join(live->path, "lock");
    const bool held = lock && tg_lock_is_held(lock, "/proc/locks") == TG_LOCK_HELD;
    free(lock);
    if (tg_live_info_text(live, "end"))
        return TG_LIVE_ENDED;
    if (held || live->now - last_sign(live) < SILENT_S)
        return TG_LIVE_RUNS;
    return TG_LIVE_SILENT;
}

double tg_live_steps_planned(const tg_live *live)
{
    return tg_live_info_number(live, "plan.total_steps");
}

/* Wall seconds a step: of the attempt so far, evaluations and checkpoints in between with it, as far back as there are
 * records of time. */
static double pace(const tg_live *live)
{
    const tg_step_record *last = tg_live_last_step(live);
    double sum = 0;
    size_t n = 0;
    if (!last)
        return NAN;
    for (const tg_step_record *step; (step = tg_live_step_back(live, n)); n++) {
        if (step->step <= live->attempt_step)
            break;
        const double since = last->time - (step->time - step->t_step);
        sum += step->t_step;
        if (since > sum)
            sum = since;
    }
    return n ? sum / (double)n : NAN;
}

double tg_live_seconds_left(const tg_live *live)
{
    const tg_step_record *last = tg_live_last_step(live);
    if (!last)
        return NAN;
    return fmax(0, tg_live_steps_planned(live) - (double)last->step) * pace(live);
}

/* The part of [begin, end) in the last seconds before `now`. */
static double overlap(double begin, double end, double from, double to)
{
    return fmax(0, fmin(end, to) - fmax(begin, from));
}

static void add_spans(const tg_live *live, double from, double to, tg_live_ledger *out)
{
    const size_t kept = live->span_count < TG_LIVE_SPANS ? live->span_count : TG_LIVE_SPANS;
    for (size_t i = 0; i < kept; i++) {
        const tg_span *span = &live->spans[(live->span_count - 1 - i) % TG_LIVE_SPANS];
        const double seconds = overlap(span->time, span->time + span->seconds, from, to);
        if (isnan(span->time) || isnan(span->seconds))
            continue;
        if (span->kind == TG_SPAN_EVALUATION)
            out->evaluation += seconds;
        else if (span->kind == TG_SPAN_CHECKPOINT)
            out->checkpoint += seconds;
        else if (span->kind == TG_SPAN_START || span->kind == TG_SPAN_TUNE)
            out->start += seconds;
    }
}

/* A step that began before counts with the part that lies within. */
static void add_steps(const tg_live *live, double from, double to, tg_live_ledger *out,
                      double *out_images)
{
    double phases[TG_LIVE_PHASES], seconds = 0;
    const tg_step_record *step;
    for (size_t i = 0; (step = tg_live_step_back(live, i)) && step->time > from; i++) {
        const double share =
            overlap(step->time - step->t_step, step->time, from, to) / step->t_step;
        if (!(share > 0))
            continue;
        tg_live_step_phases(step, phases);
        for (int p = 0; p < TG_LIVE_PHASES; p++)
            out->phases[p] += share * phases[p];
        *out_images += share * (double)step->images;
        seconds += step->t_step;
        out->steps++;
    }
    out->step_s = out->steps ? seconds / (double)out->steps : NAN;
}

/* The end of what is known: now while it runs, else its last record. */
static double known_until(const tg_live *live)
{
    const tg_step_record *last = tg_live_last_step(live);
    double until = last ? last->time : NAN;
    for (size_t i = 0; i < live->span_count && i < TG_LIVE_SPANS; i++) {
        const tg_span *span = &live->spans[(live->span_count - 1 - i) % TG_LIVE_SPANS];
        until = fmax(until, span->time + (isnan(span->seconds) ? 0 : span->seconds));
    }
    return tg_live_get_state(live) == TG_LIVE_RUNS ? live->now : until;
}

void tg_live_get_ledger(const tg_live *live, double seconds, tg_live_ledger *out)
{
    const double to = known_until(live);
    double images = 0, sum = 0;
    *out = (tg_live_ledger){.step_s = NAN, .images_per_s = NAN};
    const tg_step_record *first = tg_live_step_back(
        live, live->step_count < TG_LIVE_STEPS ? live->step_count - 1 : TG_LIVE_STEPS - 1);
    double begin = first ? first->time - first->t_step : NAN; /* older ones are not known */
    if (live->step_count <= TG_LIVE_STEPS)
        begin = fmin(begin, live->attempt_begin);
    if (isnan(to) || isnan(begin) || !(to > begin))
        return;
    out->seconds = fmin(seconds, to - begin);
    add_steps(live, to - out->seconds, to, out, &images);
    add_spans(live, to - out->seconds, to, out);
    for (int p = 0; p < TG_LIVE_PHASES; p++)
        sum += out->phases[p];
    sum += out->evaluation + out->checkpoint + out->start;
    out->rest = fmax(0, out->seconds - sum);
    const double whole = fmax(out->seconds, sum);
    for (int p = 0; p < TG_LIVE_PHASES; p++)
        out->phases[p] /= whole;
    out->evaluation /= whole;
    out->checkpoint /= whole;
    out->start /= whole;
    out->rest /= whole;
    out->images_per_s = images / out->seconds;
}

/* Median of `what` of each rank but one. */
static double median_of_others(const double *each, size_t count, size_t but, double *scratch)
{
    size_t n = 0;
    for (size_t r = 0; r < count; r++)
        if (r != but)
            scratch[n++] = each[r];
    return tg_median(scratch, n);
}

static tg_live_phase worst_phase(const tg_live *live, size_t rank, double *each, double *scratch)
{
    tg_live_phase worst = TG_LIVE_OTHER;
    double most = -INFINITY;
    for (int p = 0; p < TG_LIVE_PHASES; p++) {
        if (p == TG_LIVE_REDUCE)
            continue;
        for (size_t r = 0; r < live->rank_count; r++)
            each[r] = live->ranks[r].phases[p];
        const double excess = each[rank] - median_of_others(each, live->rank_count, rank, scratch);
        if (excess > most) {
            most = excess;
            worst = (tg_live_phase)p;
        }
    }
    return worst;
}

int tg_live_slowest(const tg_live *live, tg_live_phase *out_phase, double *out_share)
{
    const size_t ranks = live->rank_count;
    int slowest = -1;
    if (ranks < 2 || !live->rank_rows)
        return -1;
    double *each = calloc(2 * ranks, sizeof *each), *scratch = each + ranks;
    if (!each)
        return -1;
    size_t most = 0;
    for (size_t r = 0; r < ranks; r++) {
        each[r] = live->ranks[r].t_step - live->ranks[r].phases[TG_LIVE_REDUCE];
        most = each[r] > each[most] ? r : most;
    }
    const double share =
        (each[most] - median_of_others(each, ranks, most, scratch)) / live->ranks[most].t_step;
    if (share >= STANDS_OUT) {
        slowest = (int)most;
        *out_share = share;
        *out_phase = worst_phase(live, most, each, scratch);
    }
    free(each);
    return slowest;
}
