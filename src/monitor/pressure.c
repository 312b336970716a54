#include "monitor/pressure.h"

#include <math.h>
#include <string.h>

static const char *const FILES[TG_PRESSURES] = {"/proc/pressure/cpu", "/proc/pressure/memory",
                                                "/proc/pressure/io"};
_Static_assert(TG_SYSTEM_PRESSURE_MEMORY == TG_SYSTEM_PRESSURE_CPU + 1 &&
                   TG_SYSTEM_PRESSURE_IO == TG_SYSTEM_PRESSURE_CPU + 2,
               "columns in the order of FILES");

double tg_pressure_parse(const char *text)
{
    const char *total = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    double us;
    if (!total || total > strchrnul(text, '\n'))
        return NAN;
    total += strlen("total=");
    return tg_scan_number(&total, &us) ? us * 1e-6 : NAN;
}

void tg_pressure_open(const char *root, tg_pressure *out)
{
    for (int i = 0; i < TG_PRESSURES; i++) {
        out->files[i] = tg_source_open(root, FILES[i]);
        out->before[i] = NAN;
    }
}

void tg_pressure_take(tg_pressure *pressure, tg_text *text, double seconds, tg_system_sample *out)
{
    for (int i = 0; i < TG_PRESSURES; i++) {
        const double now =
            tg_source_read(&pressure->files[i], text) ? tg_pressure_parse(text->data) : NAN;
        const double share = tg_rate(pressure->before[i], now, seconds);
        out->values[TG_SYSTEM_PRESSURE_CPU + i] = share > 1 ? 1 : share;
        pressure->before[i] = now;
    }
}

void tg_pressure_close(tg_pressure *pressure)
{
    for (int i = 0; i < TG_PRESSURES; i++)
        tg_source_close(&pressure->files[i]);
}
