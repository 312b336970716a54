/* temp.h - temporary siblings of a target: names, locks and messages shared by file.c and folder.c.
 *
 * A name is ".BASE.tg-KIND-PID-COUNT", KIND "new" (being built) or "old" (a folder moved out of the
 * way for a moment). The writer holds flock(LOCK_EX) on it, which the system drops when it dies.
 */
#ifndef TG_OS_TEMP_H
#define TG_OS_TEMP_H

#include "base/status.h"

#include <stdbool.h>

#define TG_TEMP_NEW ".tg-new-"
#define TG_TEMP_OLD ".tg-old-"

/* Folder part of a path ("." when it has none), and the target behind a link; both from malloc,
 * NULL when memory is short. */
char *tg_path_folder(const char *path);
char *tg_path_follow(const char *path);

/* A name beside `path` that no other call of any live process gives; from malloc, or NULL. */
char *tg_temp_name(const char *path, const char *kind);

/* Creates a temporary beside `path` and locks it. Outputs: its name (malloc) and descriptor. */
tg_status tg_temp_create(const char *path, bool folder, char **out_temp_path, int *out_fd);

/* fsync that accepts file systems which cannot. Returns 0 or -1 with errno. */
int tg_fd_sync(int fd);

/* Records "VERB PATH: reason; hint" for errno. */
tg_status tg_fail_errno(const char *verb, const char *path);

#endif
