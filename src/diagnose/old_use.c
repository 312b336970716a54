/* LowGPUUtilization, BatchSize and OverallSystemUsage, of the withdrawn tool, and LowUtilization: the same of the cores
 * that compute threads have. All look at samples taken while steps ran, not while the model was scored or saved. */
#include "diagnose/rules.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A value of a sample, unless it was taken beside the steps. */
typedef struct in_steps {
    const tg_history *history;
    tg_use_value value;
} in_steps;

static bool beside_steps(const tg_history *h, const tg_system_sample *s)
{
    for (size_t i = 0; i < h->span_count; i++)
        if (h->spans[i].time < s->time &&
            h->spans[i].time + h->spans[i].seconds > s->time - s->seconds)
            return true;
    return false;
}

static double value_in_steps(const tg_system_host *host, const tg_system_sample *sample,
                             const void *user)
{
    const in_steps *in = user;
    return beside_steps(in->history, sample) ? NAN : in->value(host, sample, NULL);
}

static tg_status spread(const tg_history *h, const tg_system_host *host, const tg_use_steps *steps,
                        tg_use_value value, tg_use_spread *out)
{
    const in_steps in = {h, value};
    return tg_use_spread_of(host, steps->begin, steps->end, value_in_steps, &in, out);
}

enum { P95, P5, LOW_WINDOW };
#define FEW 0.10 /* of the step: a part below it is not why */

static const tg_rule_limit LOW_LIMITS[] = {
    {"threshold_p95", 70, 0, 100, "percent that the 95th percentile of use must reach"},
    {"threshold_p5", 10, 0, 100,
     "percent below which the 5th percentile says that it comes and goes"},
    {"window", 30, 1, 1e9, "seconds of samples that it takes"},
};

/* Where the step waits most, and what that is called. */
static double longest_wait(const tg_use_rank *use, const char **out_what)
{
    const tg_use_steps *s = &use->steps;
    const double stolen = use->compute_wait * s->step_s;
    double longest = s->data_s;
    *out_what = "waiting for photos";
    if (s->exchange_s > longest) {
        longest = s->exchange_s;
        *out_what = "waiting for other ranks";
    }
    if (s->other_s > longest) {
        longest = s->other_s;
        *out_what = "what lies between forward, backward and optimizer";
    }
    if (stolen > longest) {
        longest = stolen;
        *out_what = "waiting for a core that others have";
    }
    return longest;
}

static void explain_low(const tg_use_rank *use, tg_finding *f)
{
    const char *what;
    const double wait = longest_wait(use, &what), share = wait / use->steps.step_s;
    if (!(share >= FEW)) {
        TG_FINDING_SAY(f->cause,
                       "no part of the step waits for long: the work of one step is too "
                       "little to keep all of it busy, or its parts cannot be shared out");
        TG_FINDING_SAY(f->advice, "A larger --batch-size gives each step more to do");
        return;
    }
    TG_FINDING_SAY(f->cause, "%.0f %% of the step goes to %s", 100 * share, what);
    TG_FINDING_SAY(f->advice, "Take that away: other findings say with what, where it is known");
    tg_finding_add_evidence(f, what, wait, "s");
    tg_finding_predict(f, use->steps.step_s, use->steps.step_s - wait, 0.4);
}

