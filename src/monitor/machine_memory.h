/* machine_memory.h - /proc/meminfo and /proc/vmstat: the machine's memory, and page faults. Errors none (source.h). */
#ifndef TG_MONITOR_MACHINE_MEMORY_H
#define TG_MONITOR_MACHINE_MEMORY_H

#include "monitor/source.h"
#include "run/system.h"

typedef struct tg_machine_memory {
    tg_source meminfo, vmstat;
    double faults, major_faults;
} tg_machine_memory;

/* The TG_SYSTEM_MEMORY_* and SWAP values of a /proc/meminfo; NaN for what it lacks. Used memory is all less what could be
 * taken without swapping, which kernels before 3.14 do not say and which is then free and cache. */
void tg_meminfo_parse(const char *meminfo, double values[TG_SYSTEM_METRICS]);

void tg_machine_memory_open(const char *root, tg_machine_memory *out);
void tg_machine_memory_take(tg_machine_memory *memory, tg_text *text, double seconds,
                            tg_system_sample *out);
void tg_machine_memory_close(tg_machine_memory *memory);

#endif
