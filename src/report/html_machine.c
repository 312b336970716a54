/* What the machines did, on a time axis that all of them share: a byte for each core and bin, a number for each metric. */
#include "report/html_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the page that matrices and numbers of all machines may take, about. */
enum { MATRIX_BYTES = 1200000, NUMBER_BYTES = 1500000, BYTES_A_NUMBER = 6, LEAST_BINS = 60 };

/* What one value of a sample is; `which` says of which core, device or metric. */
typedef double (*sample_value)(const tg_system_host *host, const tg_system_sample *sample,
                               size_t which);

static double core_busy(const tg_system_host *host, const tg_system_sample *s, size_t core)
{
    (void)host;
    return tg_system_core_busy(&s->cores[core]);
}

static double device_busy(const tg_system_host *host, const tg_system_sample *s, size_t device)
{
    (void)host;
    return s->devices ? s->devices[device].utilisation : NAN;
}

static double metric(const tg_system_host *host, const tg_system_sample *s, size_t which)
{
    (void)host;
    return s->values[which];
}

static double mean_busy(const tg_system_host *host, const tg_system_sample *s, size_t which)
{
    (void)which;
    return tg_system_busy(host, s);
}

/* Mean over the cores of one part of what they did. */
static double core_part(const tg_system_host *host, const tg_system_sample *s, size_t part)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < host->core_count; i++) {
        const float parts[] = {s->cores[i].user, s->cores[i].system, s->cores[i].iowait,
                               s->cores[i].steal};
        if (isnan(parts[part]))
            continue;
        sum += parts[part];
        known++;
    }
    return known ? sum / (double)known : NAN;
}

static double usual_interval(const tg_history *h)
{
    double least = INFINITY;
    for (size_t i = 0; i < h->host_count; i++)
        for (size_t k = 0; k < h->hosts[i].sample_count && k < 64; k++)
            if (h->hosts[i].samples[k].seconds > 0)
                least = fmin(least, h->hosts[i].samples[k].seconds);
    return isfinite(least) ? fmax(least, 0.05) : 0.5;
}

static size_t bins_that_fit(const tg_history *h)
{
    size_t rows = 1, hosts = h->host_count ? h->host_count : 1;
    for (size_t i = 0; i < h->host_count; i++)
        rows += h->hosts[i].core_count + h->hosts[i].device_count;
    size_t bins = MATRIX_BYTES / rows;
    const size_t numbers = NUMBER_BYTES / (hosts * TG_SYSTEM_METRICS * BYTES_A_NUMBER);
    bins = bins < numbers ? bins : numbers;
    bins = bins < TG_HTML_BINS ? bins : TG_HTML_BINS;
    return bins > LEAST_BINS ? bins : LEAST_BINS;
}

tg_html_grid tg_html_grid_make(const tg_history *h)
{
    tg_html_grid grid = {.origin = tg_history_begin(h)};
    double end = tg_history_end(h);
    for (size_t i = 0; i < h->host_count; i++) {
        const tg_system_host *host = &h->hosts[i];
        if (!host->sample_count)
            continue;
        end = fmax(end, host->samples[host->sample_count - 1].time);
        if (isnan(grid.origin))
            grid.origin = host->samples[0].time - host->samples[0].seconds;
    }
    if (!h->host_count || !(end > grid.origin))
        return grid;
    const size_t most = bins_that_fit(h);
    grid.seconds = fmax(usual_interval(h), (end - grid.origin) / (double)most);
    grid.bins = (size_t)ceil((end - grid.origin) / grid.seconds);
    return grid;
}

/* Adds a sample to the bins that its interval touches, by how much of each it covers. */
static void spread(const tg_html_grid *g, const tg_system_sample *s, double value, double *sum,
                   double *weight)
{
    const double begin = (s->time - s->seconds - g->origin) / g->seconds;
    const double end = (s->time - g->origin) / g->seconds;
    if (!isfinite(value) || !(end > 0) || !(begin < (double)g->bins))
        return;
    size_t bin = begin > 0 ? (size_t)begin : 0;
    for (; bin < g->bins && (double)bin < end; bin++) {
        const double covered = fmin(end, (double)bin + 1) - fmax(begin, (double)bin);
        if (covered > 1e-9) {
            sum[bin] += covered * value;
            weight[bin] += covered;
        }
    }
}

