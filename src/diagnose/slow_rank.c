/* Straggler: the rank that all others wait for, over the whole run, and what its machine was doing.
 *
 * As of train/straggler.h, a rank's own work is its step without what it waited for others. Here medians over the steps
 * take the place of windows: hiccups do not count, what goes on does. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include "base/median.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EXCESS, STEPS };

static const tg_rule_limit LIMITS[] = {
    {"excess", 10, 0, 100, "percent of the step by which a rank's own work exceeds the others'"},
    {"steps", 20, 2, 1e9, "steps of all ranks that are needed"},
};

static const struct {
    const char *name, *what;
    size_t offset;
} PHASES[] = {
    {"t_data", "waiting for photos", offsetof(tg_rank_step, t_data)},
    {"t_teacher", "the teacher", offsetof(tg_rank_step, t_teacher)},
    {"t_forward", "forward", offsetof(tg_rank_step, t_forward)},
    {"t_backward", "backward", offsetof(tg_rank_step, t_backward)},
    {"t_optimizer", "the update", offsetof(tg_rank_step, t_optimizer)},
    {"t_other", "the rest", offsetof(tg_rank_step, t_other)},
};

enum { PHASE_COUNT = sizeof PHASES / sizeof *PHASES, OWN = PHASE_COUNT, IMAGES, COLUMNS };

typedef struct straggler {
    size_t ranks, rows;
    double *medians; /* [ranks][COLUMNS], of the steps */
    int slowest;
    double own, others, excess_s; /* seconds a step */
    size_t phase;
    double images, images_others;
} straggler;

static double column(const tg_rank_step *s, size_t which)
{
    if (which == OWN)
        return s->t_step - s->t_reduce;
    if (which == IMAGES)
        return (double)s->images;
    return *(const double *)(const void *)((const char *)s + PHASES[which].offset);
}

/* Of the steps with so many ranks, without the first. */
static double median_of(const tg_history *h, size_t ranks, size_t rank, size_t which,
                        double *scratch, size_t *out_rows)
{
    size_t n = 0;
    for (size_t i = 1; i < h->rank_row_count; i++)
        if (h->rank_rows[i].ranks == ranks)
            scratch[n++] = column(&h->rank_rows[i].each[rank], which);
    *out_rows = n;
    return n ? tg_median(scratch, n) : NAN;
}

static double of_others(const straggler *s, size_t which, double *scratch)
{
    size_t n = 0;
    for (size_t r = 0; r < s->ranks; r++)
        if ((int)r != s->slowest)
            scratch[n++] = s->medians[r * COLUMNS + which];
    return tg_median(scratch, n);
}

static void find_phase(straggler *s, double *scratch)
{
    double most = -INFINITY;
    for (size_t p = 0; p < PHASE_COUNT; p++) {
        const double more = s->medians[(size_t)s->slowest * COLUMNS + p] - of_others(s, p, scratch);
        if (more > most) {
            most = more;
            s->phase = p;
        }
    }
}

static void find_slowest(const tg_history *h, straggler *s, double *scratch)
{
    for (size_t r = 0; r < s->ranks; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            s->medians[r * COLUMNS + c] = median_of(h, s->ranks, r, c, scratch, &s->rows);
    for (size_t r = 1; r < s->ranks; r++)
        if (s->medians[r * COLUMNS + OWN] > s->medians[(size_t)s->slowest * COLUMNS + OWN])
            s->slowest = (int)r;
    s->own = s->medians[(size_t)s->slowest * COLUMNS + OWN];
    s->others = of_others(s, OWN, scratch);
    s->excess_s = s->own - s->others;
    s->images = s->medians[(size_t)s->slowest * COLUMNS + IMAGES];
    s->images_others = of_others(s, IMAGES, scratch);
    find_phase(s, scratch);
}

static tg_status measure(const tg_history *h, straggler *s)
{
    *s = (straggler){.ranks = h->rank_rows[h->rank_row_count - 1].ranks};
    double *scratch = malloc((h->rank_row_count + s->ranks) * sizeof *scratch);
    s->medians = calloc(s->ranks * COLUMNS, sizeof *s->medians);
    if (!scratch || !s->medians) {
        free(scratch);
        free(s->medians);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu ranks", s->ranks);
    }
    if (s->ranks >= 2)
        find_slowest(h, s, scratch);
    free(scratch);
    free(s->medians);
    s->medians = NULL;
    return TG_OK;
}

static double others_on(const tg_system_host *host, const tg_use_steps *steps)
{
    tg_use_spread busy;
    if (tg_use_spread_of(host, steps->begin, steps->end, tg_use_cpu, NULL, &busy) < 0)
        return NAN;
    double cores = busy.mean * (double)host->core_count;
    for (int role = 0; role < TG_ROLES; role++)
        cores -= tg_use_mean(host, steps->begin, steps->end, TG_SYSTEM_ROLE(role, TG_SYSTEM_CPU));
    return cores;
}

static double mean_steal(const tg_system_host *host, const tg_use_steps *steps)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < host->sample_count; i++)
        for (size_t c = 0; c < host->core_count; c++) {
            const double steal = (double)host->samples[i].cores[c].steal;
            const bool within =
                !(host->samples[i].time < steps->begin || host->samples[i].time > steps->end);
            sum += within && !isnan(steal) ? steal : 0;
            n += within && !isnan(steal);
        }
    return n ? sum / (double)n : NAN;
}

