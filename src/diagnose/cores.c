/* Cores that a job has, but not for itself or not always: CgroupThrottling, OtherJobs, LowFrequency. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

static double mean_of(const tg_use_rank *use, int metric)
{
    return tg_use_mean(use->host, use->steps.begin, use->steps.end, metric);
}

enum { THROTTLED, HELD };

static const tg_rule_limit THROTTLING_LIMITS[] = {
    {"throttled", 10, 0, 100, "percent of the quota's periods in which it was used up"},
    {"held", 0.02, 0, 1e4, "threads that are held back, on average"},
};

/* Threads for which there is a core are never held back for long: as many as the quota has whole cores. */
static void advise_quota(const tg_use_rank *use, double quota, double held, tg_finding *f)
{
    const double whole = fmax(1, floor(quota / use->ranks_here + 0.01));
    if (use->threads > whole)
        tg_finding_set_number(f, "threads", use->threads, whole);
    TG_FINDING_SAY(
        f->advice,
        "Give the container or job %.0f cores (docker --cpus, a limit of cpu in Kubernetes, "
        "CPUQuota of systemd)%s",
        ceil(quota + held),
        use->threads > whole
            ? "; with the quota as it is, more threads than it has cores run in turns"
            : "");
}

static tg_status report_throttling(const tg_use_rank *use, double quota, double throttled,
                                   double held, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "CgroupThrottling", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "the CPU quota of %.3g cores is used up in %.0f %% of its periods",
                   quota, 100 * throttled);
    TG_FINDING_SAY(
        f->cause,
        "a quota is dealt out every 100 ms; %.0f compute threads with their loaders use it "
        "up early, and all of them stand still until the next period",
        use->threads);
    f->begin = use->steps.begin;
    tg_common_mark(f, &use->steps);
    tg_finding_add_evidence(f, "quota", quota, "cores");
    tg_finding_add_evidence(f, "periods in which it was used up", 100 * throttled, "%");
    tg_finding_add_evidence(f, "threads held back, on average", held, "threads");
    tg_finding_add_evidence(f, "compute threads of a rank", use->threads, "threads");
    tg_finding_add_evidence(f, "loader threads of a rank", use->workers, "threads");
    advise_quota(use, quota, held, f);
    return TG_OK;
}

static tg_status check_throttling(const tg_history *history, const double *limits, tg_findings *out,
                                  const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(history);
    const double throttled = mean_of(&use, TG_SYSTEM_GROUP_THROTTLED);
    const double held = mean_of(&use, TG_SYSTEM_GROUP_THROTTLED_S);
    const double quota = mean_of(&use, TG_SYSTEM_GROUP_QUOTA_CORES);
    if (isnan(quota) || (isfinite(quota) && (isnan(throttled) || isnan(held)))) {
        *lack = "the CPU quota of the control group and how often it was used up (system/)";
        return TG_END;
    }
    if (!isfinite(quota) || throttled < limits[THROTTLED] / 100 || held < limits[HELD])
        return TG_OK;
    return report_throttling(&use, quota, throttled, held, out);
}

const tg_rule tg_rule_cgroup_throttling = {
    .name = "CgroupThrottling",
    .asks = "whether the control group's CPU quota holds the job back",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = THROTTLING_LIMITS,
    .limit_count = sizeof THROTTLING_LIMITS / sizeof *THROTTLING_LIMITS,
    .check = check_throttling,
};

enum { CORES, WAIT };

static const tg_rule_limit OTHER_JOBS_LIMITS[] = {
    {"cores", 0.25, 0, 1e4, "cores that other programs take"},
    {"core_wait", 5, 0, 100,
     "percent of the time that compute threads wait for a core, from which it "
     "is harm"},
};

/* Cores that are busy and not by this job; NaN: not known. */
static double others_of(const tg_system_host *host, const tg_system_sample *sample,
                        const void *user)
{
    double cores = 0;
    (void)user;
    for (size_t c = 0; c < host->core_count; c++) {
        const double busy = (double)tg_system_core_busy(&sample->cores[c]);
        cores += isnan(busy) ? 0 : busy;
    }
    for (int role = 0; role < TG_ROLES; role++)
        cores -= sample->values[TG_SYSTEM_ROLE(role, TG_SYSTEM_CPU)];
    const double monitor = sample->values[TG_SYSTEM_MONITOR_CPU];
    return isnan(monitor) ? cores : cores - monitor;
}

typedef struct neighbour {
    const tg_system_host *host;
    double cores, wait; /* taken; of a compute thread's time */
} neighbour;

static double compute_wait_of(const tg_system_host *host, const tg_use_steps *steps)
{
    const int wait = TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_WAIT);
    const int threads = TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_THREADS);
    return tg_use_mean(host, steps->begin, steps->end, wait) /
           tg_use_mean(host, steps->begin, steps->end, threads);
}

/* The machine whose compute threads wait most. */
static tg_status find_neighbour(const tg_history *history, const tg_use_steps *steps,
                                const double *limits, neighbour *out, bool *out_known)
{
    *out = (neighbour){0};
    *out_known = false;
    for (size_t i = 0; i < history->host_count; i++) {
        tg_use_spread others;
        const tg_system_host *host = &history->hosts[i];
        TG_TRY(tg_use_spread_of(host, steps->begin, steps->end, others_of, NULL, &others));
        const neighbour n = {host, others.mean, compute_wait_of(host, steps)};
        if (isnan(n.cores) || isnan(n.wait))
            continue;
        *out_known = true;
        if (n.cores >= limits[CORES] && n.wait >= limits[WAIT] / 100 && n.wait > out->wait)
            *out = n;
    }
    return TG_OK;
}

