#include "monitor/group_use.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_BYTES = 4096 };
#define NO_LIMIT_V1 0x1p60 /* version 1 writes the largest number of pages */

tg_group_throttle tg_group_throttle_parse(const char *cpu_stat, int version)
{
    return (tg_group_throttle){.periods = tg_scan_key(cpu_stat, "nr_periods"),
                               .throttled = tg_scan_key(cpu_stat, "nr_throttled"),
                               .seconds = version == 2
                                              ? tg_scan_key(cpu_stat, "throttled_usec") * 1e-6
                                              : tg_scan_key(cpu_stat, "throttled_time") * 1e-9};
}

double tg_group_limit_parse(const char *text)
{
    double value;
    if (strncmp(text, "max", 3) == 0 || strncmp(text, "-1", 2) == 0)
        return INFINITY;
    if (!tg_scan_number(&text, &value))
        return NAN;
    return value >= NO_LIMIT_V1 ? INFINITY : value;
}

double tg_group_quota_parse(const char *cpu_max)
{
    const double quota = tg_group_limit_parse(cpu_max);
    double period = 100000;
    tg_scan_word(&cpu_max);
    (void)tg_scan_number(&cpu_max, &period);
    return period > 0 ? quota / period : NAN;
}

double tg_group_file_bytes(const char *memory_stat, int version)
{
    if (version == 2)
        return tg_scan_key(memory_stat, "inactive_file") + tg_scan_key(memory_stat, "active_file");
    return tg_scan_key(memory_stat, "total_inactive_file") +
           tg_scan_key(memory_stat, "total_active_file");
}

static void make_path(const tg_cgroup *group, const char *file, char *out, size_t size)
{
    snprintf(out, size, "%s%s/%s", group->mount, group->group, file);
}

static bool read_small(const char *root, const tg_cgroup *group, const char *file,
                       char out[SMALL_BYTES])
{
    char path[2 * PATH_MAX + 64];
    make_path(group, file, path, sizeof path);
    return tg_cgroup_read(root, path, out, SMALL_BYTES);
}

/* Version 2 may be mounted without a controller that version 1 has, or that nobody has. */
static bool has_controller(const char *root, const tg_cgroup *group, const char *controller)
{
    char text[SMALL_BYTES], *save;
    tg_cgroup mount = *group;
    mount.group[0] = '\0';
    if (!read_small(root, &mount, "cgroup.controllers", text))
        return false;
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
        if (strcmp(word, controller) == 0)
            return true;
    return false;
}

static tg_cgroup find(const char *root, const char *controller)
{
    tg_cgroup group = {0};
    if (tg_cgroup_find(root, controller, 1, &group))
        return group;
    if (tg_cgroup_find(root, controller, 2, &group) && has_controller(root, &group, controller))
        return group;
    return (tg_cgroup){0};
}

/* Cores that one group grants. */
static double quota_of(const char *root, const tg_cgroup *group)
{
    char text[SMALL_BYTES];
    double period = 100000;
    if (group->version == 2)
        return read_small(root, group, "cpu.max", text) ? tg_group_quota_parse(text) : INFINITY;
    if (!read_small(root, group, "cpu.cfs_quota_us", text))
        return INFINITY;
    const double quota = tg_group_limit_parse(text);
    const char *at = text;
    if (read_small(root, group, "cpu.cfs_period_us", text))
        (void)tg_scan_number(&at, &period);
    return period > 0 ? quota / period : NAN;
}

static double limit_of(const char *root, const tg_cgroup *group)
{
    static const char *const FILES[][2] = {{"memory.limit_in_bytes", NULL},
                                           {"memory.max", "memory.high"}};
    char text[SMALL_BYTES];
    double least = INFINITY;
    for (int i = 0; i < 2 && FILES[group->version - 1][i]; i++)
        if (read_small(root, group, FILES[group->version - 1][i], text))
            least = fmin(least, tg_group_limit_parse(text)); /* fmin passes NaN over */
    return least;
}

static void close_quotas(tg_group_use *use, size_t from)
{
    for (size_t i = from; i < use->quota_count; i++)
        tg_source_close(&use->quotas[i].cpu_stat);
    use->quota_count = from;
}

/* The group that is watched as number `at`, from now on or still. */
static void watch_quota(tg_group_use *use, size_t at, const tg_cgroup *group)
{
    char path[2 * PATH_MAX + 64];
    if (at < use->quota_count && strcmp(use->quotas[at].group.group, group->group) == 0)
        return;
    close_quotas(use, at);
    make_path(group, "cpu.stat", path, sizeof path);
    use->quotas[at] = (tg_group_quota){
        .group = *group, .cpu_stat = tg_source_open(use->root, path), .before = {NAN, NAN, NAN}};
    use->quota_count = at + 1;
}

