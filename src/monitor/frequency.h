/* frequency.h - how fast the cores run: cpufreq, else /proc/cpuinfo. Asking wakes every core on some machines, so it is
 * read when slow and said again in between. Errors none (source.h). */
#ifndef TG_MONITOR_FREQUENCY_H
#define TG_MONITOR_FREQUENCY_H

#include "monitor/source.h"
#include "run/system.h"

/* Mean of the "cpu MHz" of a /proc/cpuinfo; NaN: it has none, as on most machines that are no PCs. */
double tg_frequency_parse(const char *cpuinfo);

typedef struct tg_frequency {
    const char *root; /* borrowed */
    double mhz;
} tg_frequency;

void tg_frequency_open(const char *root, tg_frequency *out);
void tg_frequency_take(tg_frequency *frequency, tg_text *text, size_t cores, bool slow,
                       tg_system_sample *out);

#endif
