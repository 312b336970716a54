/* GPUMemoryIncrease, of the withdrawn tool, and MemoryIncrease for the machine's own memory: memory that grows and does
 * not stop, and when it will be full. A footprint that jumps and stays, as when a job warms up, is none. */
#include "diagnose/rules.h"
#include "diagnose/series.h"
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

enum { INCREASE, WINDOW, PATIENCE };
enum {
    PARTS = 10,
    STEADY = 7,
    LATE = 6
}; /* of PARTS - 1 transitions that rise; the part that the last is held against */

static const tg_rule_limit LIMITS[] = {
    {"increase", 10, 0.1, 1e4, "percent that it has to grow by"},
    {"window", 60, 1, 1e9, "seconds that it must have been watched for"},
    {"patience", 10, 0, 1e9, "seconds of the begin to pass over"},
};

typedef struct growth {
    double parts[PARTS]; /* bytes */
    double begin, end, limit_bytes;
    const char *host;
    size_t samples;
} growth;

static double device_bytes(const tg_system_host *host, const tg_system_sample *s, bool total)
{
    double sum = 0;
    for (size_t d = 0; d < host->device_count; d++)
        sum += total ? s->devices[d].memory_total_bytes : s->devices[d].memory_used_bytes;
    return host->device_count ? sum : NAN;
}

static double used_bytes(const tg_system_host *host, const tg_system_sample *s, bool devices)
{
    return devices ? device_bytes(host, s, false) : s->values[TG_SYSTEM_JOB_RSS_BYTES];
}

static double limit_bytes(const tg_system_host *host, const tg_system_sample *s, bool devices)
{
    return devices ? device_bytes(host, s, true)
                   : fmin(s->values[TG_SYSTEM_GROUP_LIMIT_BYTES],
                          s->values[TG_SYSTEM_MEMORY_TOTAL_BYTES]);
}

static tg_status read_growth(const tg_system_host *host, double patience, bool devices, growth *out)
{
    double *values = malloc((host->sample_count + 1) * sizeof *values);
    size_t n = 0;
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for samples");
    *out = (growth){.limit_bytes = NAN, .host = host->host};
    const double from = host->samples[0].time + patience;
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *s = &host->samples[i];
        const double used = used_bytes(host, s, devices);
        if (s->time < from || isnan(used))
            continue;
        if (n == 0)
            out->begin = s->time;
        out->end = s->time;
        out->limit_bytes = limit_bytes(host, s, devices);
        values[n++] = used;
    }
    out->samples = n;
    tg_series_parts(values, n, PARTS, out->parts);
    free(values);
    return TG_OK;
}

static bool grows(const growth *g, double increase)
{
    int rising = 0;
    const double first = g->parts[0], last = g->parts[PARTS - 1];
    for (int p = 1; p < PARTS; p++)
        rising += g->parts[p] > g->parts[p - 1];
    return last > first * (1 + increase) && rising >= STEADY &&
           last > g->parts[LATE] * (1 + increase / PARTS);
}

static tg_status say_growth(const growth *g, const char *rule, tg_findings *out)
{
    const double first = g->parts[0], last = g->parts[PARTS - 1];
    const double rate = (last - first) / (g->end - g->begin) * PARTS / (PARTS - 1);
    const double left_s = (g->limit_bytes - last) / rate;
    tg_finding *f = tg_findings_add(out, rule, TG_SEVERITY_WARNING);
    if (!f)
        return TG_ERROR_MACHINE;
    if (isfinite(left_s) && left_s < 86400) {
        f->severity = TG_SEVERITY_SERIOUS;
        TG_FINDING_SAY(f->title,
                       "Memory grows by %.0f MiB an hour, and is full in %.1f hours if it goes on",
                       rate * 3600 / 1048576, left_s / 3600);
    } else {
        TG_FINDING_SAY(f->title, "Memory grows by %.0f MiB an hour, %.0f %% so far",
                       rate * 3600 / 1048576, 100 * (last / first - 1));
    }
    TG_FINDING_SAY(f->host, "%s", g->host);
    f->begin = g->begin;
    f->end = g->end;
    tg_finding_add_evidence(f, "in the first tenth of the time", first, "bytes");
    tg_finding_add_evidence(f, "in the last tenth", last, "bytes");
    if (isfinite(g->limit_bytes))
        tg_finding_add_evidence(f, "there is", g->limit_bytes, "bytes");
    TG_FINDING_SAY(f->cause, "it rises all the time and does not level off, as what is kept and "
                             "never given back does; a step of this program keeps nothing");
    TG_FINDING_SAY(f->advice, "Keep checkpoints (--checkpoint-steps) so that --resume auto can go "
                              "on, and report it with the run's folder");
    return TG_OK;
}

/* The machine that is nearest its end. */
static tg_status check(const tg_history *h, const double *limits, const char *rule, bool devices,
                       tg_findings *out, const char **lack)
{
    bool known = false;
    growth worst = {0};
    for (size_t i = 0; i < h->host_count; i++) {
        growth g;
        TG_TRY(read_growth(&h->hosts[i], limits[PATIENCE], devices, &g));
        if (g.samples < 2 * PARTS || g.end - g.begin < limits[WINDOW])
            continue;
        known = true;
        if (grows(&g, limits[INCREASE] / 100) &&
            g.parts[PARTS - 1] / g.limit_bytes >= worst.parts[PARTS - 1] / worst.limit_bytes)
            worst = g;
        else if (grows(&g, limits[INCREASE] / 100) && !worst.host)
            worst = g;
    }
    if (!known) {
        *lack = "samples of memory over a minute at least (system/)";
        return TG_END;
    }
    return worst.host ? say_growth(&worst, rule, out) : TG_OK;
}

static tg_status check_gpu(const tg_history *history, const double *limits, tg_findings *out,
                           const char **lack)
{
    return check(history, limits, "GPUMemoryIncrease", true, out, lack);
}

static tg_status check_machine(const tg_history *history, const double *limits, tg_findings *out,
                               const char **lack)
{
    return check(history, limits, "MemoryIncrease", false, out, lack);
}

const tg_rule tg_rule_gpu_memory_increase = {
    .name = "GPUMemoryIncrease",
    .asks = "whether the accelerators' memory grows without end",
    .needs = TG_INPUT_DEVICES,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check_gpu,
};

const tg_rule tg_rule_memory_increase = {
    .name = "MemoryIncrease",
    .asks = "whether the job's memory grows without end, and when the machine's is full",
    .needs = TG_INPUT_SYSTEM,
    .limits = LIMITS,
    .limit_count = sizeof LIMITS / sizeof *LIMITS,
    .check = check_machine,
};
