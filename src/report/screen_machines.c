/* Machines: cores, threads by role, queue, memory, disks and network, accelerators. */
#include "report/screen_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 16, CELLS_LEAST = 8 };

static double value_of(const tg_live_host *host, int metric)
{
    return host->sample.seconds > 0 ? host->sample.values[metric] : NAN;
}

/* Over machines, of those that are known; NaN: none is. */
static double sum_of(const tg_live *live, int metric)
{
    double sum = NAN;
    for (size_t h = 0; h < live->host_count; h++) {
        const double value = value_of(&live->hosts[h], metric);
        if (!isnan(value))
            sum = isnan(sum) ? value : sum + value;
    }
    return sum;
}

static double busy_of(const tg_live_host *host)
{
    const tg_system_host shape = {.core_count = host->head.cores};
    return tg_system_busy(&shape, &host->sample);
}

/* A cell a core; of more cores than cells, the mean of some. */
static void append_cores(const tg_screen_page *page, const tg_live_host *host, size_t room,
                         tg_text *line)
{
    const size_t cores = host->head.cores, cells = cores < room ? cores : room;
    for (size_t c = 0; c < cells; c++) {
        double sum = 0;
        size_t known = 0;
        for (size_t i = c * cores / cells; i < (c + 1) * cores / cells; i++) {
            const float busy = tg_system_core_busy(&host->sample.cores[i]);
            sum += isnan(busy) ? 0 : busy;
            known += !isnan(busy);
        }
        tg_glyphs_cell(&page->screen->glyphs, known ? sum / (double)known : NAN, line);
    }
}

/* "a  ||||||||  97 % busy, 5.2 run or wait on 2" */
static void put_cores(tg_screen_page *page, const tg_live_host *host, bool first, int rank)
{
    const tg_live *live = page->live;
    const double running = value_of(host, TG_SYSTEM_RUNNING);
    const double age = live->now - host->sample.time;
    const bool named = live->host_count > 1;
    tg_text *line = tg_screen_begin(page, rank, first ? "cores" : ""), words = {0};
    if (!(host->sample.seconds > 0)) {
        tg_screen_append(page, line, "no sample yet");
        return;
    }
    if (named) {
        tg_glyphs_fit(&page->screen->glyphs, host->head.host, 12, line);
        tg_text_append_char(line, ' ');
    }
    tg_text_append_format(&words, "| %.0f %% busy", 100 * busy_of(host));
    if (!isnan(running))
        tg_text_append_format(&words, ", %.1f threads want %zu core%s", running, host->head.cores,
                              host->head.cores == 1 ? "" : "s");
    if (tg_live_get_state(live) == TG_LIVE_RUNS && age > 10)
        tg_text_append_format(&words, " (%.0f s ago)", age);
    const size_t room = tg_screen_room(page, line);
    tg_text_append_char(line, '|');
    append_cores(page, host,
                 room > words.length + CELLS_LEAST ? room - words.length - 1 : CELLS_LEAST, line);
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
}

static const char *const ROLES[TG_ROLES] = {"compute", "loader", "comm.", "other"};

static void put_threads(tg_screen_page *page)
{
    const tg_live *live = page->live;
    tg_text *line = tg_screen_begin(page, 6, "threads"), words = {0};
    bool known = false;
    for (int r = 0; r < TG_ROLES; r++) {
        const double threads = sum_of(live, TG_SYSTEM_ROLE(r, TG_SYSTEM_THREADS));
        const double cpu = sum_of(live, TG_SYSTEM_ROLE(r, TG_SYSTEM_CPU));
        if (!(threads > 0))
            continue;
        tg_text_append_format(&words, "%s%.0f %s", known ? ", " : "", threads, ROLES[r]);
        if (!isnan(cpu))
            tg_text_append_format(&words, " on %.2f cores", cpu);
        known = true;
    }
    tg_screen_append(page, line, known ? tg_text_string(&words) : "not known");
    tg_text_done(&words);
}

static void append_rate(tg_text *words, const char *what, double value)
{
    tg_text_append_string(words, what);
    tg_glyphs_count(value, words);
    if (!isnan(value))
        tg_text_append_string(words, "/s");
}

static void put_waiting(tg_screen_page *page)
{
    const tg_live *live = page->live;
    tg_text *line = tg_screen_begin(page, 7, "waiting"), words = {0};
    const double wait = sum_of(live, TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_WAIT));
    const double pushed = sum_of(live, TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_INVOLUNTARY));
    const double quota = sum_of(live, TG_SYSTEM_GROUP_THROTTLED_S);
    if (!isnan(wait))
        tg_text_append_format(&words, "compute threads %.2f s/s, ", wait);
    append_rate(&words, "pushed aside ", pushed);
    append_rate(&words, ", switches ", sum_of(live, TG_SYSTEM_SWITCHES));
    if (quota > 0)
        tg_text_append_format(&words, ", quota %.2f s/s", quota);
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
}