static tg_status say_low(const tg_history *h, const tg_use_rank *use, const tg_system_host *host,
                         const tg_use_spread *device, const char *rule, bool fluctuates,
                         tg_findings *out)
{
    tg_finding *f = tg_findings_add(out, rule, TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    if (fluctuates)
        TG_FINDING_SAY(f->title, "The use of %s comes and goes: under %.0f %% and over %.0f %%",
                       tg_use_device_name(h), 100 * device->p5, 100 * device->p95);
    else
        TG_FINDING_SAY(f->title,
                       "The use of %s is low: %.0f %% on the average, hardly ever %.0f %%",
                       tg_use_device_name(h), 100 * device->mean, 100 * device->p95);
    TG_FINDING_SAY(f->host, "%s", host->host);
    f->begin = use->steps.begin;
    f->end = use->steps.end;
    tg_finding_add_evidence(f, "use, mean", device->mean, "share");
    tg_finding_add_evidence(f, "use, 5th percentile", device->p5, "share");
    tg_finding_add_evidence(f, "use, 95th percentile", device->p95, "share");
    explain_low(use, f);
    return TG_OK;
}

/* The machine whose use is lowest of those where it is low. */
static tg_status check_low(const tg_history *h, const double *limits, const char *rule,
                           tg_findings *out, const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(h);
    const tg_system_host *worst = NULL;
    tg_use_spread lowest = {0};
    bool known = false, fluctuates = false;
    for (size_t i = 0; i < h->host_count && use.steps.steps; i++) {
        tg_use_spread device;
        TG_TRY(spread(h, &h->hosts[i], &use.steps, tg_use_device, &device));
        if (isnan(device.p95) || device.seconds < limits[LOW_WINDOW])
            continue;
        known = true;
        const bool low = 100 * device.p95 < limits[P95], falls = 100 * device.p5 < limits[P5];
        if (!(low || falls) || (worst && device.mean >= lowest.mean))
            continue;
        worst = &h->hosts[i];
        lowest = device;
        fluctuates = !low;
    }
    if (!known) {
        *lack = "half a minute of samples of what computes (system/)";
        return TG_END;
    }
    return worst ? say_low(h, &use, worst, &lowest, rule, fluctuates, out) : TG_OK;
}

static tg_status check_low_gpu(const tg_history *history, const double *limits, tg_findings *out,
                               const char **lack)
{
    return check_low(history, limits, "LowGPUUtilization", out, lack);
}

static tg_status check_low_cores(const tg_history *history, const double *limits, tg_findings *out,
                                 const char **lack)
{
    if (history->inputs & TG_INPUT_DEVICES)
        return TG_OK; /* there compute threads only hand out work */
    return check_low(history, limits, "LowUtilization", out, lack);
}

static const char *const LOW_YIELD[] = {"LoaderOversubscription",
                                        "LoaderStarvation",
                                        "CPUBottleneck",
                                        "Dataloader",
                                        "IOBottleneck",
                                        "CgroupThrottling",
                                        "OtherJobs",
                                        "WrongAffinity",
                                        "LoadBalancing",
                                        "BatchSize",
                                        NULL};

const tg_rule tg_rule_low_gpu_utilization = {
    .name = "LowGPUUtilization",
    .asks = "whether accelerators are used little, or now and then",
    .needs = TG_INPUT_STEPS | TG_INPUT_DEVICES,
    .yields_to = LOW_YIELD,
    .limits = LOW_LIMITS,
    .limit_count = sizeof LOW_LIMITS / sizeof *LOW_LIMITS,
    .check = check_low_gpu,
};

const tg_rule tg_rule_low_utilization = {
    .name = "LowUtilization",
    .asks = "whether the cores of the compute threads are used little, or now and then",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .yields_to = LOW_YIELD,
    .limits = LOW_LIMITS,
    .limit_count = sizeof LOW_LIMITS / sizeof *LOW_LIMITS,
    .check = check_low_cores,
};

enum { BATCH_CPU, BATCH_DEVICE, BATCH_MEMORY, BATCH_WINDOW };
enum { LARGEST_FACTOR = 4 };

static const tg_rule_limit BATCH_LIMITS[] = {
    {"cpu_threshold_p95", 70, 0, 100, "percent of all cores, 95th percentile"},
    {"gpu_threshold_p95", 70, 0, 100, "percent of what computes, 95th percentile"},
    {"gpu_memory_threshold_p95", 70, 0, 100, "percent of its memory, 95th percentile"},
    {"window", 30, 1, 1e9, "seconds of samples that it takes"},
};

/* The step of `factor` times as many photos, for as many as now: what is done once a step is shared by more. */
static double with_larger_batch(const tg_use_steps *s, double factor)
{
    const double once = s->optimizer_s + s->exchange_s + s->other_s;
    return s->step_s - once + once / factor;
}

static tg_status say_batch(const tg_history *h, const tg_use_rank *use, const tg_system_host *host,
                           const tg_use_spread of[3], double factor, tg_findings *out)
{
    const double batch = tg_history_option_number(h, "batch-size");
    tg_finding *f = tg_findings_add(out, "BatchSize", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title,
                   "Cores, %s and memory are all used little (95th percentiles %.0f, %.0f and %.0f "
                   "%%): the batch is small for this machine",
                   tg_use_device_name(h), 100 * of[0].p95, 100 * of[1].p95, 100 * of[2].p95);
    TG_FINDING_SAY(f->host, "%s", host->host);
    f->begin = use->steps.begin;
    f->end = use->steps.end;
    tg_finding_add_evidence(f, "all cores, 95th percentile", of[0].p95, "share");
    tg_finding_add_evidence(f, "what computes, 95th percentile", of[1].p95, "share");
    tg_finding_add_evidence(f, "memory, 95th percentile", of[2].p95, "share");
    tg_finding_add_evidence(f, "done once a step, whatever the batch",
                            use->steps.optimizer_s + use->steps.exchange_s + use->steps.other_s,
                            "s");
    TG_FINDING_SAY(f->cause, "%.0f photos a step leave most of the machine without work",
                   use->steps.images);
    TG_FINDING_SAY(f->advice,
                   "Times are for as many photos as a step has now; --lr may have to grow "
                   "with the batch. Or rent a smaller machine");
    if (batch > 0)
        tg_finding_set_number(f, "batch-size", batch, batch * factor);
    tg_finding_predict(f, use->steps.step_s, with_larger_batch(&use->steps, factor), 0.3);
    return TG_OK;
}

static tg_status check_batch(const tg_history *h, const double *limits, tg_findings *out,
                             const char **lack)
{
    static const tg_use_value VALUES[3] = {tg_use_cpu, tg_use_device, tg_use_memory};
    const tg_use_rank use = tg_use_of_rank(h);
    if (use.host && use.steps.data_s > FEW * use.steps.step_s)
        return TG_OK; /* more photos a step would wait as long for each */
    bool small = use.host && use.steps.steps;
    tg_use_spread of[3];
    for (int i = 0; i < 3 && small; i++) {
        TG_TRY(spread(h, use.host, &use.steps, VALUES[i], &of[i]));
        small = !isnan(of[i].p95) && of[i].seconds >= limits[BATCH_WINDOW];
    }
    if (!small) {
        *lack = "half a minute of samples of cores, of what computes, and of memory (system/)";
        return TG_END;
    }
    for (int i = 0; i < 3; i++)
        small = small && 100 * of[i].p95 < limits[BATCH_CPU + i];
    double factor = 1; /* all of the memory grows with the batch, at most */
    while (small && 2 * factor <= LARGEST_FACTOR &&
           200 * factor * of[2].p95 <= limits[BATCH_MEMORY])
        factor *= 2;
    return factor >= 2 ? say_batch(h, &use, use.host, of, factor, out) : TG_OK;
}

static const char *const BATCH_YIELD[] = {"LoaderStarvation", "CgroupThrottling", "IOBottleneck",
                                          "LoadBalancing", NULL};

const tg_rule tg_rule_batch_size = {
    .name = "BatchSize",
    .asks = "whether the batch is too small for the machine",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .yields_to = BATCH_YIELD,
    .limits = BATCH_LIMITS,
    .limit_count = sizeof BATCH_LIMITS / sizeof *BATCH_LIMITS,
    .check = check_batch,
};

enum { MOST_HOSTS = 8 };

static void add_percentiles(tg_finding *f, const char *what, const tg_use_spread *s)
{
    char name[96];
    snprintf(name, sizeof name, "%s, median", what);
    tg_finding_add_evidence(f, name, s->p50, "share");
    snprintf(name, sizeof name, "%s, 95th percentile", what);
    tg_finding_add_evidence(f, name, s->p95, "share");
}

static tg_status say_usage(const tg_history *h, const tg_system_host *host, tg_findings *out,
                           bool *known)
{
    static const tg_use_value VALUES[4] = {tg_use_cpu, tg_use_device, tg_use_memory, tg_use_iowait};
    static const char *const NAMES[4] = {"cores", "what computes", "memory", "waiting for disks"};
    tg_use_spread of[4];
    for (int i = 0; i < 4; i++)
        TG_TRY(tg_use_spread_of(host, NAN, NAN, VALUES[i], NULL, &of[i]));
    if (isnan(of[0].p50))
        return TG_OK;
    *known = true;
    tg_finding *f = tg_findings_add(out, "OverallSystemUsage", TG_SEVERITY_NOTE);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%s: %zu cores %.0f %% busy", host->host, host->core_count,
                   100 * of[0].mean);
    if (!isnan(of[1].mean))
        tg_finding_say(f->title + strlen(f->title), sizeof f->title - strlen(f->title),
                       ", %s %.0f %%", tg_use_device_name(h), 100 * of[1].mean);
    if (!isnan(of[2].mean))
        tg_finding_say(f->title + strlen(f->title), sizeof f->title - strlen(f->title),
                       ", memory %.0f %%", 100 * of[2].most);
    TG_FINDING_SAY(f->host, "%s", host->host);
    TG_FINDING_SAY(f->cause, "over %zu samples", host->sample_count * host->merged);
    for (int i = 0; i < 4; i++)
        add_percentiles(f, NAMES[i], &of[i]);
    return TG_OK;
}

static tg_status check_usage(const tg_history *history, const double *limits, tg_findings *out,
                             const char **lack)
{
    bool known = false;
    (void)limits;
    for (size_t i = 0; i < history->host_count && i < MOST_HOSTS; i++)
        TG_TRY(say_usage(history, &history->hosts[i], out, &known));
    *lack = "ten samples of the cores (system/)";
    return known ? TG_OK : TG_END;
}

const tg_rule tg_rule_overall_system_usage = {
    .name = "OverallSystemUsage",
    .asks = "how much of each machine is used (always said)",
    .needs = TG_INPUT_SYSTEM,
    .check = check_usage,
};
