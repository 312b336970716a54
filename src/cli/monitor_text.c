#include "cli/monitor_text.h"

#include <math.h>
#include <time.h>

#define MIB 1048576.0
#define GIB 1073741824.0

void tg_monitor_text_head(tg_text *out)
{
    tg_text_append_string(
        out, "            cores, %      threads    memory, GiB   disk, MiB/s    net, MiB/s   gpu\n"
             "UTC        busy iow ste  run wait    used    of    read  write     in    out    %\n");
}

/* `digits` behind the point, in `width` columns with a blank before; what is too long for it takes more. */
static void put(double value, int width, int digits, tg_text *out)
{
    if (isnan(value))
        tg_text_append_format(out, " %*s", width, "-");
    else
        tg_text_append_format(out, " %*.*f", width, digits, value);
}

typedef struct mean {
    double sum;
    size_t known;
} mean;

static void add(mean *m, float value)
{
    if (isnan(value))
        return;
    m->sum += (double)value;
    m->known++;
}

static double percent(const mean *m)
{
    return m->known ? 100 * m->sum / (double)m->known : NAN;
}

static void put_cores(const tg_system_sample *s, size_t cores, tg_text *out)
{
    mean busy = {0}, iowait = {0}, steal = {0};
    for (size_t c = 0; c < cores; c++) {
        add(&busy, tg_system_core_busy(&s->cores[c]));
        add(&iowait, s->cores[c].iowait);
        add(&steal, s->cores[c].steal);
    }
    put(percent(&busy), 6, 0, out);
    put(percent(&iowait), 3, 0, out);
    put(percent(&steal), 3, 0, out);
}

void tg_monitor_text_sample(const tg_system_sample *s, size_t cores, size_t devices, tg_text *out)
{
    const double *v = s->values;
    const time_t seconds = (time_t)s->time;
    struct tm utc;
    char clock[16];
    mean gpu = {0};
    gmtime_r(&seconds, &utc);
    strftime(clock, sizeof clock, "%H:%M:%S", &utc);
    tg_text_append_string(out, clock);
    put_cores(s, cores, out);
    put(v[TG_SYSTEM_RUNNING], 4, 0, out);
    put(v[TG_SYSTEM_BLOCKED], 4, 0, out);
    put(v[TG_SYSTEM_MEMORY_USED_BYTES] / GIB, 7, 1, out);
    put(v[TG_SYSTEM_MEMORY_TOTAL_BYTES] / GIB, 5, 1, out);
    put(v[TG_SYSTEM_DISK_READ_BYTES] / MIB, 7, 1, out);
    put(v[TG_SYSTEM_DISK_WRITTEN_BYTES] / MIB, 6, 1, out);
    put(v[TG_SYSTEM_NET_RECEIVED_BYTES] / MIB, 6, 1, out);
    put(v[TG_SYSTEM_NET_SENT_BYTES] / MIB, 6, 1, out);
    for (size_t d = 0; d < devices; d++)
        add(&gpu, s->devices[d].utilisation);
    put(percent(&gpu), 4, 0, out);
    tg_text_append_char(out, '\n');
}
