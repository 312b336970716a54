#include "monitor/counters.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ, WRITTEN, BUSY };
enum { SECTOR_BYTES = 512 };

static void next_line(const char **at)
{
    *at += strcspn(*at, "\n");
    *at += **at == '\n';
}

/* The word at *at without the blanks before it, up to one of `ends`; false where it is empty or too long. */
static bool take_name(const char **at, const char *ends, char out[TG_COUNTER_NAME_BYTES])
{
    *at += strspn(*at, " ");
    const size_t n = strcspn(*at, ends);
    if (n == 0 || n >= TG_COUNTER_NAME_BYTES)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return true;
}

static size_t take_numbers(const char **at, double *out, size_t most)
{
    size_t count = 0;
    while (count < most && tg_scan_number(at, &out[count]))
        count++;
    return count;
}

/* major minor NAME reads merged sectors ms writes merged sectors ms in_flight io_ms ... */
static bool parse_disk_line(const char *line, tg_counter *out)
{
    double ids[2], n[10];
    if (take_numbers(&line, ids, 2) < 2 || !take_name(&line, " \n", out->name) ||
        take_numbers(&line, n, 10) < 10)
        return false;
    out->values[READ] = n[2] * SECTOR_BYTES;
    out->values[WRITTEN] = n[6] * SECTOR_BYTES;
    out->values[BUSY] = n[9] * 1e-3;
    return true;
}

/* NAME: bytes packets errs drop fifo frame compressed multicast bytes ... */
static bool parse_interface_line(const char *line, tg_counter *out)
{
    double n[9];
    if (!take_name(&line, ": |\n", out->name) || *line++ != ':' || take_numbers(&line, n, 9) < 9)
        return false;
    out->values[READ] = n[0];
    out->values[WRITTEN] = n[8];
    out->values[BUSY] = NAN;
    return true;
}

static bool next(const char **at, bool (*parse)(const char *, tg_counter *), tg_counter *out)
{
    while (**at) {
        const char *line = *at;
        next_line(at);
        if (parse(line, out))
            return true;
    }
    return false;
}

bool tg_disk_parse(const char **at, tg_counter *out)
{
    return next(at, parse_disk_line, out);
}

bool tg_interface_parse(const char **at, tg_counter *out)
{
    return next(at, parse_interface_line, out);
}

static bool is_there(const char *root, const char *folder, const char *name, const char *file)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s%s/%s%s", root, folder, name, file);
    return access(path, F_OK) == 0;
}

static bool is_empty(const char *root, const char *name)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/block/%s/slaves", root, name);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    size_t count = 0;
    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count == 0;
}

static bool is_whole_disk(const tg_counters *c, const char *name)
{
    static const char *const VIRTUAL[] = {"loop", "ram", "zram"};
    for (size_t i = 0; i < sizeof VIRTUAL / sizeof VIRTUAL[0]; i++)
        if (strncmp(name, VIRTUAL[i], strlen(VIRTUAL[i])) == 0)
            return false;
    return is_there(c->root, "/sys/block", name, "") && is_empty(c->root, name);
}

static bool is_outward(const tg_counters *c, const char *name)
{
    return strcmp(name, "lo") != 0 &&
           (!c->net_devices || is_there(c->root, "/sys/class/net", name, "/device"));
}

static bool find_net_devices(const tg_counters *c, tg_text *text)
{
    tg_counter counter;
    if (!tg_source_once(c->root, "/proc/net/dev", text))
        return false;
    for (const char *at = text->data; tg_interface_parse(&at, &counter);)
        if (is_there(c->root, "/sys/class/net", counter.name, "/device"))
            return true;
    return false;
}

tg_status tg_counters_open(const char *root, tg_counters *out)
{
    tg_text text = {0};
    *out = (tg_counters){.root = root,
                         .diskstats = tg_source_open(root, "/proc/diskstats"),
                         .interfaces = tg_source_open(root, "/proc/net/dev"),
                         .disks = calloc(TG_COUNTERS, sizeof *out->disks),
                         .nets = calloc(TG_COUNTERS, sizeof *out->nets),
                         .disks_known = is_there(root, "/sys", "block", "")};
    out->net_devices = find_net_devices(out, &text);
    tg_text_done(&text);
    if (out->disks && out->nets)
        return TG_OK;
    tg_counters_close(out);
    return tg_fail(TG_ERROR_MACHINE, "out of memory for a monitor");
}

/* The same device in the list of before: mostly at the same place. */
static tg_counter *find(tg_counter *list, size_t count, size_t likely, const char *name)
{
    if (likely < count && strcmp(list[likely].name, name) == 0)
        return &list[likely];
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* What a list's devices counted since the sample before, and how busy the busiest one was. */
typedef struct growth {
    double read, written, busiest;
} growth;

static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = (isnan(*sum) ? 0 : *sum) + value;
}

static growth take_list(tg_counters *c, const char *at, bool disks, double seconds)
{
    tg_counter *list = disks ? c->disks : c->nets, now;
    size_t *count = disks ? &c->disk_count : &c->net_count;
    growth sum = {NAN, NAN, NAN};
    for (size_t i = 0; disks ? tg_disk_parse(&at, &now) : tg_interface_parse(&at, &now); i++) {
        tg_counter *before = find(list, *count, i, now.name);
        if (!before && *count == TG_COUNTERS)
            continue;
        now.counts = before  ? before->counts
                     : disks ? is_whole_disk(c, now.name)
                             : is_outward(c, now.name);
        if (before && now.counts) {
            add(&sum.read, tg_rate(before->values[READ], now.values[READ], seconds));
            add(&sum.written, tg_rate(before->values[WRITTEN], now.values[WRITTEN], seconds));
            sum.busiest =
                fmax(sum.busiest, tg_rate(before->values[BUSY], now.values[BUSY], seconds));
        }
        list[before ? (size_t)(before - list) : (*count)++] = now;
    }
    return sum;
}

void tg_counters_take(tg_counters *c, tg_text *text, double seconds, tg_system_sample *out)
{
    if (c->disks_known && tg_source_read(&c->diskstats, text)) {
        const growth disks = take_list(c, text->data, true, seconds);
        out->values[TG_SYSTEM_DISK_READ_BYTES] = disks.read;
        out->values[TG_SYSTEM_DISK_WRITTEN_BYTES] = disks.written;
        out->values[TG_SYSTEM_DISK_BUSY] = disks.busiest > 1 ? 1 : disks.busiest;
    }
    if (tg_source_read(&c->interfaces, text)) {
        const growth nets = take_list(c, text->data, false, seconds);
        out->values[TG_SYSTEM_NET_RECEIVED_BYTES] = nets.read;
        out->values[TG_SYSTEM_NET_SENT_BYTES] = nets.written;
    }
}

void tg_counters_close(tg_counters *c)
{
    if (!c->root)
        return;
    tg_source_close(&c->diskstats);
    tg_source_close(&c->interfaces);
    free(c->disks);
    free(c->nets);
    *c = (tg_counters){0};
}
