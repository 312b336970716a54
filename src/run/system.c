#include "run/system.h"

#include <math.h>
#include <stdlib.h>

typedef struct column {
    const char *name, *unit;
} column;

#define ROLE(role)                                                                                 \
    {role "_threads", "threads"}, {role "_cpu", "cores"}, {role "_wait", "seconds/s"},             \
        {role "_voluntary", "1/s"},                                                                \
    {                                                                                              \
        role "_involuntary", "1/s"                                                                 \
    }
static const column COLUMNS[TG_SYSTEM_METRICS] = {
    [TG_SYSTEM_RUNNING] = {"running", "threads"},
    [TG_SYSTEM_BLOCKED] = {"blocked", "threads"},
    [TG_SYSTEM_MEMORY_TOTAL_BYTES] = {"memory_total_bytes", "bytes"},
    [TG_SYSTEM_MEMORY_USED_BYTES] = {"memory_used_bytes", "bytes"},
    [TG_SYSTEM_MEMORY_CACHE_BYTES] = {"memory_cache_bytes", "bytes"},
    [TG_SYSTEM_SWAP_USED_BYTES] = {"swap_used_bytes", "bytes"},
    [TG_SYSTEM_GROUP_LIMIT_BYTES] = {"group_limit_bytes", "bytes"},
    [TG_SYSTEM_GROUP_USED_BYTES] = {"group_used_bytes", "bytes"},
    [TG_SYSTEM_GROUP_QUOTA_CORES] = {"group_quota_cores", "cores"},
    [TG_SYSTEM_GROUP_THROTTLED] = {"group_throttled", "share"},
    [TG_SYSTEM_GROUP_THROTTLED_S] = {"group_throttled_s", "seconds/s"},
    [TG_SYSTEM_PRESSURE_CPU] = {"pressure_cpu", "share"},
    [TG_SYSTEM_PRESSURE_MEMORY] = {"pressure_memory", "share"},
    [TG_SYSTEM_PRESSURE_IO] = {"pressure_io", "share"},
    [TG_SYSTEM_DISK_READ_BYTES] = {"disk_read_bytes", "bytes/s"},
    [TG_SYSTEM_DISK_WRITTEN_BYTES] = {"disk_written_bytes", "bytes/s"},
    [TG_SYSTEM_DISK_BUSY] = {"disk_busy", "share"},
    [TG_SYSTEM_NET_RECEIVED_BYTES] = {"net_received_bytes", "bytes/s"},
    [TG_SYSTEM_NET_SENT_BYTES] = {"net_sent_bytes", "bytes/s"},
    [TG_SYSTEM_FAULTS] = {"faults", "1/s"},
    [TG_SYSTEM_MAJOR_FAULTS] = {"major_faults", "1/s"},
    [TG_SYSTEM_SWITCHES] = {"switches", "1/s"},
    [TG_SYSTEM_FREQUENCY_MHZ] = {"frequency_mhz", "MHz"},
    [TG_SYSTEM_JOB_PROCESSES] = {"job_processes", "processes"},
    [TG_SYSTEM_JOB_RSS_BYTES] = {"job_rss_bytes", "bytes"},
    [TG_SYSTEM_JOB_READ_BYTES] = {"job_read_bytes", "bytes/s"},
    [TG_SYSTEM_MONITOR_CPU] = {"monitor_cpu", "cores"},
    [TG_SYSTEM_FIRST_ROLE] = ROLE("compute"),
    ROLE("loader"),
    ROLE("communication"),
    ROLE("other"),
};

const char *tg_system_metric_name(int metric)
{
    return COLUMNS[metric].name;
}

const char *tg_system_metric_unit(int metric)
{
    return COLUMNS[metric].unit;
}

float tg_system_core_busy(const tg_system_core *core)
{
    return core->user + core->system + core->steal;
}

double tg_system_busy(const tg_system_host *host, const tg_system_sample *sample)
{
    double sum = 0;
    size_t known = 0;
    for (size_t c = 0; c < host->core_count; c++) {
        const float busy = tg_system_core_busy(&sample->cores[c]);
        sum += isnan(busy) ? 0 : busy;
        known += !isnan(busy);
    }
    return known ? sum / (double)known : NAN;
}

/* INFINITY, a limit that is not set, stays one only where both say so; else the limit counts. */
static double mean(double a, double a_weight, double b, double b_weight)
{
    if (isnan(a) || isinf(a))
        return isnan(b) ? a : b;
    if (isnan(b) || isinf(b))
        return a;
    return (a * a_weight + b * b_weight) / (a_weight + b_weight);
}

static void merge_floats(float *a, double wa, const float *b, double wb, size_t count)
{
    for (size_t i = 0; i < count; i++)
        a[i] = (float)mean(a[i], wa, b[i], wb);
}

static void merge_device(tg_system_device *a, double wa, const tg_system_device *b, double wb)
{
    a->utilisation = (float)mean(a->utilisation, wa, b->utilisation, wb);
    a->memory_utilisation = (float)mean(a->memory_utilisation, wa, b->memory_utilisation, wb);
    a->memory_used_bytes = mean(a->memory_used_bytes, wa, b->memory_used_bytes, wb);
    a->memory_total_bytes = mean(a->memory_total_bytes, wa, b->memory_total_bytes, wb);
    a->power_w = mean(a->power_w, wa, b->power_w, wb);
}

void tg_system_merge(tg_system_sample *a, const tg_system_sample *b, size_t cores, size_t devices)
{
    const double wa = a->seconds, wb = b->seconds;
    for (int m = 0; m < TG_SYSTEM_METRICS; m++)
        a->values[m] = mean(a->values[m], wa, b->values[m], wb);
    _Static_assert(sizeof(tg_system_core) == 4 * sizeof(float), "a core is four floats");
    if (cores)
        merge_floats(&a->cores->user, wa, &b->cores->user, wb, 4 * cores);
    for (size_t d = 0; d < devices; d++)
        merge_device(&a->devices[d], wa, &b->devices[d], wb);
    a->time = b->time;
    a->seconds = wa + wb;
}

void tg_system_host_done(tg_system_host *host)
{
    for (size_t i = 0; i < host->sample_count; i++) {
        free(host->samples[i].cores);
        free(host->samples[i].devices);
    }
    free(host->samples);
    *host = (tg_system_host){0};
}
