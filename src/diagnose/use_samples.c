/* What samples of a machine come to over a stretch of time. */
#include "diagnose/use.h"

#include <math.h>
#include <stdlib.h>

static bool within(const tg_system_sample *sample, double begin, double end)
{
    return !(sample->time - sample->seconds < begin) && !(sample->time > end);
}

typedef struct weighted {
    double value, seconds;
} weighted;

static int compare(const void *a, const void *b)
{
    const double x = ((const weighted *)a)->value, y = ((const weighted *)b)->value;
    return (x > y) - (x < y);
}

/* values: sorted. */
static double percentile(const weighted *values, size_t n, double seconds, double share)
{
    double passed = 0;
    for (size_t i = 0; i < n; i++) {
        passed += values[i].seconds;
        if (passed >= share * seconds)
            return values[i].value;
    }
    return n ? values[n - 1].value : NAN;
}

static void summarise(weighted *values, size_t n, tg_use_spread *out)
{
    double sum = 0;
    qsort(values, n, sizeof *values, compare);
    for (size_t i = 0; i < n; i++)
        sum += values[i].value * values[i].seconds;
    out->mean = sum / out->seconds;
    out->p5 = percentile(values, n, out->seconds, 0.05);
    out->p50 = percentile(values, n, out->seconds, 0.50);
    out->p95 = percentile(values, n, out->seconds, 0.95);
    out->most = values[n - 1].value;
}

tg_status tg_use_spread_of(const tg_system_host *host, double begin, double end, tg_use_value value,
                           const void *user, tg_use_spread *out)
{
    double all = 0;
    tg_use_spread spread = {.mean = NAN, .p5 = NAN, .p50 = NAN, .p95 = NAN, .most = NAN};
    weighted *values = malloc((host->sample_count + 1) * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for samples");
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *sample = &host->samples[i];
        if (!within(sample, begin, end))
            continue;
        const double v = value(host, sample, user);
        all += sample->seconds;
        if (isnan(v))
            continue;
        values[spread.samples++] = (weighted){v, sample->seconds};
        spread.seconds += sample->seconds;
    }
    if (spread.samples >= TG_USE_SAMPLES_LEAST && spread.seconds >= 0.5 * all)
        summarise(values, spread.samples, &spread);
    free(values);
    *out = spread;
    return TG_OK;
}

double tg_use_mean(const tg_system_host *host, double begin, double end, int metric)
{
    tg_use_spread spread;
    if (!host || tg_use_spread_of(host, begin, end, tg_use_metric, &metric, &spread) < 0)
        return NAN;
    return spread.mean;
}

double tg_use_share(const tg_system_host *host, double begin, double end, tg_use_question is_so,
                    const void *user)
{
    double all = 0, known = 0, yes = 0;
    size_t samples = 0;
    for (size_t i = 0; i < host->sample_count; i++) {
        const tg_system_sample *sample = &host->samples[i];
        if (!within(sample, begin, end))
            continue;
        const int answer = is_so(host, sample, user);
        all += sample->seconds;
        known += answer >= 0 ? sample->seconds : 0;
        yes += answer > 0 ? sample->seconds : 0;
        samples += answer >= 0;
    }
    return samples >= TG_USE_SAMPLES_LEAST && known >= 0.5 * all ? yes / known : NAN;
}

double tg_use_cpu(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    (void)user;
    return tg_system_busy(host, sample);
}

/* Means over accelerators that know it. */
static double device_mean(const tg_system_host *host, const tg_system_sample *sample, bool memory)
{
    double sum = 0;
    size_t known = 0;
    for (size_t d = 0; d < host->device_count && sample->devices; d++) {
        const tg_system_device *device = &sample->devices[d];
        const double value = memory ? device->memory_used_bytes / device->memory_total_bytes
                                    : (double)device->utilisation;
        if (!(value >= 0 && value <= 1)) /* also what no driver may say */
            continue;
        sum += value;
        known++;
    }
    return known ? sum / (double)known : NAN;
}

double tg_use_device(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    (void)user;
    if (host->device_count)
        return device_mean(host, sample, false);
    const double cpu = sample->values[TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_CPU)];
    double threads = sample->values[TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_THREADS)];
    if (threads > (double)host->core_count)
        threads = (double)host->core_count;
    if (!(threads > 0)) /* not fmin: of a NaN it takes the other one */
        return NAN;
    return cpu > threads ? 1 : cpu / threads;
}

double tg_use_memory(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    (void)user;
    if (host->device_count)
        return device_mean(host, sample, true);
    const double limit = fmin(sample->values[TG_SYSTEM_GROUP_LIMIT_BYTES],
                              sample->values[TG_SYSTEM_MEMORY_TOTAL_BYTES]);
    return sample->values[TG_SYSTEM_JOB_RSS_BYTES] / limit;
}

double tg_use_iowait(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    double sum = 0;
    size_t known = 0;
    (void)user;
    for (size_t c = 0; c < host->core_count; c++) {
        const double wait = (double)sample->cores[c].iowait;
        sum += isnan(wait) ? 0 : wait;
        known += !isnan(wait);
    }
    return known ? sum / (double)known : NAN;
}

double tg_use_metric(const tg_system_host *host, const tg_system_sample *sample, const void *user)
{
    (void)host;
    return sample->values[*(const int *)user];
}
