#include "train/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct phase_row {
    const char *name, *what, *advice;
    size_t offset;
} phase_row;

#define COMPUTING "fewer or slower cores than the others', other work on them, or heat"
static const phase_row PHASES[TG_PHASE_COUNT] = {
    [TG_PHASE_DATA] =
        {"t_data", "waiting for its photos",
         "a slow disk or network folder, too few --workers, or other work on its cores",
         offsetof(tg_rank_step, t_data)},
    [TG_PHASE_TEACHER] = {"t_teacher", "the teacher's forward", COMPUTING,
                          offsetof(tg_rank_step, t_teacher)},
    [TG_PHASE_FORWARD] = {"t_forward", "forward", COMPUTING, offsetof(tg_rank_step, t_forward)},
    [TG_PHASE_BACKWARD] = {"t_backward", "backward", COMPUTING, offsetof(tg_rank_step, t_backward)},
    [TG_PHASE_OPTIMIZER] = {"t_optimizer", "the update", COMPUTING,
                            offsetof(tg_rank_step, t_optimizer)},
    [TG_PHASE_OTHER] =
        {"t_other", "outside the phases",
         "a process that is paused, memory that is short, or a slow disk under the log",
         offsetof(tg_rank_step, t_other)},
};

const char *tg_rank_phase_name(tg_rank_phase phase)
{
    return PHASES[phase].name;
}

static double phase_of(const tg_rank_step *s, size_t phase)
{
    return *(const double *)(const void *)((const char *)s + PHASES[phase].offset);
}

static double own_of(const tg_rank_step *s)
{
    return s->t_step - s->t_reduce;
}

tg_status tg_straggler_init(tg_straggler *s, size_t ranks)
{
    *s = (tg_straggler){.ranks = ranks, .found = {.rank = -1}, .rival = {.rank = -1}};
    s->window = calloc(ranks, sizeof *s->window);
    s->whole = calloc(ranks, sizeof *s->whole);
    s->scratch = calloc(ranks, sizeof *s->scratch);
    if (s->window && s->whole && s->scratch)
        return TG_OK;
    tg_straggler_done(s);
    return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu ranks", ranks);
}

void tg_straggler_done(tg_straggler *s)
{
    if (!s)
        return;
    free(s->window);
    free(s->whole);
    free(s->scratch);
    *s = (tg_straggler){0};
}

