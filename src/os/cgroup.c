#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 65536

bool tg_cgroup_read(const char *root, const char *path, char *out, size_t size)
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
    if (!tg_cgroup_read(root, "/proc/self/cgroup", text, sizeof text))
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

bool tg_cgroup_find(const char *root, const char *controller, int version, tg_cgroup *out)
{
    char text[TEXT_BYTES], group[PATH_MAX], *save;
    if (!find_group(root, controller, version, group, sizeof group) ||
        !tg_cgroup_read(root, "/proc/self/mountinfo", text, sizeof text))
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

bool tg_cgroup_go_up(tg_cgroup *group)
{
    char *slash = strrchr(group->group, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}
