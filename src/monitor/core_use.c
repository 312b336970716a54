#include "monitor/core_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL };
enum { MOST_CORES = 1 << 16 };

/* The next line of a core: *at is behind its number. The line of all cores has none. */
static bool next_core(const char **at, size_t *out_number)
{
    double number;
    while (strncmp(*at, "cpu", 3) == 0) {
        const char *p = *at + 3;
        const bool numbered = *p != ' ' && tg_scan_number(&p, &number);
        if (numbered && number < MOST_CORES) {
            *at = p;
            *out_number = (size_t)number;
            return true;
        }
        *at += strcspn(*at, "\n");
        *at += **at == '\n';
    }
    return false;
}

static void next_line(const char **at)
{
    *at += strcspn(*at, "\n");
    *at += **at == '\n';
}

size_t tg_core_use_count(const char *stat)
{
    size_t count = 0, number;
    while (next_core(&stat, &number)) {
        count = number + 1 > count ? number + 1 : count;
        next_line(&stat);
    }
    return count;
}

/* Old kernels have fewer columns: none of what those count. */
void tg_core_use_parse(const char *stat, size_t count, tg_core_ticks *out)
{
    size_t number;
    for (size_t c = 0; c < count; c++)
        out[c].ticks[0] = NAN;
    for (; next_core(&stat, &number); next_line(&stat)) {
        tg_core_ticks core = {{NAN}};
        for (int k = 0; k < TG_CORE_TICKS && tg_scan_number(&stat, &core.ticks[k]); k++)
            ;
        if (number < count)
            out[number] = core;
    }
}

/* Waiting for disks, and idleness, are seen to fall back by a tick. */
static double grown(const tg_core_ticks *before, const tg_core_ticks *now, int kind)
{
    return fmax(0, now->ticks[kind] - before->ticks[kind]);
}

tg_system_core tg_core_use_share(const tg_core_ticks *before, const tg_core_ticks *now)
{
    double grew[TG_CORE_TICKS], sum = 0;
    for (int k = 0; k < TG_CORE_TICKS; k++)
        sum += grew[k] = grown(before, now, k);
    if (isnan(before->ticks[0]) || isnan(now->ticks[0]) || sum <= 0)
        return (tg_system_core){NAN, NAN, NAN, NAN};
    return (tg_system_core){.user = (float)((grew[USER] + grew[NICE]) / sum),
                            .system = (float)((grew[SYSTEM] + grew[IRQ] + grew[SOFTIRQ]) / sum),
                            .iowait = (float)(grew[IOWAIT] / sum),
                            .steal = (float)(grew[STEAL] / sum)};
}

static void forget(tg_core_ticks *ticks, size_t count)
{
    for (size_t c = 0; c < count; c++)
        ticks[c].ticks[0] = NAN;
}

tg_status tg_core_use_open(const char *root, tg_text *text, tg_core_use *out)
{
    *out = (tg_core_use){.stat = tg_source_open(root, "/proc/stat"), .switches = NAN};
    out->count = tg_source_read(&out->stat, text) ? tg_core_use_count(text->data) : 0;
    out->before = calloc(out->count + 1, sizeof *out->before);
    out->now = calloc(out->count + 1, sizeof *out->now);
    if (!out->before || !out->now) {
        tg_core_use_close(out);
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu cores", out->count);
    }
    forget(out->before, out->count);
    return TG_OK;
}

void tg_core_use_take(tg_core_use *cores, tg_text *text, double seconds, tg_system_sample *out)
{
    if (!tg_source_read(&cores->stat, text)) {
        forget(cores->before, cores->count);
        cores->switches = NAN;
        return;
    }
    tg_core_use_parse(text->data, cores->count, cores->now);
    for (size_t c = 0; c < cores->count; c++)
        out->cores[c] = tg_core_use_share(&cores->before[c], &cores->now[c]);
    tg_core_ticks *swap = cores->before;
    cores->before = cores->now;
    cores->now = swap;
    const double switches = tg_scan_key(text->data, "ctxt");
    out->values[TG_SYSTEM_SWITCHES] = tg_rate(cores->switches, switches, seconds);
    cores->switches = switches;
    /* the thread that reads is one of those that run */
    const double running = tg_scan_key(text->data, "procs_running");
    out->values[TG_SYSTEM_RUNNING] = running >= 1 ? running - 1 : running;
    out->values[TG_SYSTEM_BLOCKED] = tg_scan_key(text->data, "procs_blocked");
}

void tg_core_use_close(tg_core_use *cores)
{
    tg_source_close(&cores->stat);
    free(cores->before);
    free(cores->now);
    *cores = (tg_core_use){.stat.fd = -1};
}