static tg_status report_neighbour(const tg_use_rank *use, const neighbour *n, tg_findings *out)
{
    const int loader_cpu = TG_SYSTEM_ROLE(TG_ROLE_LOADER, TG_SYSTEM_CPU);
    const tg_use_steps *steps = &use->steps;
    double loaders = tg_use_mean(n->host, steps->begin, steps->end, loader_cpu);
    tg_finding *f = tg_findings_add(out, "OtherJobs", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    loaders = isnan(loaders) ? 0 : loaders;
    const double theirs = n->wait * n->cores / (n->cores + loaders);
    TG_FINDING_SAY(f->title, "other programs take %.2g of the %zu cores of %s", n->cores,
                   n->host->core_count, n->host->host);
    TG_FINDING_SAY(
        f->cause,
        "compute threads wait %.0f %% of the time for a core; all threads of a step wait "
        "for the one that is pushed aside",
        100 * n->wait);
    TG_FINDING_SAY(f->advice, "Run the other programs elsewhere, or give each cores of its own "
                              "(taskset, a cpuset, the batch system)");
    tg_common_mark(f, steps);
    TG_FINDING_SAY(f->host, "%s", n->host->host);
    tg_finding_add_evidence(f, "cores that other programs take", n->cores, "cores");
    tg_finding_add_evidence(f, "time that a compute thread waits for a core", 100 * n->wait, "%");
    tg_finding_add_evidence(f, "cores that the job's loaders take", loaders, "cores");
    tg_finding_add_evidence(f, "threads of the machine that run or wait for a core",
                            tg_use_mean(n->host, steps->begin, steps->end, TG_SYSTEM_RUNNING),
                            "threads");
    tg_finding_predict(f, steps->step_s, steps->step_s * (1 - fmin(0.9, theirs)), 0.5);
    return TG_OK;
}

static tg_status check_other_jobs(const tg_history *history, const double *limits, tg_findings *out,
                                  const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(history);
    neighbour worst;
    bool known = false;
    if (use.steps.steps)
        TG_TRY(find_neighbour(history, &use.steps, limits, &worst, &known));
    if (!known) {
        *lack = use.steps.steps ? TG_LACKS_ROLES : TG_LACKS_STEPS;
        return TG_END;
    }
    return worst.host ? report_neighbour(&use, &worst, out) : TG_OK;
}

const tg_rule tg_rule_other_jobs = {
    .name = "OtherJobs",
    .asks = "whether programs that are not this job's keep its threads waiting for a core",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = OTHER_JOBS_LIMITS,
    .limit_count = sizeof OTHER_JOBS_LIMITS / sizeof *OTHER_JOBS_LIMITS,
    .check = check_other_jobs,
};

enum { FALL, BUSY };

static const tg_rule_limit FREQUENCY_LIMITS[] = {
    {"fall", 15, 0, 100, "percent below what the cores had under the same load before"},
    {"busy", 50, 0, 100, "percent of the cores that must be busy for a sample to count"},
};

/* Of samples in which the machine is busy; user: the share. */
static double loaded_frequency(const tg_system_host *host, const tg_system_sample *sample,
                               const void *user)
{
    const double busy = tg_system_busy(host, sample);
    return busy >= *(const double *)user ? sample->values[TG_SYSTEM_FREQUENCY_MHZ] : NAN;
}

static tg_status report_frequency(const tg_use_steps *steps, const tg_system_host *host, double had,
                                  double has, tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, "LowFrequency", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "the cores of %s run at %.0f MHz, and had %.0f under the same load",
                   host->host, has, had);
    TG_FINDING_SAY(f->cause,
                   "a frequency that falls while the load stays is heat, a power limit, or "
                   "other guests of the same processor");
    TG_FINDING_SAY(f->advice, "Look at fans, room temperature and power limits (turbostat), and at "
                              "the frequency governor (performance)");
    tg_common_mark(f, steps);
    TG_FINDING_SAY(f->host, "%s", host->host);
    tg_finding_add_evidence(f, "frequency now", has, "MHz");
    tg_finding_add_evidence(f, "frequency under the same load before", had, "MHz");
    const double compute = tg_common_compute(steps) + steps->optimizer_s;
    tg_finding_predict(f, steps->step_s, steps->step_s - compute * (1 - has / had), 0.4);
    return TG_OK;
}

static tg_status check_frequency(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    const tg_use_steps steps = tg_use_of_steps(history);
    const double busy = limits[BUSY] / 100;
    bool known = false;
    for (size_t i = 0; i < history->host_count && steps.steps; i++) {
        tg_use_spread all, late;
        const tg_system_host *host = &history->hosts[i];
        const double middle = 0.5 * (steps.begin + steps.end);
        TG_TRY(tg_use_spread_of(host, NAN, NAN, loaded_frequency, &busy, &all));
        TG_TRY(tg_use_spread_of(host, middle, NAN, loaded_frequency, &busy, &late));
        if (isnan(all.p95) || isnan(late.p50))
            continue;
        known = true;
        if (late.p50 < (1 - limits[FALL] / 100) * all.p95)
            TG_TRY(report_frequency(&steps, host, all.p95, late.p50, out));
    }
    if (known)
        return TG_OK;
    *lack = steps.steps ? "the cores' frequency under load (system/)" : TG_LACKS_STEPS;
    return TG_END;
}

const tg_rule tg_rule_low_frequency = {
    .name = "LowFrequency",
    .asks = "whether the cores' frequency falls while the load stays",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = FREQUENCY_LIMITS,
    .limit_count = sizeof FREQUENCY_LIMITS / sizeof *FREQUENCY_LIMITS,
    .check = check_frequency,
};
