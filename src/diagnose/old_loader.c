/* CPUBottleneck and Dataloader, of the withdrawn tool, told apart by who has the cores and who waits.
 *
 * On both the old tool's advice could be the harm: it said "add loaders" where loaders were what kept the cores from those
 * that compute. Here both take the number of loader threads from the one model (use.h), so they cannot disagree. */
#include "diagnose/rules.h"
#include "diagnose/use.h"

#include <math.h>

#define READY                                                                                      \
    0.05 /* share of the step spent on waiting for photos up to which batches were ready */

static const char *const MEASURED[] = {"LoaderOversubscription", "LoaderStarvation",
                                       "CgroupThrottling", "OtherJobs", NULL};

enum { CPU, DEVICE, COMPUTE, SHARE };

static const tg_rule_limit BOTTLENECK_LIMITS[] = {
    {"cpu_threshold", 90, 1, 100, "percent of all cores that is busy"},
    {"gpu_threshold", 10, 0, 100, "percent of accelerators below which they starve"},
    {"compute_threshold", 70, 0, 100, "the same of the compute threads' cores, without any"},
    {"threshold", 50, 0, 100, "percent of the time in which both are so"},
};

/* user: [2] shares, of the cores and of the device */
static int is_starved(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    const double *limits = user;
    const double cpu = tg_use_cpu(host, sample, NULL), device = tg_use_device(host, sample, NULL);
    if (isnan(cpu) || isnan(device))
        return -1;
    return cpu > limits[0] && device < limits[1];
}

/* The machine that starves most; its share of the time in *out; NaN: of none is it known. */
static const tg_system_host *most_starved(const tg_history *h, const tg_use_steps *steps,
                                          const double *limits, double *out)
{
    const tg_system_host *worst = NULL;
    *out = NAN;
    for (size_t i = 0; i < h->host_count; i++) {
        const double device = limits[h->hosts[i].device_count ? DEVICE : COMPUTE];
        const double user[2] = {limits[CPU] / 100, device / 100};
        const double share = tg_use_share(&h->hosts[i], steps->begin, steps->end, is_starved, user);
        if (isnan(share) || share <= *out)
            continue;
        *out = share;
        worst = &h->hosts[i];
    }
    return worst;
}

static double role_cpu(const tg_system_host *host, const tg_use_steps *steps, tg_system_role role)
{
    return tg_use_mean(host, steps->begin, steps->end, TG_SYSTEM_ROLE(role, TG_SYSTEM_CPU));
}

/* Cores that other programs of the machine take; NaN: not known. */
static double others_cpu(const tg_system_host *host, const tg_use_steps *steps)
{
    tg_use_spread busy;
    if (tg_use_spread_of(host, steps->begin, steps->end, tg_use_cpu, NULL, &busy) < 0)
        return NAN;
    double others = busy.mean * (double)host->core_count;
    for (int role = 0; role < TG_ROLES; role++) {
        const double cpu = role_cpu(host, steps, (tg_system_role)role);
        others -= isnan(cpu) ? 0 : cpu;
    }
    return others < 0 ? 0 : others;
}

/* Sets the number of loader threads that the model holds best, when it is another one and a gain. */
static void set_workers(tg_finding *f, const tg_use_rank *use, double confidence)
{
    const double best = tg_use_best_workers(use);
    if (!(best >= 1) || best == use->workers)
        return;
    const double predicted = tg_use_predict(use, best);
    if (!(predicted < use->steps.step_s))
        return;
    tg_finding_set_number(f, "workers", use->workers, best);
    tg_finding_predict(f, use->steps.step_s, predicted, confidence);
}

static void explain_bottleneck(tg_finding *f, const tg_use_rank *use, double loader, double others)
{
    const double wait = use->steps.data_s / use->steps.step_s;
    if (others > loader) {
        TG_FINDING_SAY(f->cause,
                       "other programs on this machine take %.1f of its cores, more than the "
                       "loader threads with %.1f",
                       others, loader);
        TG_FINDING_SAY(f->advice, "Move them away, or give the job fewer --threads than cores");
        tg_finding_predict(f, use->steps.step_s, use->compute_s, 0.5);
    } else if (wait < READY) {
        TG_FINDING_SAY(f->cause,
                       "batches were ready (%.1f %% of the step waits for photos), but %.0f loader "
                       "threads take %.1f cores from the threads that compute: fewer, not more",
                       100 * wait, use->workers, loader);
        set_workers(f, use, 0.6);
    } else {
        TG_FINDING_SAY(f->cause,
                       "making the photos needs %.2g core seconds a step, on the same %.0f cores "
                       "that compute",
                       use->loader_core_s, use->cores);
        set_workers(f, use, 0.6);
        TG_FINDING_SAY(f->advice, "Store the photos smaller, near the size that --img-size needs: "
                                  "decoding is what takes the cores");
    }
}

