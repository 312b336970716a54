/* IOBottleneck, of the withdrawn tool: the cores that could work wait for a disk, and so do the steps. */
#include "diagnose/rules.h"
#include "diagnose/use.h"

#include <math.h>

enum { SHARE, DEVICE, WAIT, DATA };
#define IDLE_LEAST 0.05 /* of a machine's time: below it, what idle cores wait for says nothing */
#define DISK_FULL                                                                                  \
    0.80 /* share of the time in which a disk is busy, from which more readers do not help */

static const tg_rule_limit LIMITS[] = {
    {"threshold", 50, 0, 100, "percent of the time in which it must be so"},
    {"gpu_threshold", 70, 0, 100, "percent of what computes, below which it starves"},
    {"io_threshold", 50, 0, 100, "percent of idle core time that waits for a disk"},
    {"data_threshold", 10, 0, 100, "percent of the step that waits for photos"},
};

/* Of the core time that nobody uses, the share that waits for a disk: on many cores the plain share would never be
 * large. NaN: not known; 0 where all cores work. */
static double waiting_share(const tg_system_host *host, const tg_system_sample *sample)
{
    const double wait = tg_use_iowait(host, sample, NULL), busy = tg_use_cpu(host, sample, NULL);
    const double pressure = sample->values[TG_SYSTEM_PRESSURE_IO];
    if (isnan(wait) || isnan(busy))
        return pressure;
    const double share = 1 - busy < IDLE_LEAST ? 0 : fmin(1, wait / (1 - busy));
    return pressure > share ? pressure : share;
}

/* user: [2] shares, of the device and of waiting */
static int is_waiting(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    const double *limits = user;
    const double wait = waiting_share(host, sample), device = tg_use_device(host, sample, NULL);
    if (isnan(wait) || isnan(device))
        return -1;
    return wait > limits[1] && device < limits[0];
}

static void advise(const tg_use_rank *use, double disk_busy, tg_finding *f)
{
    const double workers = fmax(use->workers + 1, 2 * use->workers);
    const bool room = disk_busy < DISK_FULL && workers <= 4 * fmax(1, use->cores);
    TG_FINDING_SAY(f->cause, "loader threads wait for a disk, not for cores%s",
                   room ? "; the disk itself has room for more readers" : "");
    TG_FINDING_SAY(f->advice,
                   "%sut the photos on a faster or local disk, or store them smaller; "
                   "memory that is free keeps them from the second epoch on",
                   room ? "Or p" : "P");
    if (room)
        tg_finding_set_number(f, "workers", use->workers, workers);
    tg_finding_predict(f, use->steps.step_s, use->compute_s, room ? 0.4 : 0.5);
}

static tg_status say_waiting(const tg_use_rank *use, const tg_system_host *host, double share,
                             tg_findings *out)
{
    const double begin = use->steps.begin, end = use->steps.end;
    const double busy = tg_use_mean(host, begin, end, TG_SYSTEM_DISK_BUSY);
    const double read = tg_use_mean(host, begin, end, TG_SYSTEM_DISK_READ_BYTES);
    tg_finding *f = tg_findings_add(out, "IOBottleneck", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "Steps wait for photos %.0f %% of the time, and these for a disk",
                   100 * use->steps.data_s / use->steps.step_s);
    TG_FINDING_SAY(f->host, "%s", host->host);
    f->begin = begin;
    f->end = end;
    tg_finding_add_evidence(f, "time in which idle cores wait for a disk", share, "share");
    tg_finding_add_evidence(f, "a step waits for photos", use->steps.data_s, "s");
    tg_finding_add_evidence(f, "busiest disk", busy, "share");
    tg_finding_add_evidence(f, "read from disks", read, "bytes/s");
    tg_finding_add_evidence(f, "read for each photo", read * use->steps.step_s / use->steps.images,
                            "bytes");
    advise(use, busy, f);
    return TG_OK;
}

static tg_status check(const tg_history *h, const double *limits, tg_findings *out,
                       const char **lack)
{
    const tg_use_rank use = tg_use_of_rank(h);
    const double user[2] = {limits[DEVICE] / 100, limits[WAIT] / 100};
    const tg_system_host *worst = NULL;
    double most = NAN;
    for (size_t i = 0; i < h->host_count && use.steps.steps; i++) {
        const double share =
            tg_use_share(&h->hosts[i], use.steps.begin, use.steps.end, is_waiting, user);
        if (isnan(share) || share <= most)
            continue;
        most = share;
        worst = &h->hosts[i];
    }
    if (!worst) {
        *lack = "enough samples of waiting for disks and of what computes (system/)";
        return TG_END;
    }
    if (100 * most <= limits[SHARE] || use.steps.data_s < limits[DATA] / 100 * use.steps.step_s)
        return TG_OK;
    return say_waiting(&use, worst, most, out);
}

const tg_rule tg_rule_io_bottleneck = {
    .name = "IOBottleneck",
    .asks = "whether steps wait for photos, and these for a disk",
    .needs = TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