/* The machine that is nearest to its limit: its group's where that is the smaller one. */
static void find_memory(const tg_live *live, double *out_used, double *out_limit, bool *out_group)
{
    *out_used = *out_limit = NAN;
    *out_group = false;
    for (size_t h = 0; h < live->host_count; h++) {
        const tg_live_host *host = &live->hosts[h];
        const double total = value_of(host, TG_SYSTEM_MEMORY_TOTAL_BYTES);
        const double limit = value_of(host, TG_SYSTEM_GROUP_LIMIT_BYTES);
        const bool group = limit < total;
        const double of = group ? limit : total;
        const double used =
            value_of(host, group ? TG_SYSTEM_GROUP_USED_BYTES : TG_SYSTEM_MEMORY_USED_BYTES);
        if (isnan(of) || isnan(used) || (!isnan(*out_used) && used / of <= *out_used / *out_limit))
            continue;
        *out_used = used;
        *out_limit = of;
        *out_group = group;
    }
}

static void put_bar(const tg_screen_page *page, double share, tg_text *line)
{
    if (tg_screen_room(page, line) >= 2 * BAR)
        tg_glyphs_bar(&page->screen->glyphs, share, BAR, line);
}

static void put_memory(tg_screen_page *page)
{
    const tg_live *live = page->live;
    const tg_step_record *last = tg_live_last_step(live);
    double used, limit;
    bool group;
    tg_text *line = tg_screen_begin(page, 5, "memory"), words = {0};
    find_memory(live, &used, &limit, &group);
    double job = sum_of(live, TG_SYSTEM_JOB_RSS_BYTES);
    if (isnan(job) && last)
        job = (double)last->rss_bytes;
    if (!isnan(used)) {
        put_bar(page, used / limit, line);
        tg_text_append_char(&words, ' ');
        tg_glyphs_bytes(used, &words);
        tg_text_append_string(&words, " of ");
        tg_glyphs_bytes(limit, &words);
        tg_text_append_string(&words, group ? " (limit of its group), " : ", ");
    }
    tg_text_append_string(&words, "the job ");
    tg_glyphs_bytes(job, &words);
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
}

static void append_pair(tg_text *words, const char *what, double a, const char *and_what, double b)
{
    tg_text_append_string(words, what);
    tg_glyphs_bytes(a, words);
    tg_text_append_string(words, isnan(a) ? "" : "/s");
    tg_text_append_string(words, and_what);
    tg_glyphs_bytes(b, words);
    tg_text_append_string(words, isnan(b) ? "" : "/s");
}

static void put_traffic(tg_screen_page *page)
{
    const tg_live *live = page->live;
    tg_text *line = tg_screen_begin(page, 7, "disk"), words = {0};
    append_pair(&words, "read ", sum_of(live, TG_SYSTEM_DISK_READ_BYTES), ", written ",
                sum_of(live, TG_SYSTEM_DISK_WRITTEN_BYTES));
    append_pair(&words, "   net in ", sum_of(live, TG_SYSTEM_NET_RECEIVED_BYTES), ", out ",
                sum_of(live, TG_SYSTEM_NET_SENT_BYTES));
    tg_screen_append(page, line, tg_text_string(&words));
    tg_text_done(&words);
}

static void put_devices(tg_screen_page *page, const tg_live_host *host)
{
    for (size_t d = 0; d < host->head.devices && host->sample.seconds > 0; d++) {
        const tg_system_device *device = &host->sample.devices[d];
        tg_text *line = tg_screen_begin(page, 5, d ? "" : "gpus"), words = {0};
        put_bar(page, device->utilisation, line);
        tg_text_append_format(&words, " %zu ", d);
        if (!isnan(device->utilisation))
            tg_text_append_format(&words, "%.0f %% busy, ", 100 * (double)device->utilisation);
        tg_glyphs_bytes(device->memory_used_bytes, &words);
        tg_text_append_string(&words, " of ");
        tg_glyphs_bytes(device->memory_total_bytes, &words);
        tg_screen_append(page, line, tg_text_string(&words));
        tg_text_done(&words);
    }
}

void tg_screen_put_machines(tg_screen_page *page)
{
    const tg_live *live = page->live;
    enum { MOST = 24 };
    bool sampled = false;
    for (size_t h = 0; h < live->host_count && h < MOST; h++) {
        put_cores(page, &live->hosts[h], h == 0, h == 0 ? 2 : 4 + (int)h);
        sampled = sampled || live->hosts[h].sample.seconds > 0;
    }
    if (live->host_count > MOST) {
        tg_text *line = tg_screen_begin(page, 7, "");
        tg_text_append_format(line, "and %zu machines more", live->host_count - MOST);
    }
    if (sampled) {
        put_threads(page);
        put_waiting(page);
    }
    put_memory(page);
    if (sampled)
        put_traffic(page);
    for (size_t h = 0; h < live->host_count && h < MOST; h++)
        put_devices(page, &live->hosts[h]);
}
