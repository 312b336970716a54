/* DiskSlow: loaders that wait for a disk, not for a core. */
#include "diagnose/common.h"
#include "diagnose/rules.h"

#include <math.h>

enum { WAIT_SHARE, LOADER_BUSY, READ, DISK_BUSY, PRESSURE, BLOCKED };

static const tg_rule_limit LIMITS[] = {
    {"data_share", 5, 0, 100, "percent of the step spent waiting for photos"},
    {"loader_busy", 70, 0, 100, "percent of the time that loader threads may compute for it"},
    {"read", 64, 0, 1e9,
     "KiB a second that disks must bring the job, where that is known: from memory "
     "no disk is waited for"},
    {"disk_busy", 50, 0, 100,
     "percent of the time that the busiest disk works, from which it is slow"},
    {"pressure", 10, 0, 100, "percent of the time in which something waits for a disk, likewise"},
    {"blocked", 0.3, 0, 1e4, "threads that wait for a disk, likewise"},
};

typedef struct disk {
    tg_use_rank use;
    double busy, pressure, blocked, iowait,
        read; /* NaN: unknown; read: bytes a second, for the job */
} disk;

static disk look(const tg_history *history)
{
    disk d = {.use = tg_use_of_rank(history), .iowait = NAN};
    const tg_use_steps *s = &d.use.steps;
    tg_use_spread iowait;
    if (d.use.host &&
        tg_use_spread_of(d.use.host, s->begin, s->end, tg_use_iowait, NULL, &iowait) == TG_OK)
        d.iowait = iowait.mean;
    d.busy = tg_use_mean(d.use.host, s->begin, s->end, TG_SYSTEM_DISK_BUSY);
    d.pressure = tg_use_mean(d.use.host, s->begin, s->end, TG_SYSTEM_PRESSURE_IO);
    d.blocked = tg_use_mean(d.use.host, s->begin, s->end, TG_SYSTEM_BLOCKED);
    d.read = tg_use_mean(d.use.host, s->begin, s->end, TG_SYSTEM_JOB_READ_BYTES);
    return d;
}

/* More threads hide the waiting of a disk that has time left; one that is at its end they only make busier. */
static void advise(const disk *d, tg_finding *f)
{
    const tg_use_steps *s = &d->use.steps;
    const double full =
        fmax(1, d->use.workers) * s->step_s; /* what loaders need of a step, waiting and all */
    const double compute = s->step_s - s->data_s;
    const double workers = fmin(ceil(1.1 * full / compute), 64);
    const bool has_time = !(d->busy >= 0.8);
    if (has_time && workers > d->use.workers) {
        tg_finding_set_number(f, "workers", d->use.workers, workers);
        tg_finding_predict(f, s->step_s, fmax(compute, full / workers), 0.4);
        TG_FINDING_SAY(f->advice,
                       "Threads that wait for a disk take no core, so there may be more of them "
                       "than cores; a local disk needs fewer");
        return;
    }
    tg_finding_predict(f, s->step_s, compute, 0.4);
    TG_FINDING_SAY(f->advice,
                   "Put the photos on a faster or local disk, make them smaller once (the "
                   "loader reads whole files), or have memory enough to keep them: from the "
                   "second epoch on they then come from there");
}

static tg_status report(const disk *d, tg_findings *out)
{
    const tg_use_steps *s = &d->use.steps;
    tg_finding *f = tg_findings_add(out, "DiskSlow", TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    TG_FINDING_SAY(f->title, "%.0f %% of the step waits for photos that loaders wait for on a disk",
                   100 * s->data_s / s->step_s);
    TG_FINDING_SAY(f->cause, "%s compute only %.0f %% of the time, and threads wait for a disk",
                   d->use.workers > 0 ? "loader threads" : "the cores",
                   100 * (d->use.workers > 0 ? d->use.loader_busy : 1 - d->iowait));
    tg_common_mark(f, s);
    tg_finding_add_evidence(f, "waiting for photos, a step", s->data_s, "s");
    tg_finding_add_evidence(f, "time that a loader thread computes", 100 * d->use.loader_busy, "%");
    tg_finding_add_evidence(f, "threads that wait for a disk", d->blocked, "threads");
    tg_finding_add_evidence(f, "time in which something waits for a disk", 100 * d->pressure, "%");
    tg_finding_add_evidence(f, "time that the busiest disk works", 100 * d->busy, "%");
    tg_finding_add_evidence(f, "cores that are idle because of a disk", 100 * d->iowait, "%");
    tg_finding_add_evidence(f, "read from disks for the job", d->read, "bytes/s");
    advise(d, f);
    return TG_OK;
}

static tg_status check(const tg_history *history, const double *limits, tg_findings *out,
                       const char **lack)
{
    const disk d = look(history);
    const tg_use_steps *s = &d.use.steps;
    if (!s->steps || (isnan(d.busy) && isnan(d.pressure) && isnan(d.blocked))) {
        *lack = s->steps ? "how much threads wait for disks (system/)" : TG_LACKS_STEPS;
        return TG_END;
    }
    if (s->data_s < limits[WAIT_SHARE] / 100 * s->step_s ||
        d.use.loader_busy > limits[LOADER_BUSY] / 100 || d.read < limits[READ] * 1024)
        return TG_OK;
    const bool waits = d.busy >= limits[DISK_BUSY] / 100 || d.pressure >= limits[PRESSURE] / 100 ||
                       d.blocked >= limits[BLOCKED];
    return waits ? report(&d, out) : TG_OK;
}

const tg_rule tg_rule_disk_slow = {
    .name = "DiskSlow",
    .asks = "whether loaders wait for a disk, and the step for them",
    .needs = TG_INPUT_INFO | TG_INPUT_STEPS | TG_INPUT_SYSTEM,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check,
};
