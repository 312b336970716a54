#include "os/cpu.h"

#include "base/hash.h"
#include "base/number.h"
#include "os/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int affinity_count(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) { /* larger machines need a larger mask */
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            break;
        int rc = sched_getaffinity(0, bytes, set);
        int count = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
        bool too_small = rc < 0 && errno == EINVAL;
        CPU_FREE(set);
        if (!too_small)
            return count > 0 ? count : 1;
    }
    return 1;
}

static bool read_group_file(const char *root, const tg_cgroup *where, const char *group,
                            const char *file, char *out, size_t size)
{
    char path[2 * PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s/%s", where->mount, group, file);
    return tg_cgroup_read(root, path, out, size);
}

static bool leading_number(const char *text, uint64_t *out)
{
    return tg_number_parse_u64(text, strspn(text, "0123456789"), out);
}

/* Cores granted by one group; 0 when it sets no quota. */
static double group_quota(const char *root, const tg_cgroup *where, const char *group)
{
    char text[128];
    uint64_t quota, period = 100000;
    if (where->version == 2) {
        if (!read_group_file(root, where, group, "cpu.max", text, sizeof text) ||
            !leading_number(text, &quota)) /* "max 100000" */
            return 0;
        const char *space = strchr(text, ' ');
        if (space)
            leading_number(space + 1, &period);
    } else {
        if (!read_group_file(root, where, group, "cpu.cfs_quota_us", text, sizeof text) ||
            !leading_number(text, &quota)) /* "-1" */
            return 0;
        if (read_group_file(root, where, group, "cpu.cfs_period_us", text, sizeof text))
            leading_number(text, &period);
    }
    return period ? (double)quota / (double)period : 0;
}

static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Bytes granted by one group; 0 when it sets no limit. */
static uint64_t group_memory(const char *root, const tg_cgroup *where, const char *group)
{
    static const char *const V2[] = {"memory.max", "memory.high"};
    char text[128];
    uint64_t limit = 0, value;
    if (where->version == 2) {
        for (int i = 0; i < 2; i++)
            if (read_group_file(root, where, group, V2[i], text, sizeof text) &&
                leading_number(text, &value))
                limit = smaller_limit(limit, value);
        return limit;
    }
    if (read_group_file(root, where, group, "memory.limit_in_bytes", text, sizeof text) &&
        leading_number(text, &value) && value < UINT64_C(1) << 60) /* v1 writes 2^63 for none */
        return value;
    return 0;
}

/* Which group it is, whatever path it has in a process's own view; 0: not known. */
static uint64_t group_identity(const char *root, const tg_cgroup *where, const char *group)
{
    char path[3 * PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s%s%s", root, where->mount, group);
    if (stat(path, &st) != 0)
        return 0;
    const uint64_t numbers[] = {st.st_dev, st.st_ino};
    return tg_hash(TG_HASH_START, numbers, sizeof numbers);
}

/* Calls for the process's group, its parent, ... up to the mount point itself. */
static void walk_up(const char *root, const tg_cgroup *where, bool cpu, bool memory,
                    tg_cpu_share *share)
{
    tg_cgroup at = *where;
    const char *group = at.group;
    do {
        double quota = cpu ? group_quota(root, where, group) : 0;
        if (quota > 0 && (share->quota == 0 || quota < share->quota)) {
            share->quota = quota;
            share->quota_group = group_identity(root, where, group);
        }
        if (memory)
            share->memory_limit_bytes =
                smaller_limit(share->memory_limit_bytes, group_memory(root, where, group));
    } while (tg_cgroup_go_up(&at));
}

static void read_cgroups(const char *root, tg_cpu_share *share)
{
    tg_cgroup where = {0};
    if (tg_cgroup_find(root, "", 2, &where)) {
        share->cgroup_version = 2;
        walk_up(root, &where, true, true, share);
    }
    if (tg_cgroup_find(root, "cpu", 1, &where)) {
        share->cgroup_version = 1;
        walk_up(root, &where, true, false, share);
    }
    if (tg_cgroup_find(root, "memory", 1, &where)) {
        share->cgroup_version = 1;
        walk_up(root, &where, false, true, share);
    }
}

void tg_cpu_share_read(const char *root, int affinity, int scheduler, tg_cpu_share *out)
{
    tg_cpu_share share = {.affinity = affinity > 0 ? affinity : affinity_count(),
                          .scheduler = scheduler > 0 ? scheduler : 0};
    read_cgroups(root, &share);
    int cpus = share.affinity;
    if (share.quota > 0 && share.quota < cpus)
        cpus = (int)share.quota;
    if (share.scheduler && share.scheduler < cpus)
        cpus = share.scheduler;
    share.cpus = cpus > 1 ? cpus : 1;
    *out = share;
}

void tg_cpu_model(const char *root, char *out, size_t size)
{
    char text[8192];
    snprintf(out, size, "unknown");
    if (!tg_cgroup_read(root, "/proc/cpuinfo", text, sizeof text))
        return;
    const char *at = strstr(text, "model name");
    const char *colon = at ? strchr(at, ':') : NULL;
    if (colon)
        snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
}