static void look_at_quotas(tg_group_use *use)
{
    tg_cgroup group = use->cpu;
    size_t count = 0;
    use->quota_cores = INFINITY;
    do {
        const double quota = quota_of(use->root, &group);
        if (!isfinite(quota))
            continue;
        use->quota_cores = fmin(use->quota_cores, quota);
        if (count < TG_GROUP_QUOTAS)
            watch_quota(use, count++, &group);
    } while (tg_cgroup_go_up(&group));
    close_quotas(use, count);
}

static void look_at_memory(tg_group_use *use, tg_text *text)
{
    tg_cgroup group = use->memory, chosen = use->memory;
    char path[2 * PATH_MAX + 64];
    use->limit_bytes = INFINITY;
    do {
        const double limit = limit_of(use->root, &group);
        if (limit < use->limit_bytes) {
            use->limit_bytes = limit;
            chosen = group;
        }
    } while (tg_cgroup_go_up(&group));
    if (use->used.fd < 0 || strcmp(chosen.group, use->used_group.group) != 0) {
        tg_source_close(&use->used);
        make_path(&chosen, chosen.version == 2 ? "memory.current" : "memory.usage_in_bytes", path,
                  sizeof path);
        use->used = tg_source_open(use->root, path);
        use->used_group = chosen;
    }
    make_path(&chosen, "memory.stat", path, sizeof path);
    use->file_bytes = tg_source_once(use->root, path, text)
                          ? tg_group_file_bytes(text->data, chosen.version)
                          : NAN;
}

tg_status tg_group_use_open(const char *root, tg_group_use *out)
{
    *out = (tg_group_use){.root = root,
                          .cpu = find(root, "cpu"),
                          .memory = find(root, "memory"),
                          .quotas = calloc(TG_GROUP_QUOTAS, sizeof *out->quotas),
                          .used.fd = -1,
                          .quota_cores = NAN,
                          .limit_bytes = NAN,
                          .file_bytes = NAN};
    return out->quotas ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for control groups");
}

/* Threads of one group since the sample before; what nobody knows adds nothing. */
static void add_throttle(tg_group_quota *quota, tg_text *text, double seconds,
                         tg_system_sample *out)
{
    tg_group_throttle now = {NAN, NAN, NAN};
    if (tg_source_read(&quota->cpu_stat, text))
        now = tg_group_throttle_parse(text->data, quota->group.version);
    const double periods = now.periods - quota->before.periods;
    const double share = periods > 0 ? (now.throttled - quota->before.throttled) / periods
                                     : periods; /* 0, or unknown */
    double *worst = &out->values[TG_SYSTEM_GROUP_THROTTLED];
    double *held = &out->values[TG_SYSTEM_GROUP_THROTTLED_S];
    *worst = fmax(*worst, share);
    const double rate = tg_rate(quota->before.seconds, now.seconds, seconds);
    if (!isnan(rate))
        *held = (isnan(*held) ? 0 : *held) + rate;
    quota->before = now;
}

static void take_cpu(tg_group_use *use, tg_text *text, double seconds, tg_system_sample *out)
{
    out->values[TG_SYSTEM_GROUP_QUOTA_CORES] = use->quota_cores;
    if (!use->quota_count) { /* nobody holds anybody back */
        out->values[TG_SYSTEM_GROUP_THROTTLED] = 0;
        out->values[TG_SYSTEM_GROUP_THROTTLED_S] = 0;
    }
    for (size_t i = 0; i < use->quota_count; i++)
        add_throttle(&use->quotas[i], text, seconds, out);
}

static void take_memory(tg_group_use *use, tg_text *text, tg_system_sample *out)
{
    const char *at;
    double used = NAN;
    out->values[TG_SYSTEM_GROUP_LIMIT_BYTES] = use->limit_bytes;
    if (!tg_source_read(&use->used, text))
        return;
    at = text->data;
    (void)tg_scan_number(&at, &used);
    out->values[TG_SYSTEM_GROUP_USED_BYTES] = used - use->file_bytes;
    if (used < use->file_bytes) /* files went away since they were counted */
        out->values[TG_SYSTEM_GROUP_USED_BYTES] = 0;
}

void tg_group_use_take(tg_group_use *use, tg_text *text, double seconds, bool slow,
                       tg_system_sample *out)
{
    if (use->cpu.version && slow)
        look_at_quotas(use);
    if (use->memory.version && slow)
        look_at_memory(use, text);
    if (use->cpu.version)
        take_cpu(use, text, seconds, out);
    if (use->memory.version)
        take_memory(use, text, out);
}

void tg_group_use_close(tg_group_use *use)
{
    if (use->quotas)
        close_quotas(use, 0);
    free(use->quotas);
    if (use->root)
        tg_source_close(&use->used);
    *use = (tg_group_use){0};
}