/* out[bins]: means over the bins, NaN where nothing is known. work: [2 * bins]. */
static void resample(const tg_html_grid *g, const tg_system_host *host, sample_value value,
                     size_t which, double *work)
{
    double *sum = work, *weight = work + g->bins;
    memset(work, 0, 2 * g->bins * sizeof *work);
    for (size_t i = 0; i < host->sample_count; i++)
        spread(g, &host->samples[i], value(host, &host->samples[i], which), sum, weight);
    for (size_t b = 0; b < g->bins; b++)
        sum[b] = weight[b] > 0 ? sum[b] / weight[b] : NAN;
}

static tg_status put_matrix(tg_json_writer *w, const char *key, const tg_html_grid *g,
                            const tg_system_host *host, sample_value value, size_t rows,
                            double *work)
{
    uint8_t *bytes = malloc(rows * g->bins + 1);
    if (!bytes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    for (size_t r = 0; r < rows; r++) {
        resample(g, host, value, r, work);
        for (size_t b = 0; b < g->bins; b++)
            bytes[r * g->bins + b] = tg_html_share_byte(work[b]);
    }
    tg_status status = tg_html_put_bytes(w, key, bytes, rows * g->bins);
    free(bytes);
    return status;
}

static bool all_unknown(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            return false;
    return true;
}

static void put_series(tg_json_writer *w, const tg_html_grid *g, const tg_system_host *host,
                       double *work)
{
    static const char *const PARTS[] = {"user", "system", "iowait", "steal"};
    resample(g, host, mean_busy, 0, work);
    tg_html_put_numbers(w, "mean", work, g->bins);
    tg_json_begin_object(w, "series");
    for (size_t part = 0; part < 4; part++) {
        resample(g, host, core_part, part, work);
        tg_html_put_numbers(w, PARTS[part], work, g->bins);
    }
    for (int m = 0; m < TG_SYSTEM_METRICS; m++) {
        resample(g, host, metric, (size_t)m, work);
        if (!all_unknown(work, g->bins))
            tg_html_put_numbers(w, tg_system_metric_name(m), work, g->bins);
    }
    tg_json_end_object(w);
}

static tg_status put_host(tg_json_writer *w, const tg_history *h, const tg_html_grid *g,
                          const tg_system_host *host, double *work)
{
    tg_json_put_string(w, "name", host->host);
    tg_json_put_uint(w, "cores", host->core_count);
    tg_json_put_uint(w, "devices", host->device_count);
    tg_json_put_uint(w, "merged", host->merged);
    TG_TRY(put_matrix(w, "busy", g, host, core_busy, host->core_count, work));
    TG_TRY(put_matrix(w, "device_busy", g, host, device_busy, host->device_count, work));
    put_series(w, g, host, work);
    return tg_html_put_use(w, h, host);
}

tg_status tg_html_put_hosts(tg_json_writer *w, const tg_history *h, const tg_html_grid *g)
{
    double *work = malloc((2 * g->bins + 1) * sizeof *work);
    if (!work)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    tg_status status = TG_OK;
    if (g->bins) {
        tg_json_begin_object(w, "grid");
        tg_json_put_double(w, "seconds", g->seconds);
        tg_json_put_uint(w, "bins", g->bins);
        tg_json_end_object(w);
    } else
        tg_json_put_null(w, "grid");
    tg_json_begin_array(w, "hosts");
    for (size_t i = 0; i < h->host_count && g->bins && status == TG_OK; i++) {
        if (!h->hosts[i].sample_count)
            continue;
        tg_json_begin_object(w, NULL);
        status = put_host(w, h, g, &h->hosts[i], work);
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
    free(work);
    return status;
}
