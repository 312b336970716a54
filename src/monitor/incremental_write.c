#include "monitor/incremental.h"

#include "base/json_writer.h"
#include "os/file.h"
#include "os/folder.h"
#include "run/system.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES = 4096 };

/* The file of the minute under way. */
typedef struct minute_file {
    const char *folder, *node; /* node: as the run's file is called, without its ending */
    char path[PATH_BYTES];
    int64_t minute; /* -1: none */
    tg_text text;
    size_t rows;
} minute_file;

static tg_status write_out(minute_file *f)
{
    if (f->minute < 0)
        return TG_OK;
    f->minute = -1;
    TG_TRY(tg_text_check(&f->text, f->path));
    tg_status status = tg_file_write(f->path, f->text.data, f->text.length);
    tg_text_clear(&f->text);
    return status;
}

static tg_status begin_minute(minute_file *f, double time)
{
    const int64_t minute = (int64_t)floor(time / 60) * 60;
    const time_t seconds = (time_t)minute;
    struct tm utc;
    char hour[32], folder[PATH_BYTES];
    if (minute == f->minute)
        return TG_OK;
    TG_TRY(write_out(f));
    gmtime_r(&seconds, &utc);
    strftime(hour, sizeof hour, "%Y%m%d%H", &utc);
    if (snprintf(folder, sizeof folder, "%s/system/incremental/%s", f->folder, hour) >=
            (int)sizeof folder ||
        snprintf(f->path, sizeof f->path, "%s/%lld.%s.json", folder, (long long)minute, f->node) >=
            (int)sizeof f->path)
        return tg_fail(TG_ERROR_USAGE, "%s: the path is too long", f->folder);
    f->minute = minute;
    return tg_folder_make(folder);
}

/* number < 0: no Name. */
static void put(minute_file *f, const char *type, int number, const char *dimension, double percent,
                const char *host, double time)
{
    char name[32];
    if (isnan(percent))
        return;
    tg_json_writer w = tg_json_writer_init(&f->text);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "Type", type);
    snprintf(name, sizeof name, "%s%d", type, number);
    if (number >= 0)
        tg_json_put_string(&w, "Name", name);
    tg_json_put_string(&w, "Dimension", dimension);
    tg_json_put_double(&w, "Value", round(percent * 100) / 100);
    tg_json_put_string(&w, "NodeId", host);
    tg_json_put_double(&w, "Timestamp", time);
    tg_json_end_object(&w);
    tg_text_append_char(&f->text, '\n');
    f->rows++;
}

static double mean_iowait(const tg_system_host *host, const tg_system_sample *s)
{
    double sum = 0;
    size_t known = 0;
    for (size_t c = 0; c < host->core_count; c++)
        if (!isnan(s->cores[c].iowait)) {
            sum += (double)s->cores[c].iowait;
            known++;
        }
    return known ? sum / (double)known : NAN;
}

static void put_sample(minute_file *f, const tg_system_host *host, const tg_system_sample *s)
{
    const double total = s->values[TG_SYSTEM_MEMORY_TOTAL_BYTES];
    for (size_t c = 0; c < host->core_count; c++)
        put(f, "cpu", (int)c, "CPUUtilization", 100 * (double)tg_system_core_busy(&s->cores[c]),
            host->host, s->time);
    for (size_t d = 0; d < host->device_count; d++) {
        const tg_system_device *device = &s->devices[d];
        put(f, "gpu", (int)d, "GPUUtilization", 100 * (double)device->utilisation, host->host,
            s->time);
        put(f, "gpu", (int)d, "GPUMemoryUtilization", 100 * (double)device->memory_utilisation,
            host->host, s->time);
    }
    put(f, "i/o", -1, "I/OWaitPercentage", 100 * mean_iowait(host, s), host->host, s->time);
    put(f, "memory", -1, "MemoryUsedPercent", 100 * s->values[TG_SYSTEM_MEMORY_USED_BYTES] / total,
        host->host, s->time);
}

static tg_status export_host(const char *path, const char *node, const char *folder,
                             tg_incremental_count *count)
{
    tg_system_host host;
    minute_file f = {.folder = folder, .node = node, .minute = -1};
    TG_TRY(tg_system_read(path, SIZE_MAX, &host, NULL));
    tg_status status = TG_OK;
    for (size_t i = 0; i < host.sample_count && status == TG_OK; i++) {
        status = begin_minute(&f, host.samples[i].time);
        if (status == TG_OK)
            put_sample(&f, &host, &host.samples[i]);
    }
    if (status == TG_OK)
        status = write_out(&f);
    count->nodes++;
    count->samples += host.sample_count;
    count->rows += f.rows;
    tg_text_done(&f.text);
    tg_system_host_done(&host);
    return status;
}

static tg_status export_file(const char *system, const char *name, const char *folder,
                             tg_incremental_count *count)
{
    static const char ending[] = ".jsonl";
    const size_t n = strlen(name), m = sizeof ending - 1;
    char node[256];
    if (n <= m || n - m >= sizeof node || strcmp(name + n - m, ending) != 0 || name[0] == '.')
        return TG_OK;
    memcpy(node, name, n - m);
    node[n - m] = '\0';
    char *path = tg_path_join(system, name);
    tg_status status = path ? export_host(path, node, folder, count)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    return status;
}

static tg_status export_files(const char *system, const char *folder, tg_incremental_count *count)
{
    const struct dirent *entry;
    tg_status status = TG_OK;
    DIR *dir = opendir(system);
    if (!dir)
        return tg_fail(tg_file_read_fault(errno), "no samples of machines: cannot read %s: %s",
                       system, strerrordesc_np(errno));
    while (status == TG_OK && (entry = readdir(dir)))
        status = export_file(system, entry->d_name, folder, count);
    closedir(dir);
    if (status == TG_OK && !count->samples)
        status = tg_fail(TG_ERROR_INPUT, "%s: no samples of machines in it", system);
    return status;
}

tg_status tg_system_export(const char *run_path, const char *folder, tg_incremental_count *out)
{
    tg_incremental_count count = {0};
    char *system = tg_path_join(run_path, "system");
    if (!system)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = export_files(system, folder, &count);
    free(system);
    if (status == TG_OK)
        *out = count;
    return status;
}
