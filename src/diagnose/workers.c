/* The loader's threads against the cores: LoaderOversubscription, LoaderStarvation. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>
#include <stddef.h>

enum { WORKERS_PER_CORE, CORE_WAIT, GAIN };

static const tg_rule_limit OVERSUBSCRIPTION_LIMITS[] = {
    {"workers_per_core", 1, 0.1, 1e4,
     "loader threads for each core of the rank, more than which are looked at"},
    {"core_wait", 5, 0, 100,
     "percent of the time that compute threads wait for a core, from which it is harm"},
    {"gain", 3, 0, 100, "percent of the step that fewer of them must be predicted to bring"},
};

static double role_mean(const tg_use_rank *use, tg_system_role role, tg_system_of_role of)
{
    return tg_use_mean(use->host, use->steps.begin, use->steps.end, TG_SYSTEM_ROLE(role, of));
}

static void add_oversubscription_evidence(const tg_history *history, const tg_use_rank *use,
                                          tg_finding *f)
{
    const tg_use_steps *steps = &use->steps;
    tg_finding_add_evidence(f, "threads of the machine that run or wait for a core",
                            tg_use_mean(use->host, steps->begin, steps->end, TG_SYSTEM_RUNNING),
                            "threads");
    tg_finding_add_evidence(f, "time that a compute thread waits for a core",
                            100 * use->compute_wait, "%");
    tg_finding_add_evidence(f, "compute threads pushed aside",
                            role_mean(use, TG_ROLE_COMPUTE, TG_SYSTEM_INVOLUNTARY), "1/s");
    tg_finding_add_evidence(f, "cores that loaders take",
                            role_mean(use, TG_ROLE_LOADER, TG_SYSTEM_CPU), "cores");
    tg_finding_add_evidence(f, "loaders' time of a core, a photo",
                            use->loader_core_s / steps->images, "s");
    tg_finding_add_evidence(f, "longest tenth of t_backward over its shortest",
                            tg_common_swing(history, steps, offsetof(tg_step_record, t_backward)),
                            "times");
    tg_finding_add_evidence(f, "t_data, which looks as if all were well", steps->data_s, "s");
    tg_finding_add_evidence(f, "cores of the rank", use->cores, "cores");
}

static tg_status report_oversubscription(const tg_history *history, const tg_use_rank *use,
                                         double workers, double step_s, tg_findings *out)
{
    char wait[TG_COMMON_SECONDS];
    tg_finding *f = tg_findings_add(out, "LoaderOversubscription", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(
        f->title,
        "%.0f loader threads on %.4g cores: compute threads wait %.0f %% of the time for a "
        "core",
        use->workers, use->cores, 100 * use->compute_wait);
    TG_FINDING_SAY(f->cause,
                   "loaders that run all at once take the cores from the threads that compute; "
                   "batches are ready "
                   "(%s of waiting a step), so the harm is in forward and backward. Photos need "
                   "%.3g of a core; "
                   "%.0f threads for it bring switches, not photos",
                   tg_common_seconds(use->steps.data_s, wait), use->loader_core_s / step_s,
                   use->workers);
    tg_common_mark(f, &use->steps);
    add_oversubscription_evidence(history, use, f);
    tg_finding_set_number(f, "workers", use->workers, workers);
    tg_finding_predict(f, use->steps.step_s, step_s, 0.6);
    return TG_OK;
}

static tg_status check_oversubscription(const tg_history *history, const double *limits,
                                        tg_findings *out, const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(history);
    if (!use.steps.steps || isnan(use.loader_core_s) || isnan(use.compute_wait)) {
        *lack = use.steps.steps ? TG_LACKS_ROLES : TG_LACKS_STEPS;
        return TG_END;
    }
    if (!(use.workers > limits[WORKERS_PER_CORE] * use.cores) ||
        !(use.compute_wait >= limits[CORE_WAIT] / 100))
        return TG_OK;
    const double workers = tg_use_best_workers(&use), step_s = tg_use_predict(&use, workers);
    if (workers < 1 || workers >= use.workers ||
        !(step_s <= (1 - limits[GAIN] / 100) * use.steps.step_s))
        return TG_OK;
    return report_oversubscription(history, &use, workers, step_s, out);
}

const tg_rule tg_rule_loader_oversubscription = {
    .name = "LoaderOversubscription",
    .asks = "whether loader threads take the cores of the threads that compute",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = OVERSUBSCRIPTION_LIMITS,
    .limit_count = sizeof OVERSUBSCRIPTION_LIMITS / sizeof *OVERSUBSCRIPTION_LIMITS,
    .check = check_oversubscription,
};

enum { WAIT_SHARE, LOADER_BUSY, FREE_CORES };

static const tg_rule_limit STARVATION_LIMITS[] = {
    {"data_share", 5, 0, 100, "percent of the step spent waiting for photos"},
    {"loader_busy", 70, 0, 100, "percent of the time that loader threads must compute for it"},
    {"free_cores", 0.25, 0, 1e4, "cores that must be idle"},
};

/* Cores of the machine that nobody uses, as long as these steps ran. */
static double free_cores(const tg_use_rank *use)
{
    tg_use_spread busy;
    if (!use->host ||
        tg_use_spread_of(use->host, use->steps.begin, use->steps.end, tg_use_cpu, NULL, &busy) < 0)
        return NAN;
    return (1 - busy.mean) * (double)use->host->core_count;
}

