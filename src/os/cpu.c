#include "os/cpu.h"

#include "base/hash.h"
#include "base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES 65536

/* Where a controller's files are: the mount point and this process's group below it. */
typedef struct cgroup {
    int version; /* 0: not found */
    char mount[PATH_MAX];
    char group[PATH_MAX]; /* "/a/b" below the mount, or "" */
} cgroup;

/* The first `size` - 1 bytes of root + path; false when it cannot be read. */
static bool read_text(const char *root, const char *path, char *out, size_t size)
{
    char full[2 * PATH_MAX];
    size_t used = 0;
    snprintf(full, sizeof full, "%s%s", root, path);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n;
    while (used < size - 1 && (n = read(fd, out + used, size - 1 - used)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    out[used] = '\0';
    return used > 0;
}

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

/* True when `word` is one of the comma-separated words of `list`. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        if (strcspn(at, ",") == n && strncmp(at, word, n) == 0)
            return true;
    }
    return false;
}

/* mountinfo: id parent major:minor ROOT MOUNT options [fields] - TYPE source SUPER */
static bool parse_mount(char *line, const char *controller, int version, char **out_root,
                        char **out_mount)
{
    char *save, *fields[5] = {0}, *tail = strstr(line, " - ");
    if (!tail)
        return false;
    *tail = '\0';
    fields[0] = strtok_r(line, " ", &save);
    for (int i = 1; i < 5 && fields[i - 1]; i++)
        fields[i] = strtok_r(NULL, " ", &save);
    char *type = strtok_r(tail + 3, " ", &save), *source = strtok_r(NULL, " ", &save);
    char *super = strtok_r(NULL, " ", &save);
    if (!fields[4] || !type || !source)
        return false;
    *out_root = fields[3];
    *out_mount = fields[4];
    if (version == 2)
        return strcmp(type, "cgroup2") == 0;
    return strcmp(type, "cgroup") == 0 && super && has_word(super, controller);
}

/* /proc/self/cgroup: "0::/path" in v2, "N:controller,...:/path" in v1. */
static bool find_group(const char *root, const char *controller, int version, char *out,
                       size_t size)
{
    char text[TEXT_BYTES], *save;
    if (!read_text(root, "/proc/self/cgroup", text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (version == 2 ? strcmp(line, "0:") == 0 : has_word(list + 1, controller)) {
            snprintf(out, size, "%s", path);
            return true;
        }
    }
    return false;
}

/* The group below what is mounted: a container often mounts its own group as the root, while the
 * path still is the host's. A path outside of it ("/../..") means the mount is all we see. */
static const char *below(const char *group, const char *mount_root)
{
    size_t n = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(group, mount_root, n) != 0 || (group[n] && group[n] != '/') || strstr(group, "/.."))
        return "";
    return strcmp(group + n, "/") == 0 ? "" : group + n;
}

static bool find_cgroup(const char *root, const char *controller, int version, cgroup *out)
{
    char text[TEXT_BYTES], group[PATH_MAX], *save;
    if (!find_group(root, controller, version, group, sizeof group) ||
        !read_text(root, "/proc/self/mountinfo", text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *mount_root, *mount;
        if (!parse_mount(line, controller, version, &mount_root, &mount))
            continue;
        out->version = version;
        snprintf(out->mount, sizeof out->mount, "%s", mount);
        snprintf(out->group, sizeof out->group, "%s", below(group, mount_root));
        return true;
    }
    return false;
}

static bool read_group_file(const char *root, const cgroup *where, const char *group,
                            const char *file, char *out, size_t size)
{
    char path[2 * PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s/%s", where->mount, group, file);
    return read_text(root, path, out, size);
}

static bool leading_number(const char *text, uint64_t *out)
{
    return tg_number_parse_u64(text, strspn(text, "0123456789"), out);
}

/* Cores granted by one group; 0 when it sets no quota. */
static double group_quota(const char *root, const cgroup *where, const char *group)
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
static uint64_t group_memory(const char *root, const cgroup *where, const char *group)
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
static uint64_t group_identity(const char *root, const cgroup *where, const char *group)
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
static void walk_up(const char *root, const cgroup *where, bool cpu, bool memory,
                    tg_cpu_share *share)
{
    char group[PATH_MAX];
    snprintf(group, sizeof group, "%s", where->group);
    for (;;) {
        double quota = cpu ? group_quota(root, where, group) : 0;
        if (quota > 0 && (share->quota == 0 || quota < share->quota)) {
            share->quota = quota;
            share->quota_group = group_identity(root, where, group);
        }
        if (memory)
            share->memory_limit_bytes =
                smaller_limit(share->memory_limit_bytes, group_memory(root, where, group));
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static void read_cgroups(const char *root, tg_cpu_share *share)
{
    cgroup where = {0};
    if (find_cgroup(root, "", 2, &where)) {
        share->cgroup_version = 2;
        walk_up(root, &where, true, true, share);
    }
    if (find_cgroup(root, "cpu", 1, &where)) {
        share->cgroup_version = 1;
        walk_up(root, &where, true, false, share);
    }
    if (find_cgroup(root, "memory", 1, &where)) {
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
    if (!read_text(root, "/proc/cpuinfo", text, sizeof text))
        return;
    const char *at = strstr(text, "model name");
    const char *colon = at ? strchr(at, ':') : NULL;
    if (colon)
        snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
}
