/* Use of the machines while steps ran. */
#include "report/compare_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double (*sample_value)(const tg_system_host *host, const tg_system_sample *sample,
                               int metric);

static double metric_of(const tg_system_host *host, const tg_system_sample *sample, int metric)
{
    (void)host;
    const double value = sample->values[metric];
    return isfinite(value) ? value : NAN;
}

static double busy_of(const tg_system_host *host, const tg_system_sample *sample, int metric)
{
    (void)metric;
    return tg_system_busy(host, sample);
}

static double device_of(const tg_system_host *host, const tg_system_sample *sample, int metric)
{
    double sum = 0;
    size_t known = 0;
    (void)metric;
    for (size_t d = 0; d < host->device_count; d++)
        if (!isnan(sample->devices[d].utilisation)) {
            sum += (double)sample->devices[d].utilisation;
            known++;
        }
    return known ? sum / (double)known : NAN;
}

/* Samples of all machines one behind the other, of the time in which steps ran, or all where records have no time. */
static tg_status measure(const tg_history *h, sample_value value, int metric, tg_measure *out)
{
    const size_t first = tg_compare_first_step(h);
    const double from = h->step_count ? h->steps[first].time : NAN;
    const double to = h->step_count ? h->steps[h->step_count - 1].time : NAN;
    size_t count = 0, room = 1;
    for (size_t i = 0; i < h->host_count; i++)
        room += h->hosts[i].sample_count;
    double *values = malloc(room * sizeof *values);
    if (!values)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a comparison");
    for (size_t i = 0; i < h->host_count; i++)
        for (size_t s = 0; s < h->hosts[i].sample_count; s++) {
            const tg_system_sample *sample = &h->hosts[i].samples[s];
            if (!(sample->time < from) && !(sample->time - sample->seconds > to))
                values[count++] = value(&h->hosts[i], sample, metric);
        }
    *out = tg_measure_of(values, count);
    free(values);
    return TG_OK;
}

static tg_status add(const tg_history *a, const tg_history *b, sample_value value, int metric,
                     const tg_compare_row *like, tg_comparison *c)
{
    tg_compare_row row = *like;
    TG_TRY(measure(a, value, metric, &row.a));
    TG_TRY(measure(b, value, metric, &row.b));
    if (row.a.mean == 0 && row.b.mean == 0)
        return TG_OK; /* threads that neither has, switches that nobody makes */
    return tg_compare_add_row(c, &row);
}

static tg_status add_roles(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    static const char *const ROLES[TG_ROLES] = {"compute", "loader", "communication", "other"};
    static const struct {
        const char *key, *name, *unit;
        int good;
    } OF[TG_SYSTEM_OF_ROLE] = {
        [TG_SYSTEM_THREADS] = {"threads", "%s threads", "threads", 0},
        [TG_SYSTEM_CPU] = {"cpu", "%s, cores taken", "cores", 0},
        [TG_SYSTEM_WAIT] = {"wait", "%s, waiting for cores", "s/s", -1},
        [TG_SYSTEM_INVOLUNTARY] = {"involuntary", "%s, pushed aside", "1/s", -1},
    };
    for (int r = 0; r < TG_ROLES; r++)
        for (int of = 0; of < TG_SYSTEM_OF_ROLE; of++) {
            if (!OF[of].key || (r == TG_ROLE_OTHER && of != TG_SYSTEM_CPU))
                continue;
            tg_compare_row row = {.section = TG_COMPARE_USE,
                                  .unit = OF[of].unit,
                                  .good = r == TG_ROLE_COMPUTE ? OF[of].good : 0};
            snprintf(row.key, sizeof row.key, "%s_%s", ROLES[r], OF[of].key);
            snprintf(row.name, sizeof row.name, OF[of].name, ROLES[r]);
            TG_TRY(add(a, b, metric_of, TG_SYSTEM_ROLE(r, of), &row, c));
        }
    return TG_OK;
}

static double peak_rss(const tg_history *h)
{
    double most = 0;
    for (size_t i = 0; i < h->step_count; i++)
        most = fmax(most, (double)h->steps[i].rss_bytes);
    return most > 0 ? most : NAN;
}

static const struct {
    sample_value value;
    int metric;
    tg_compare_section section;
    const char *key, *name, *unit;
    int good;
} ROWS[] = {
    {busy_of, 0, TG_COMPARE_USE, "busy", "cores busy", "share", 0},
    {device_of, 0, TG_COMPARE_USE, "device_busy", "accelerators busy", "share", 1},
    {metric_of, TG_SYSTEM_RUNNING, TG_COMPARE_USE, "running", "threads that want a core", "threads",
     0},
    {metric_of, TG_SYSTEM_SWITCHES, TG_COMPARE_USE, "switches", "context switches", "1/s", 0},
    {metric_of, TG_SYSTEM_GROUP_THROTTLED, TG_COMPARE_USE, "throttled", "held back by a quota",
     "share", -1},
    {metric_of, TG_SYSTEM_DISK_READ_BYTES, TG_COMPARE_USE, "disk_read", "read from disks",
     "bytes/s", 0},
    {metric_of, TG_SYSTEM_NET_SENT_BYTES, TG_COMPARE_USE, "net_sent", "sent to the network",
     "bytes/s", 0},
    {metric_of, TG_SYSTEM_MEMORY_USED_BYTES, TG_COMPARE_MEMORY, "memory_used",
     "used of the machine", "bytes", -1},
    {metric_of, TG_SYSTEM_JOB_RSS_BYTES, TG_COMPARE_MEMORY, "job_rss", "the job on a machine",
     "bytes", -1},
};

static tg_compare_row begin_row(tg_compare_section section, const char *key, const char *name,
                                const char *unit, int good)
{
    tg_compare_row row = {.section = section, .unit = unit, .good = good};
    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.name, sizeof row.name, "%s", name);
    return row;
}

tg_status tg_compare_machines(const tg_history *a, const tg_history *b, tg_comparison *c)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const tg_compare_row row =
            begin_row(ROWS[i].section, ROWS[i].key, ROWS[i].name, ROWS[i].unit, ROWS[i].good);
        TG_TRY(add(a, b, ROWS[i].value, ROWS[i].metric, &row, c));
    }
    TG_TRY(add_roles(a, b, c));
    tg_compare_row row = begin_row(TG_COMPARE_MEMORY, "peak_rss", "first rank's peak", "bytes", -1);
    row.a = tg_measure_exact(peak_rss(a));
    row.b = tg_measure_exact(peak_rss(b));
    return tg_compare_add_row(c, &row);
}