static void add(tg_rank_step *sums, const tg_rank_step *each, size_t ranks)
{
    for (size_t r = 0; r < ranks; r++) {
        sums[r].images += each[r].images;
        sums[r].t_step += each[r].t_step;
        sums[r].t_data += each[r].t_data;
        sums[r].t_teacher += each[r].t_teacher;
        sums[r].t_forward += each[r].t_forward;
        sums[r].t_backward += each[r].t_backward;
        sums[r].t_reduce += each[r].t_reduce;
        sums[r].t_optimizer += each[r].t_optimizer;
        sums[r].t_other += each[r].t_other;
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of scratch [count]. */
static double median(tg_straggler *s, size_t count)
{
    qsort(s->scratch, count, sizeof *s->scratch, compare);
    return 0.5 * (s->scratch[(count - 1) / 2] + s->scratch[count / 2]);
}

typedef double (*quantity)(const tg_rank_step *s, size_t which);

static double own_quantity(const tg_rank_step *s, size_t which)
{
    (void)which;
    return own_of(s);
}

static double images_quantity(const tg_rank_step *s, size_t which)
{
    (void)which;
    return (double)s->images;
}

/* Median over the ranks other than `rank`. */
static double of_others(tg_straggler *s, const tg_rank_step *sums, size_t rank, quantity q,
                        size_t which)
{
    size_t count = 0;
    for (size_t r = 0; r < s->ranks; r++)
        if (r != rank)
            s->scratch[count++] = q(&sums[r], which);
    return median(s, count);
}

static tg_straggler_finding look_at(tg_straggler *s, const tg_rank_step *sums, int64_t steps,
                                    size_t rank)
{
    const double n = (double)steps;
    tg_straggler_finding f = {
        .rank = (int)rank,
        .step_s = sums[rank].t_step / n,
        .own_s = own_of(&sums[rank]) / n,
        .others_s = of_others(s, sums, rank, own_quantity, 0) / n,
        .images = (double)sums[rank].images / n,
        .images_others = of_others(s, sums, rank, images_quantity, 0) / n,
    };
    double most = -INFINITY;
    for (size_t p = 0; p < TG_PHASE_COUNT; p++) {
        const double here = phase_of(&sums[rank], p) / n;
        const double others = of_others(s, sums, rank, phase_of, p) / n;
        if (here - others <= most)
            continue;
        most = here - others;
        f.phase = (tg_rank_phase)p;
        f.phase_s = here;
        f.phase_others_s = others;
    }
    return f;
}

static tg_straggler_finding find_slowest(tg_straggler *s, const tg_rank_step *sums, int64_t steps)
{
    size_t slowest = 0;
    if (steps == 0 || s->ranks < 2)
        return (tg_straggler_finding){.rank = -1};
    for (size_t r = 1; r < s->ranks; r++)
        if (own_of(&sums[r]) > own_of(&sums[slowest]))
            slowest = r;
    return look_at(s, sums, steps, slowest);
}

double tg_straggler_excess(const tg_straggler_finding *f)
{
    return f->step_s > 0 ? (f->own_s - f->others_s) / f->step_s : 0;
}

tg_straggler_finding tg_straggler_whole(tg_straggler *s)
{
    if (s->whole_steps < TG_STRAGGLER_WINDOWS * TG_STRAGGLER_STEPS ||
        s->whole[0].t_step < TG_STRAGGLER_WINDOWS * TG_STRAGGLER_SECONDS)
        return (tg_straggler_finding){.rank = -1};
    return find_slowest(s, s->whole, s->whole_steps);
}

/* Whether the last windows agree on something else than what stands. */
static bool insists(tg_straggler *s, const tg_straggler_finding *other)
{
    const bool same = s->rival_windows && other->rank == s->rival.rank &&
                      (s->found.rank != other->rank || other->phase == s->rival.phase);
    s->rival_windows = same ? s->rival_windows + 1 : 1;
    s->rival = *other;
    return s->rival_windows >= TG_STRAGGLER_WINDOWS;
}

static tg_straggler_event take(tg_straggler *s, const tg_straggler_finding *f,
                               tg_straggler_event event)
{
    s->found = *f;
    s->rival_windows = s->even_windows = 0;
    return event;
}

static double phase_excess(const tg_straggler_finding *f)
{
    return (f->phase_s - f->phase_others_s) / f->step_s;
}

/* The named rank's numbers in the phase that it was named for. */
static void keep_phase(tg_straggler *s, tg_straggler_finding *now)
{
    const double n = (double)s->window_steps;
    const size_t rank = (size_t)now->rank;
    now->phase = s->found.phase;
    now->phase_s = phase_of(&s->window[rank], now->phase) / n;
    now->phase_others_s = of_others(s, s->window, rank, phase_of, now->phase) / n;
}

static tg_straggler_event judge_named(tg_straggler *s, const tg_straggler_finding *slowest)
{
    tg_straggler_finding now = look_at(s, s->window, s->window_steps, (size_t)s->found.rank);
    const tg_straggler_finding leading = now;
    const double excess = tg_straggler_excess(&now);
    keep_phase(s, &now);
    const bool over = excess >= TG_STRAGGLER_END;
    const bool other_rank =
        slowest->rank != now.rank &&
        tg_straggler_excess(slowest) >= TG_STRAGGLER_BEGIN + (over ? excess : 0);
    const bool other_phase =
        over && phase_excess(&leading) >= phase_excess(&now) + TG_STRAGGLER_END;
    if ((other_rank || other_phase) && insists(s, other_rank ? slowest : &leading))
        return take(s, other_rank ? slowest : &leading, TG_STRAGGLER_CHANGED);
    if (!other_rank && !other_phase)
        s->rival_windows = 0;
    s->found = now;
    s->even_windows = over ? 0 : s->even_windows + 1;
    if (s->even_windows < TG_STRAGGLER_WINDOWS || other_rank)
        return TG_STRAGGLER_NOTHING;
    s->rival = now;
    return take(s, &(tg_straggler_finding){.rank = -1}, TG_STRAGGLER_CLEARED);
}

static tg_straggler_event judge(tg_straggler *s)
{
    const tg_straggler_finding slowest = find_slowest(s, s->window, s->window_steps);
    if (s->found.rank >= 0)
        return judge_named(s, &slowest);
    if (tg_straggler_excess(&slowest) < TG_STRAGGLER_BEGIN) {
        s->rival_windows = 0;
        return TG_STRAGGLER_NOTHING;
    }
    return insists(s, &slowest) ? take(s, &slowest, TG_STRAGGLER_BEGAN) : TG_STRAGGLER_NOTHING;
}

tg_straggler_event tg_straggler_add(tg_straggler *s, const tg_rank_step *each)
{
    if (!s->begun) {
        s->begun = true;
        return TG_STRAGGLER_NOTHING;
    }
    add(s->window, each, s->ranks);
    add(s->whole, each, s->ranks);
    s->window_steps++;
    s->whole_steps++;
    if (s->window_steps < TG_STRAGGLER_STEPS || s->window[0].t_step < TG_STRAGGLER_SECONDS)
        return TG_STRAGGLER_NOTHING;
    const tg_straggler_event event = judge(s);
    memset(s->window, 0, s->ranks * sizeof *s->window);
    s->window_steps = 0;
    return event;
}

/* Two digits behind the point tell 10 % apart from 0.05 s on; below, milliseconds do. */
void tg_straggler_print_seconds(double seconds, tg_text *out)
{
    if (seconds >= 0.0995)
        tg_text_append_format(out, "%.2f s", seconds);
    else
        tg_text_append_format(out, "%.1f ms", seconds * 1e3);
}

void tg_straggler_print(const tg_straggler_finding *f, const char *host, tg_text *out)
{
    const phase_row *phase = &PHASES[f->phase];
    tg_text_append_format(out, "rank %d on %s, ", f->rank, host);
    tg_straggler_print_seconds(f->own_s, out);
    tg_text_append_string(out, " of own work a step (median of the others ");
    tg_straggler_print_seconds(f->others_s, out);
    tg_text_append_format(out, "), most of the difference in %s (%s ", phase->what, phase->name);
    tg_straggler_print_seconds(f->phase_s, out);
    tg_text_append_string(out, ", the others ");
    tg_straggler_print_seconds(f->phase_others_s, out);
    if (f->images > 1.02 * f->images_others)
        tg_text_append_format(out,
                              "): it has %.1f photos a step, the others %.1f; a batch that divides "
                              "evenly among the ranks costs less",
                              f->images, f->images_others);
    else
        tg_text_append_format(out, "): usually %s", phase->advice);
}