/* What that rank's machine says of it, likeliest first. */
static void explain(const straggler *s, const tg_system_host *host, const tg_use_steps *steps,
                    tg_finding *f)
{
    const double throttled =
        host ? tg_use_mean(host, steps->begin, steps->end, TG_SYSTEM_GROUP_THROTTLED) : NAN;
    const double others = host ? others_on(host, steps) : NAN;
    const double steal = host ? mean_steal(host, steps) : NAN;
    const double io =
        host ? tg_use_mean(host, steps->begin, steps->end, TG_SYSTEM_PRESSURE_IO) : NAN;
    tg_finding_add_evidence(f, "periods of its quota that were used up", 100 * throttled, "%");
    tg_finding_add_evidence(f, "cores of its machine that other programs take", others, "cores");
    if (s->images > 1.02 * s->images_others) {
        TG_FINDING_SAY(f->cause, "it has %.4g photos a step, the others %.4g", s->images,
                       s->images_others);
        TG_FINDING_SAY(f->advice, "A batch that divides evenly among the ranks costs less");
    } else if (s->phase == 0 && io >= 0.1) {
        TG_FINDING_SAY(f->cause,
                       "its loader waits for a disk: something waits for one %.0f %% of the time",
                       100 * io);
        TG_FINDING_SAY(f->advice, "Look at that machine's disk or network folder");
    } else if (throttled >= 0.1) {
        TG_FINDING_SAY(f->cause, "its CPU quota is used up in %.0f %% of the periods",
                       100 * throttled);
        TG_FINDING_SAY(f->advice, "Give it the cores that its threads are for");
    } else if (steal >= 0.05) {
        TG_FINDING_SAY(f->cause, "its cores are taken by other guests %.0f %% of the time (steal)",
                       100 * steal);
        TG_FINDING_SAY(f->advice, "Move that rank to another machine");
    } else if (others >= 0.25) {
        TG_FINDING_SAY(f->cause, "other programs take %.2g cores of its machine", others);
        TG_FINDING_SAY(f->advice, "End or move them, or give them cores of their own");
    } else {
        TG_FINDING_SAY(f->cause, "the records do not say why%s",
                       host
                           ? "; its cores may be slower, or hotter, or it may be paused by somebody"
                           : ": there are none of its machine");
        TG_FINDING_SAY(f->advice, "Compare that machine with the others, or leave it out");
    }
}

static tg_status report(const tg_history *history, const straggler *s, const tg_use_steps *steps,
                        tg_findings *out)
{
    char own[TG_COMMON_SECONDS], others[TG_COMMON_SECONDS];
    const tg_system_host *host = tg_common_host_of_rank(history, s->slowest);
    tg_finding *f = tg_findings_add(out, "Straggler", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(
        f->title,
        "all ranks wait for rank %d: %s of own work a step, the others %s, most of it in %s",
        s->slowest, tg_common_seconds(s->own, own), tg_common_seconds(s->others, others),
        PHASES[s->phase].what);
    tg_common_mark(f, steps);
    f->rank = s->slowest;
    if (host)
        TG_FINDING_SAY(f->host, "%s", host->host);
    tg_finding_add_evidence(f, "own work of the rank, a step", s->own, "s");
    tg_finding_add_evidence(f, "own work of the others, a step", s->others, "s");
    tg_finding_add_evidence(f, "photos of the rank, a step", s->images, "photos");
    tg_finding_add_evidence(f, "photos of the others, a step", s->images_others, "photos");
    explain(s, host, steps, f);
    tg_finding_predict(f, steps->step_s, steps->step_s - s->excess_s, 0.6);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    const tg_use_steps steps = tg_use_of_steps(history);
    straggler s = {0};
    if (history->rank_row_count)
        TG_TRY(measure(history, &s));
    if (!steps.steps || s.ranks < 2 || (double)s.rows < limits[STEPS]) {
        *lack = "20 steps of several ranks (ranks.jsonl)";
        return TG_END;
    }
    return s.excess_s >= limits[EXCESS] / 100 * steps.median_s ? report(history, &s, &steps, out)
                                                               : TG_OK;
}

const tg_rule tg_rule_straggler = {
    .name = "Straggler",
    .asks = "which rank all others wait for, and why",
    .needs = TG_INPUT_STEPS | TG_INPUT_RANKS,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
