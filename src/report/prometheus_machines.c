/* Machines in Prometheus' text format. */
#include "report/live.h"
#include "report/prometheus_family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double value_of(const tg_live_host *host, int metric)
{
    return host->sample.seconds > 0 ? host->sample.values[metric] : NAN;
}

static void put_busy(const tg_live *live, tg_text *out)
{
    tg_family all = {.out = out,
                     .run = live->path,
                     .name = "tagine_host_busy_ratio",
                     .help = "Mean busy share of the machine's cores"};
    for (size_t h = 0; h < live->host_count; h++) {
        const tg_live_host *host = &live->hosts[h];
        const tg_system_host shape = {.core_count = host->head.cores};
        const tg_label labels[] = {{"host", host->head.host}, {0}};
        tg_family_put(&all, labels,
                      host->sample.seconds > 0 ? tg_system_busy(&shape, &host->sample) : NAN);
    }
}

static void put_cores(const tg_live *live, tg_text *out)
{
    tg_family family = {.out = out,
                        .run = live->path,
                        .name = "tagine_core_busy_ratio",
                        .help = "Busy share of a core: user, system and stolen time"};
    for (size_t h = 0; h < live->host_count; h++) {
        const tg_live_host *host = &live->hosts[h];
        for (size_t c = 0; c < host->head.cores && host->sample.seconds > 0; c++) {
            char core[24];
            snprintf(core, sizeof core, "%zu", c);
            const tg_label labels[] = {{"host", host->head.host}, {"core", core}, {0}};
            tg_family_put(&family, labels, (double)tg_system_core_busy(&host->sample.cores[c]));
        }
    }
}

/* "disk_read_bytes" of "bytes/s" -> "tagine_host_disk_read_bytes_per_second" */
static void name_metric(int metric, char out[96])
{
    const char *unit = tg_system_metric_unit(metric), *name = tg_system_metric_name(metric);
    const size_t n = strlen(unit);
    const char *end = "";
    if (n > 2 && strcmp(unit + n - 2, "/s") == 0)
        end = "_per_second";
    else if (strcmp(unit, "share") == 0)
        end = "_ratio";
    else if (strcmp(unit, "cores") == 0 && !strstr(name, "cores"))
        end = "_cores";
    snprintf(out, 96, "tagine_host_%s%s", name, end);
}

static void put_metrics(const tg_live *live, tg_text *out)
{
    char name[96], help[96];
    for (int m = 0; m < TG_SYSTEM_FIRST_ROLE; m++) {
        name_metric(m, name);
        snprintf(help, sizeof help, "%s of the machine, %s", tg_system_metric_name(m),
                 tg_system_metric_unit(m));
        tg_family family = {.out = out, .run = live->path, .name = name, .help = help};
        for (size_t h = 0; h < live->host_count; h++) {
            const tg_label labels[] = {{"host", live->hosts[h].head.host}, {0}};
            tg_family_put(&family, labels, value_of(&live->hosts[h], m));
        }
    }
}

static void put_roles(const tg_live *live, tg_text *out)
{
    static const char *const ROLES[TG_ROLES] = {"compute", "loader", "communication", "other"};
    static const char *const NAMES[TG_SYSTEM_OF_ROLE][2] = {
        {"tagine_threads", "Threads of the job by what they do"},
        {"tagine_threads_cpu_cores", "Cores that they take"},
        {"tagine_threads_waiting", "Of them, those that could run and wait for a core"},
        {"tagine_threads_voluntary_switches_per_second", "How often they wait for something"},
        {"tagine_threads_involuntary_switches_per_second", "How often they are pushed aside"},
    };
    for (int of = 0; of < TG_SYSTEM_OF_ROLE; of++) {
        tg_family family = {
            .out = out, .run = live->path, .name = NAMES[of][0], .help = NAMES[of][1]};
        for (size_t h = 0; h < live->host_count; h++)
            for (int r = 0; r < TG_ROLES; r++) {
                const tg_label labels[] = {
                    {"host", live->hosts[h].head.host}, {"role", ROLES[r]}, {0}};
                tg_family_put(&family, labels, value_of(&live->hosts[h], TG_SYSTEM_ROLE(r, of)));
            }
    }
}

typedef enum device_value {
    UTILIZATION,
    MEMORY_TOTAL,
    MEMORY_USED,
    POWER,
    DEVICE_VALUES
} device_value;

static double of_device(const tg_system_device *device, device_value value)
{
    const double values[DEVICE_VALUES] = {(double)device->utilisation, device->memory_total_bytes,
                                          device->memory_used_bytes, device->power_w};
    return values[value];
}

/* Names and help as Triton has them, so that its dashboards work. */
static void put_devices(const tg_live *live, tg_text *out)
{
    static const char *const NAMES[DEVICE_VALUES][2] = {
        {"nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)"},
        {"nv_gpu_memory_total_bytes", "GPU total memory, in bytes"},
        {"nv_gpu_memory_used_bytes", "GPU used memory, in bytes"},
        {"nv_gpu_power_usage", "GPU power usage in watts"},
    };
    for (int v = 0; v < DEVICE_VALUES; v++) {
        tg_family family = {
            .out = out, .run = live->path, .name = NAMES[v][0], .help = NAMES[v][1]};
        for (size_t h = 0; h < live->host_count; h++) {
            const tg_live_host *host = &live->hosts[h];
            for (size_t d = 0; d < host->head.devices && host->sample.seconds > 0; d++) {
                char gpu[24];
                snprintf(gpu, sizeof gpu, "%zu", d);
                const tg_label labels[] = {{"host", host->head.host}, {"gpu", gpu}, {0}};
                tg_family_put(&family, labels,
                              of_device(&host->sample.devices[d], (device_value)v));
            }
        }
    }
}

void tg_prometheus_print_machines(const tg_live *live, tg_text *out)
{
    put_busy(live, out);
    put_cores(live, out);
    put_metrics(live, out);
    put_roles(live, out);
    put_devices(live, out);
}
