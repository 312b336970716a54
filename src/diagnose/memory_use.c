/* Machines that run out of memory: MemoryNearLimit, SwapUsed. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

enum { USED };

static const tg_rule_limit LIMIT_LIMITS[] = {
    {"used", 90, 1, 100, "percent of the machine's memory, or of the control group's limit"},
};

static double group_share(const tg_system_host *host, const tg_system_sample *s, const void *user)
{
    (void)host;
    (void)user;
    const double limit = s->values[TG_SYSTEM_GROUP_LIMIT_BYTES];
    return isfinite(limit) ? s->values[TG_SYSTEM_GROUP_USED_BYTES] / limit : NAN;
}

static double machine_share(const tg_system_host *host, const tg_system_sample *s, const void *user)
{
    (void)host;
    (void)user;
    return s->values[TG_SYSTEM_MEMORY_USED_BYTES] / s->values[TG_SYSTEM_MEMORY_TOTAL_BYTES];
}

/* Mean of a metric, or the limit that it is measured against. */
static double whole(const tg_system_host *host, int metric)
{
    return tg_use_mean(host, NAN, NAN, metric);
}

static tg_status report_limit(const tg_history *history, const tg_system_host *host, bool group,
                              const tg_use_spread *share, tg_findings *out)
{
    char bytes[TG_COMMON_SECONDS];
    tg_finding *f = tg_findings_add(out, "MemoryNearLimit",
                                    share->p95 >= 0.97 ? TG_SEVERITY_SERIOUS : TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    const double limit =
        whole(host, group ? TG_SYSTEM_GROUP_LIMIT_BYTES : TG_SYSTEM_MEMORY_TOTAL_BYTES);
    const double rss = whole(host, TG_SYSTEM_JOB_RSS_BYTES);
    TG_FINDING_SAY(f->title, "%.0f %% of %s of %s are used on %s", 100 * share->p95,
                   group ? "the control group's limit" : "the memory",
                   tg_common_bytes(limit, bytes), host->host);
    TG_FINDING_SAY(f->cause, "%s",
                   group ? "beyond the limit the kernel ends a process of the group, "
                           "whatever else the machine has free"
                         : "what does not fit goes to swap, or the kernel ends a "
                           "process");
    TG_FINDING_SAY(f->advice,
                   "A smaller --batch-size with more --grad-accum-steps gives the same steps "
                   "in less memory%s; tagine plan tells how much",
                   history->ranks > 1 && !tg_common_option_is(history, "zero", "1")
                       ? ", and --zero 1 shares the optimizer's state"
                       : "");
    TG_FINDING_SAY(f->host, "%s", host->host);
    tg_finding_add_evidence(f, "used, for 5 % of the time or more", 100 * share->p95, "%");
    tg_finding_add_evidence(f, "used at most", 100 * share->most, "%");
    tg_finding_add_evidence(f, "limit", limit, "bytes");
    tg_finding_add_evidence(f, "of the job's processes", rss, "bytes");
    return TG_OK;
}

static tg_status check_limit(const tg_history *history, const double *limits, tg_findings *out,
                             const char **lack)
{
    bool known = false;
    for (size_t i = 0; i < history->host_count; i++) {
        tg_use_spread group, machine;
        const tg_system_host *host = &history->hosts[i];
        TG_TRY(tg_use_spread_of(host, NAN, NAN, group_share, NULL, &group));
        TG_TRY(tg_use_spread_of(host, NAN, NAN, machine_share, NULL, &machine));
        known = known || !isnan(group.p95) || !isnan(machine.p95);
        const bool by_group = group.p95 >= limits[USED] / 100;
        if (by_group || machine.p95 >= limits[USED] / 100)
            TG_TRY(report_limit(history, host, by_group, by_group ? &group : &machine, out));
    }
    if (known)
        return TG_OK;
    *lack = "memory used, and the whole of it (system/)";
    return TG_END;
}

const tg_rule tg_rule_memory_near_limit = {
    .name = "MemoryNearLimit",
    .asks = "whether a machine or a control group is near the end of its memory",
    .needs = TG_INPUT_SYSTEM,
    .limits = LIMIT_LIMITS,
    .limit_count = sizeof LIMIT_LIMITS / sizeof *LIMIT_LIMITS,
    .check = check_limit,
};

enum { GROWTH, FAULTS };

static const tg_rule_limit SWAP_LIMITS[] = {
    {"growth", 64, 0, 1e9, "MiB by which swap in use grew while the job ran"},
    {"faults", 20, 0, 1e9, "faults a second that wait for a disk"},
};

/* Swap in use where the samples begin and where they end, means of some; NaN: not known. */
static double swap_growth(const tg_system_host *host)
{
    enum { SOME = 5 };
    double first = 0, last = 0;
    size_t known = 0;
    const size_t n = host->sample_count;
    for (size_t i = 0; i < SOME && n >= 2 * SOME; i++) {
        const double a = host->samples[i].values[TG_SYSTEM_SWAP_USED_BYTES];
        const double b = host->samples[n - 1 - i].values[TG_SYSTEM_SWAP_USED_BYTES];
        known += !isnan(a) && !isnan(b);
        first += a / SOME;
        last += b / SOME;
    }
    return known == SOME ? last - first : NAN;
}

static tg_status report_swap(const tg_system_host *host, double growth, double faults,
                             tg_findings *out)
{
    char grown[TG_COMMON_SECONDS];
    tg_finding *f = tg_findings_add(out, "SwapUsed", TG_SEVERITY_SERIOUS);
    if (!f)
        return TG_ERROR_MACHINE;
    const double used = whole(host, TG_SYSTEM_SWAP_USED_BYTES);
    if (growth > 0)
        TG_FINDING_SAY(f->title, "swap in use grew by %s on %s while the job ran",
                       tg_common_bytes(growth, grown), host->host);
    else
        TG_FINDING_SAY(f->title, "%.0f times a second %s waits for memory that is in swap", faults,
                       host->host);
    TG_FINDING_SAY(f->cause,
                   "the machine has less memory than its programs hold; what is read back "
                   "from a disk takes thousands of times as long as memory");
    TG_FINDING_SAY(f->advice,
                   "A smaller --batch-size, fewer programs beside the job, or a machine "
                   "with more memory; swap does not help a job that uses all it holds in "
                   "every step");
    TG_FINDING_SAY(f->host, "%s", host->host);
    tg_finding_add_evidence(f, "swap in use", used, "bytes");
    tg_finding_add_evidence(f, "more than at the start", growth, "bytes");
    tg_finding_add_evidence(f, "faults that wait for a disk", faults, "1/s");
    tg_finding_add_evidence(f, "share of the time in which something waits for memory",
                            100 * whole(host, TG_SYSTEM_PRESSURE_MEMORY), "%");
    return TG_OK;
}

static tg_status check_swap(const tg_history *history, const double *limits, tg_findings *out,
                            const char **lack)
{
    bool known = false;
    for (size_t i = 0; i < history->host_count; i++) {
        const tg_system_host *host = &history->hosts[i];
        const double growth = swap_growth(host), faults = whole(host, TG_SYSTEM_MAJOR_FAULTS);
        const double used = whole(host, TG_SYSTEM_SWAP_USED_BYTES);
        if (isnan(growth))
            continue;
        known = true;
        const bool faulting = faults >= limits[FAULTS] && used > 0;
        if (growth >= limits[GROWTH] * 1048576 || faulting)
            TG_TRY(report_swap(host, growth, faults, out));
    }
    if (known)
        return TG_OK;
    *lack = "swap in use, in ten samples at least (system/)";
    return TG_END;
}

const tg_rule tg_rule_swap_used = {
    .name = "SwapUsed",
    .asks = "whether a machine puts memory into swap while the job runs",
    .needs = TG_INPUT_SYSTEM,
    .limits = SWAP_LIMITS,
    .limit_count = sizeof SWAP_LIMITS / sizeof *SWAP_LIMITS,
    .check = check_swap,
};
