/* WrongAffinity: threads on fewer cores than they need, or than there are. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_WAIT, IDLE_CORES };

static const tg_rule_limit LIMITS[] = {
    {"threads_wait", 0.5, 0, 1e4, "compute threads that wait for a core, while others are idle"},
    {"idle_cores", 0.5, 0, 1e4, "cores of the machine that are idle meanwhile"},
};

/* What a second thread brings on another core, as measured on two cores (docs/PERFORMANCE.md). */
#define PARALLEL_SHARE 0.95

typedef struct placing {
    tg_use_rank use;
    double mask;            /* cores that the first rank may run on; NaN: not known */
    double idle;            /* cores of the machine */
    double busiest, idlest; /* shares of a core */
    double waiting;         /* compute threads that wait for a core */
    double quota;           /* INFINITY: none */
} placing;

/* Of one core, over the time of the steps. */
static double core_busy(const tg_use_rank *use, size_t core)
{
    double sum = 0, seconds = 0;
    for (size_t i = 0; i < use->host->sample_count; i++) {
        const tg_system_sample *s = &use->host->samples[i];
        const double busy = (double)tg_system_core_busy(&s->cores[core]);
        if (isnan(busy) || s->time < use->steps.begin || s->time > use->steps.end)
            continue;
        sum += busy * s->seconds;
        seconds += s->seconds;
    }
    return seconds > 0 ? sum / seconds : NAN;
}

static void look_at_cores(placing *p)
{
    p->idle = 0;
    p->busiest = 0;
    p->idlest = 1;
    for (size_t c = 0; c < p->use.host->core_count; c++) {
        const double busy = core_busy(&p->use, c);
        if (isnan(busy))
            continue;
        p->idle += 1 - busy;
        p->busiest = fmax(p->busiest, busy);
        p->idlest = fmin(p->idlest, busy);
    }
}

/* Cores of the mask: of the machine's affinity, or what a launcher left to the first rank. */
static double mask_of(const tg_history *history, const tg_use_rank *use)
{
    const double cpus = tg_history_info_number(history, "machine.cpus");
    return use->ranks_here > 1 ? fmin(cpus, use->cores) : cpus;
}

static tg_status look(const tg_history *history, placing *p, const char **lack)
{
    *p = (placing){.use = tg_use_of_rank(history)};
    const tg_use_steps *s = &p->use.steps;
    if (!s->steps || !p->use.host || isnan(p->use.compute_wait)) {
        *lack = s->steps ? TG_LACKS_ROLES : TG_LACKS_STEPS;
        return TG_END;
    }
    p->mask = mask_of(history, &p->use);
    p->waiting = p->use.compute_wait * p->use.threads;
    p->quota = tg_use_mean(p->use.host, s->begin, s->end, TG_SYSTEM_GROUP_QUOTA_CORES);
    if (isnan(p->quota))
        p->quota = INFINITY;
    look_at_cores(p);
    return TG_OK;
}

static tg_finding *begin_finding(const placing *p, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "WrongAffinity", TG_SEVERITY_WARNING);
    if (!f)
        return NULL;
    tg_common_mark(f, &p->use.steps);
    tg_finding_add_evidence(f, "compute threads of a rank", p->use.threads, "threads");
    tg_finding_add_evidence(f, "cores that the first rank may use", p->mask, "cores");
    tg_finding_add_evidence(f, "cores of the machine", (double)p->use.host->core_count, "cores");
    tg_finding_add_evidence(f, "compute threads that wait for a core", p->waiting, "threads");
    tg_finding_add_evidence(f, "the busiest core", 100 * p->busiest, "%");
    tg_finding_add_evidence(f, "the idlest core", 100 * p->idlest, "%");
    tg_finding_add_evidence(f, "cores of the machine that are idle", p->idle, "cores");
    return f;
}

/* The step when compute goes from `from` threads on cores of their own to `to`. */
static double step_with(const placing *p, double from, double to)
{
    const tg_use_steps *s = &p->use.steps;
    const double compute = tg_common_compute(s) + s->optimizer_s;
    return s->step_s - compute * PARALLEL_SHARE * (1 - from / to);
}

