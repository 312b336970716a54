#include "monitor/machine_memory.h"

#include <math.h>

static double kib(const char *meminfo, const char *key)
{
    return tg_scan_key(meminfo, key) * 1024;
}

static double or_none(double value)
{
    return isnan(value) ? 0 : value;
}

void tg_meminfo_parse(const char *meminfo, double values[TG_SYSTEM_METRICS])
{
    const double total = kib(meminfo, "MemTotal"), free_bytes = kib(meminfo, "MemFree");
    const double cache = kib(meminfo, "Cached") + or_none(kib(meminfo, "Buffers")) +
                         or_none(kib(meminfo, "SReclaimable")) - or_none(kib(meminfo, "Shmem"));
    const double available = kib(meminfo, "MemAvailable");
    values[TG_SYSTEM_MEMORY_TOTAL_BYTES] = total;
    values[TG_SYSTEM_MEMORY_USED_BYTES] =
        total - (isnan(available) ? free_bytes + cache : available);
    values[TG_SYSTEM_MEMORY_CACHE_BYTES] = cache;
    values[TG_SYSTEM_SWAP_USED_BYTES] = kib(meminfo, "SwapTotal") - kib(meminfo, "SwapFree");
}

void tg_machine_memory_open(const char *root, tg_machine_memory *out)
{
    *out = (tg_machine_memory){.meminfo = tg_source_open(root, "/proc/meminfo"),
                               .vmstat = tg_source_open(root, "/proc/vmstat"),
                               .faults = NAN,
                               .major_faults = NAN};
}

void tg_machine_memory_take(tg_machine_memory *memory, tg_text *text, double seconds,
                            tg_system_sample *out)
{
    double faults = NAN, major_faults = NAN;
    if (tg_source_read(&memory->meminfo, text))
        tg_meminfo_parse(text->data, out->values);
    if (tg_source_read(&memory->vmstat, text)) {
        faults = tg_scan_key(text->data, "pgfault");
        major_faults = tg_scan_key(text->data, "pgmajfault");
    }
    out->values[TG_SYSTEM_FAULTS] = tg_rate(memory->faults, faults, seconds);
    out->values[TG_SYSTEM_MAJOR_FAULTS] = tg_rate(memory->major_faults, major_faults, seconds);
    memory->faults = faults;
    memory->major_faults = major_faults;
}

void tg_machine_memory_close(tg_machine_memory *memory)
{
    tg_source_close(&memory->meminfo);
    tg_source_close(&memory->vmstat);
}