static tg_status check_bottleneck(const tg_history *history, const double *limits, tg_findings *out,
                                  const char **lack)
{
    double share;
    const tg_use_rank use = tg_use_of_rank(history);
    const tg_system_host *host = most_starved(history, &use.steps, limits, &share);
    if (!host) {
        *lack = "enough samples of cores and of what computes (system/)";
        return TG_END;
    }
    if (100 * share <= limits[SHARE] || !use.steps.steps)
        return TG_OK;
    tg_finding *f = tg_findings_add(out, "CPUBottleneck", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    const double loader = role_cpu(host, &use.steps, TG_ROLE_LOADER);
    TG_FINDING_SAY(f->title, "All cores are busy and %s starve, in %.0f %% of the time",
                   tg_use_device_name(history), 100 * share);
    TG_FINDING_SAY(f->host, "%s", host->host);
    f->begin = use.steps.begin;
    f->end = use.steps.end;
    tg_finding_add_evidence(f, "time in which both are so", share, "share");
    tg_finding_add_evidence(f, "cores taken by compute threads",
                            role_cpu(host, &use.steps, TG_ROLE_COMPUTE), "cores");
    tg_finding_add_evidence(f, "cores taken by loader threads", loader, "cores");
    tg_finding_add_evidence(f, "cores taken by other programs", others_cpu(host, &use.steps),
                            "cores");
    tg_finding_add_evidence(f, "compute threads wait for a core", use.compute_wait, "share");
    tg_finding_add_evidence(f, "step waits for photos", use.steps.data_s / use.steps.step_s,
                            "share");
    explain_bottleneck(f, &use, loader, others_cpu(host, &use.steps));
    return TG_OK;
}

const tg_rule tg_rule_cpu_bottleneck = {
    .name = "CPUBottleneck",
    .asks = "whether the cores are busy while what computes starves, and who has them",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .yields_to = MEASURED,
    .limits = BOTTLENECK_LIMITS,
    .limit_count = sizeof BOTTLENECK_LIMITS / sizeof *BOTTLENECK_LIMITS,
    .check = check_bottleneck,
};

enum { LEAST, MOST, WAIT };

static const tg_rule_limit DATALOADER_LIMITS[] = {
    {"min_threshold", 70, 0, 100, "loader threads in percent of the cores that feed accelerators"},
    {"max_threshold", 200, 100, 1e6, "loader threads in percent of the cores"},
    {"wait_threshold", 10, 0, 100, "percent of the step that waits for photos"},
};

static void add_loader_evidence(tg_finding *f, const tg_use_rank *use)
{
    f->begin = use->steps.begin;
    f->end = use->steps.end;
    f->first_step = use->steps.first_step;
    f->last_step = use->steps.last_step;
    tg_finding_add_evidence(f, "loader threads", use->workers, "");
    tg_finding_add_evidence(f, "cores for this rank", use->cores, "");
    tg_finding_add_evidence(f, "step waits for photos", use->steps.data_s / use->steps.step_s,
                            "share");
    tg_finding_add_evidence(f, "a loader thread works", use->loader_busy, "share");
    tg_finding_add_evidence(f, "photos of a step need of a core", use->loader_core_s, "s");
    tg_finding_add_evidence(f, "compute threads wait for a core", use->compute_wait, "share");
}

static tg_status say_too_many(const tg_use_rank *use, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "Dataloader", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f loader threads on %.3g cores are too many", use->workers,
                   use->cores);
    add_loader_evidence(f, use);
    if (isnan(use->compute_wait))
        TG_FINDING_SAY(f->cause, "more than can run at once: they take turns with the threads that "
                                 "compute. How much that costs is not known without samples of "
                                 "the machine");
    else
        TG_FINDING_SAY(f->cause,
                       "more than can run at once: the threads that compute wait for a core %.0f "
                       "%% of the time",
                       100 * use->compute_wait);
    set_workers(f, use, 0.7);
    if (!f->option[0])
        tg_finding_set_number(f, "workers", use->workers, fmax(1, floor((use->cores + 1) / 2)));
    return TG_OK;
}

static tg_status say_too_few(const tg_use_rank *use, tg_findings *out)
{
    const double best = tg_use_best_workers(use);
    const double predicted = tg_use_predict(use, best);
    if (!(best > use->workers && predicted < use->steps.step_s))
        return TG_OK; /* more of them would not help: cores, or a disk */
    tg_finding *f = tg_findings_add(out, "Dataloader", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f loader thread%s too few: %.0f %% of the step waits for photos",
                   use->workers, use->workers == 1 ? " is" : "s are",
                   100 * use->steps.data_s / use->steps.step_s);
    add_loader_evidence(f, use);
    TG_FINDING_SAY(f->cause,
                   "the photos of a step take %.2g s of a core, and there are cores "
                   "that have nothing to do",
                   use->loader_core_s);
    tg_finding_set_number(f, "workers", use->workers, best);
    tg_finding_predict(f, use->steps.step_s, predicted, 0.7);
    return TG_OK;
}

static tg_status check_dataloader(const tg_history *history, const double *limits, tg_findings *out,
                                  const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(history);
    if (!use.steps.steps || isnan(use.workers) || isnan(use.cores)) {
        *lack = use.steps.steps ? "the numbers of loader threads and cores (run.json)"
                                : "more steps (20 at least)";
        return TG_END;
    }
    if (use.host && use.host->sample_count < TG_USE_SAMPLES_LEAST) {
        *lack = "more samples of the machine (10 at least)";
        return TG_END;
    }
    const double percent = 100 * use.workers / use.cores;
    const double wait = 100 * use.steps.data_s / use.steps.step_s;
    if (percent > limits[MOST] && use.workers > 1 && !(use.compute_wait < READY))
        return say_too_many(&use, out);
    const bool feeds = history->inputs & TG_INPUT_DEVICES;
    if (wait >= limits[WAIT] && (!feeds || percent < limits[LEAST]))
        return say_too_few(&use, out);
    return TG_OK;
}

const tg_rule tg_rule_dataloader = {
    .name = "Dataloader",
    .asks = "whether there are too few or too many loader threads for the cores",
    .needs = TG_INPUT_STEPS | TG_INPUT_INFO,
    .yields_to = MEASURED,
    .limits = DATALOADER_LIMITS,
    .limit_count = sizeof DATALOADER_LIMITS / sizeof *DATALOADER_LIMITS,
    .check = check_dataloader,
};