/* More threads than cores: each step waits for the thread that has none. */
static tg_status report_too_many(const placing *p, tg_findings *out)
{
    tg_finding *f = begin_finding(p, out);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f compute threads share %.0f core%s, while %.2g are idle",
                   p->use.threads, p->mask, p->mask == 1 ? "" : "s", p->idle);
    TG_FINDING_SAY(f->cause,
                   "the affinity mask that the job was started with (taskset, a launcher's "
                   "binding, a cpuset) has fewer cores than --threads asks for");
    TG_FINDING_SAY(f->advice,
                   "Start it with %.0f cores (mpirun --bind-to none or --map-by "
                   "slot:PE=%.0f, taskset -c, srun --cpus-per-task)",
                   p->use.threads, p->use.threads);
    const double to = fmin(p->use.threads, p->mask + floor(p->idle + 0.5));
    tg_finding_predict(f, p->use.steps.step_s, step_with(p, p->mask, to), 0.6);
    return TG_OK;
}

/* As many threads as cores, of a machine that has more. */
static tg_status report_too_few(const placing *p, tg_findings *out)
{
    tg_finding *f = begin_finding(p, out);
    if (!f)
        return TG_ERROR_MACHINE;
    const double more = floor((p->idle + 0.5) / p->use.ranks_here);
    const double to = p->use.threads + more;
    TG_FINDING_SAY(f->title, "the job may use %.0f of %zu cores, and %.2g are idle",
                   p->mask * p->use.ranks_here, p->use.host->core_count, p->idle);
    TG_FINDING_SAY(f->cause,
                   "it was started with an affinity mask (taskset, a cpuset, or a launcher's "
                   "binding: Open MPI binds one or two ranks to a core each)");
    TG_FINDING_SAY(f->advice,
                   "Start each rank on %.0f cores (mpirun --bind-to none or --map-by "
                   "slot:PE=%.0f, taskset -c, srun --cpus-per-task)",
                   to, to);
    tg_finding_set_number(f, "threads", p->use.threads, to);
    tg_finding_predict(f, p->use.steps.step_s, step_with(p, p->use.threads, to), 0.6);
    return TG_OK;
}

/* The mask would do, and yet threads wait where cores are idle. */
static tg_status report_crowded(const placing *p, tg_findings *out)
{
    tg_finding *f = begin_finding(p, out);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.2g compute threads wait for a core, while %.2g cores are idle",
                   p->waiting, p->idle);
    TG_FINDING_SAY(f->cause,
                   "threads were bound to the same core after the job began, or by the "
                   "environment (OMP_PROC_BIND, OMP_PLACES, KMP_AFFINITY, GOMP_CPU_AFFINITY)");
    TG_FINDING_SAY(f->advice, "Start without these variables; taskset -acp PID shows where the "
                              "threads are bound");
    const double to = fmin(p->use.threads, p->use.threads - p->waiting + p->idle);
    tg_finding_predict(f, p->use.steps.step_s, step_with(p, p->use.threads - p->waiting, to), 0.5);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    placing p;
    const tg_status status = look(history, &p, lack);
    if (status != TG_OK)
        return status;
    if (p.idle < limits[IDLE_CORES] || p.quota < (double)p.use.host->core_count)
        return TG_OK;
    const bool waits = p.waiting >= limits[THREADS_WAIT];
    if (waits && p.use.threads > p.mask)
        return report_too_many(&p, out);
    if (waits)
        return report_crowded(&p, out);
    const bool masked = p.mask * p.use.ranks_here < (double)p.use.host->core_count;
    const bool takes = p.use.threads >= p.mask; /* --threads does not ask for fewer */
    return masked && takes && p.idle >= p.use.ranks_here - 0.5 ? report_too_few(&p, out) : TG_OK;
}

const tg_rule tg_rule_wrong_affinity = {
    .name = "WrongAffinity",
    .asks = "whether threads are bound to fewer cores than they need, or than there are",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