static tg_status report_starvation(const tg_use_rank *use, double idle, double workers,
                                   double step_s, tg_findings *out)
{
    const tg_use_steps *steps = &use->steps;
    tg_finding *f = tg_findings_add(out, "LoaderStarvation", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f %% of the step waits for photos, while %.2g cores are idle",
                   100 * steps->data_s / steps->step_s, idle);
    if (use->workers > 0)
        TG_FINDING_SAY(f->cause,
                       "%.0f loader thread%s work without a pause and cannot make more than %.0f "
                       "photos a second; disks are not what they wait for",
                       use->workers, use->workers == 1 ? "" : "s", steps->images / steps->step_s);
    else
        TG_FINDING_SAY(f->cause,
                       "without loader threads the thread that computes makes the photos, "
                       "one after the other, and the other cores wait for it");
    tg_common_mark(f, steps);
    tg_finding_add_evidence(f, "waiting for photos, a step", steps->data_s, "s");
    tg_finding_add_evidence(f, "cores that are idle", idle, "cores");
    tg_finding_add_evidence(f, "time that a loader thread computes", 100 * use->loader_busy, "%");
    tg_finding_add_evidence(f, "loaders' time of a core, a photo",
                            use->loader_core_s / steps->images, "s");
    tg_finding_add_evidence(f, "cores of the rank", use->cores, "cores");
    tg_finding_set_number(f, "workers", use->workers, workers);
    tg_finding_predict(f, steps->step_s, step_s, 0.6);
    return TG_OK;
}

static tg_status check_starvation(const tg_history *history, const double *limits, tg_findings *out,
                                  const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(history);
    const double idle = free_cores(&use);
    if (!use.steps.steps || isnan(use.loader_core_s) || isnan(idle)) {
        *lack = use.steps.steps ? TG_LACKS_ROLES : TG_LACKS_STEPS;
        return TG_END;
    }
    if (use.steps.data_s < limits[WAIT_SHARE] / 100 * use.steps.step_s || idle < limits[FREE_CORES])
        return TG_OK;
    if (use.workers > 0 && !(use.loader_busy >= limits[LOADER_BUSY] / 100))
        return TG_OK; /* loaders wait, too: for a disk, or for a core */
    const double workers = tg_use_best_workers(&use), step_s = tg_use_predict(&use, workers);
    if (!(workers > use.workers) || !(step_s < 0.98 * use.steps.step_s))
        return TG_OK;
    return report_starvation(&use, idle, workers, step_s, out);
}

const tg_rule tg_rule_loader_starvation = {
    .name = "LoaderStarvation",
    .asks = "whether too few loader threads keep the step waiting while cores are idle",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = STARVATION_LIMITS,
    .limit_count = sizeof STARVATION_LIMITS / sizeof *STARVATION_LIMITS,
    .check = check_starvation,
};
