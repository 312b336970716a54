/* cgroup.h - where this process's control group is to be seen: v1, v2, and both beside each other.
 *
 * A container often mounts its own group as the root, while the path in /proc still is the host's; a path outside of what
 * is mounted means that the mount is all we see.
 *
 * Errors none: what is not there is not found. Memory none that is kept. Threads reentrant.
 */
#ifndef TG_OS_CGROUP_H
#define TG_OS_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tg_cgroup {
    int version; /* 1 or 2; 0: not found */
    char mount[PATH_MAX];
    char group[PATH_MAX]; /* "/a/b" below the mount, or "" */
} tg_cgroup;

/* `controller` ("cpu", "memory") counts for version 1. `root` is put before /proc ("" for the real one). */
bool tg_cgroup_find(const char *root, const char *controller, int version, tg_cgroup *out);
/* group becomes its parent; false at the mount itself, the last that there is. */
bool tg_cgroup_go_up(tg_cgroup *group);

/* The first `size` - 1 bytes of the small file root + path; false when it cannot be read. */
bool tg_cgroup_read(const char *root, const char *path, char *out, size_t size);

#endif
