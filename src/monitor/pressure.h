/* pressure.h - /proc/pressure: the share of the time in which something waited for a core, memory or a disk. Kernels
 * without PSI leave it unknown. Errors none (source.h). */
#ifndef TG_MONITOR_PRESSURE_H
#define TG_MONITOR_PRESSURE_H

#include "monitor/source.h"
#include "run/system.h"

enum { TG_PRESSURES = 3 };

/* Seconds so far of the line "some"; NaN: there is none. */
double tg_pressure_parse(const char *text);

typedef struct tg_pressure {
    tg_source files[TG_PRESSURES];
    double before[TG_PRESSURES];
} tg_pressure;

void tg_pressure_open(const char *root, tg_pressure *out);
void tg_pressure_take(tg_pressure *pressure, tg_text *text, double seconds, tg_system_sample *out);
void tg_pressure_close(tg_pressure *pressure);

#endif
