#include "run/system.h"

#include "run/system_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    tg_system_host *host;
    tg_system_head head;
    size_t max_samples, capacity;
    size_t pending; /* samples that the last one of the host is made of */
    size_t bad;
} reader;

/* A sample of fewer cores than others is made as long as they are. */
static tg_status widen(tg_system_sample *s, size_t from_cores, size_t from_devices, size_t cores,
                       size_t devices)
{
    tg_system_sample wide;
    if (from_cores == cores && from_devices == devices)
        return TG_OK;
    TG_TRY(tg_system_sample_make(cores, devices, &wide));
    wide.time = s->time;
    wide.seconds = s->seconds;
    memcpy(wide.values, s->values, sizeof wide.values);
    if (from_cores)
        memcpy(wide.cores, s->cores, from_cores * sizeof *wide.cores);
    if (from_devices)
        memcpy(wide.devices, s->devices, from_devices * sizeof *wide.devices);
    tg_system_sample_done(s);
    *s = wide;
    return TG_OK;
}

static tg_status take_head(reader *r)
{
    tg_system_host *host = r->host;
    const size_t cores = r->head.cores > host->core_count ? r->head.cores : host->core_count;
    const size_t devices =
        r->head.devices > host->device_count ? r->head.devices : host->device_count;
    memcpy(host->host, r->head.host, sizeof host->host);
    for (size_t i = 0; i < host->sample_count; i++)
        TG_TRY(widen(&host->samples[i], host->core_count, host->device_count, cores, devices));
    host->core_count = cores;
    host->device_count = devices;
    return TG_OK;
}

/* Makes of each two neighbours one. An odd last one stays as it is, of half as many. */
static void halve(reader *r)
{
    tg_system_host *host = r->host;
    size_t kept = 0;
    for (size_t i = 0; i < host->sample_count; i += 2) {
        tg_system_sample *s = &host->samples[i];
        if (i + 1 < host->sample_count) {
            tg_system_merge(s, s + 1, host->core_count, host->device_count);
            tg_system_sample_done(s + 1);
        }
        host->samples[kept++] = *s;
    }
    r->pending = host->sample_count % 2 ? host->merged : 2 * host->merged;
    host->sample_count = kept;
    host->merged *= 2;
}

static tg_status grow(reader *r)
{
    const size_t capacity = r->capacity ? 2 * r->capacity : 64;
    tg_system_sample *samples = realloc(r->host->samples, capacity * sizeof *samples);
    if (!samples)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu samples", capacity);
    r->host->samples = samples;
    r->capacity = capacity;
    return TG_OK;
}

/* Takes the sample's arrays. */
static tg_status take_sample(reader *r, tg_system_sample *s)
{
    tg_system_host *host = r->host;
    TG_TRY(widen(s, r->head.cores, r->head.devices, host->core_count, host->device_count));
    if (host->sample_count && r->pending < host->merged) {
        tg_system_merge(&host->samples[host->sample_count - 1], s, host->core_count,
                        host->device_count);
        tg_system_sample_done(s);
        r->pending++;
        return TG_OK;
    }
    if (host->sample_count == r->max_samples) {
        halve(r);
        if (r->pending < host->merged)
            return take_sample(r, s);
    }
    if (host->sample_count == r->capacity)
        TG_TRY(grow(r));
    host->samples[host->sample_count++] = *s;
    r->pending = 1;
    *s = (tg_system_sample){0};
    return TG_OK;
}

static tg_status read_line(void *user, const char *line, size_t length)
{
    reader *r = user;
    tg_system_sample sample;
    tg_system_line_kind kind;
    TG_TRY(tg_system_line_parse(line, length, &r->head, &sample, &kind));
    if (kind == TG_SYSTEM_LINE_BAD)
        r->bad++;
    if (kind == TG_SYSTEM_LINE_HEAD)
        return take_head(r);
    if (kind != TG_SYSTEM_LINE_SAMPLE)
        return TG_OK;
    tg_status status = take_sample(r, &sample);
    tg_system_sample_done(&sample);
    return status;
}

tg_status tg_system_read(const char *path, size_t max_samples, tg_system_host *out, size_t *out_bad)
{
    *out = (tg_system_host){.merged = 1};
    reader r = {.host = out, .max_samples = max_samples < 2 ? 2 : max_samples};
    tg_status status = tg_lines_read(path, read_line, &r);
    if (status < 0) {
        tg_system_host_done(out);
        return status;
    }
    if (out_bad)
        *out_bad = r.bad;
    return TG_OK;
}
