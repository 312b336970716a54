#include "monitor/frequency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double tg_frequency_parse(const char *cpuinfo)
{
    double sum = 0, mhz;
    size_t count = 0;
    for (const char *at = cpuinfo; (at = strstr(at, "cpu MHz")); at++) {
        const char *value = at + strcspn(at, ":\n");
        if (*value != ':')
            continue;
        value++;
        if (!tg_scan_number(&value, &mhz)) /* whole ones are exact enough */
            continue;
        sum += mhz;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

static double mean_of_cores(const char *root, tg_text *text, size_t cores)
{
    double sum = 0, khz;
    size_t count = 0;
    for (size_t c = 0; c < cores; c++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cpufreq/scaling_cur_freq", c);
        if (!tg_source_once(root, path, text))
            continue;
        const char *at = text->data;
        if (!tg_scan_number(&at, &khz))
            continue;
        sum += khz / 1000;
        count++;
    }
    return count ? sum / (double)count : NAN;
}

void tg_frequency_open(const char *root, tg_frequency *out)
{
    *out = (tg_frequency){.root = root, .mhz = NAN};
}

void tg_frequency_take(tg_frequency *f, tg_text *text, size_t cores, bool slow,
                       tg_system_sample *out)
{
    if (slow) {
        f->mhz = mean_of_cores(f->root, text, cores);
        if (isnan(f->mhz) && tg_source_once(f->root, "/proc/cpuinfo", text))
            f->mhz = tg_frequency_parse(text->data);
    }
    out->values[TG_SYSTEM_FREQUENCY_MHZ] = f->mhz;
}
