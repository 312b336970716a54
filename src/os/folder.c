#include "os/folder.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Deeper trees than any of ours are refused rather than overrun the stack. */
#define TREE_MAX_DEPTH 100

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

tg_status tg_folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tg_fail_errno("open", path);
    tg_status status = tg_fd_sync(fd) < 0 ? tg_fail_errno("write to disk", path) : TG_OK;
    close(fd);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One level: 0 when it is a folder, whoever made it; EAGAIN when others changed what is there or above it
 * meanwhile; else what is wrong. */
static int make_level(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    if (is_folder(path)) /* on some file systems it gave EROFS or EACCES and not EEXIST */
        return 0;
    if (error == EEXIST)
        return lstat(path, &st) == 0 && !S_ISDIR(st.st_mode) ? ENOTDIR : EAGAIN;
    return error == ENOENT || error == ESTALE ? EAGAIN : error;
}

/* All levels of `path`, which is cut behind the one that cannot be made. */
static int make_levels(char *path)
{
    for (char *at = path + (*path != '\0');; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        const char saved = *at;
        *at = '\0';
        int error = make_level(path);
        if (error || !saved)
            return error;
        *at = saved;
    }
}

tg_status tg_folder_make(const char *path)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const int64_t begin = tg_clock_ns();
    char *copy = strdup(path);
    if (!copy)
        return tg_fail(TG_ERROR_MACHINE, "cannot make folder %s: out of memory", path);
    int error = make_levels(copy);
    while (error == EAGAIN && tg_clock_seconds(tg_clock_ns() - begin) < TG_FILE_PATIENCE_S) {
        nanosleep(&pause, NULL);
        strcpy(copy, path);
        error = make_levels(copy);
    }
    tg_status status = TG_OK;
    if (error) {
        errno = error == EAGAIN ? ENOENT : error;
        bool bad_name = errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP;
        status = tg_fail_errno("make folder", copy);
        status = bad_name ? TG_ERROR_USAGE : status;
    }
    free(copy);
    return status;
}

/* Visits every entry below an open folder, children before their folder. */
typedef int (*visit)(int folder_fd, const char *name, bool is_folder);

static int walk(int fd, int depth, visit visit_entry)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -1;
    }
    int rc = 0;
    struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(dir)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        int child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool folder = child >= 0;
        if (folder && depth == TREE_MAX_DEPTH) {
            close(child);
            errno = ELOOP;
            rc = -1;
        } else if (folder) {
            rc = walk(child, depth + 1, visit_entry);
        }
        if (rc == 0)
            rc = visit_entry(fd, entry->d_name, folder);
    }
    if (rc == 0 && errno)
        rc = -1;
    int error = errno;
    closedir(dir);
    errno = error;
    return rc;
}

static int remove_entry(int folder_fd, const char *name, bool folder)
{
    if (unlinkat(folder_fd, name, folder ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
        return 0;
    return -1;
}

static int sync_entry(int folder_fd, const char *name, bool folder)
{
    struct stat st;
    if (!folder && (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)))
        return 0;
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = tg_fd_sync(fd);
    int error = errno;
    close(fd);
    errno = error;
    return rc;
}

tg_status tg_tree_remove(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT || unlink(path) == 0 || errno == ENOENT)
            return TG_OK;
        return tg_fail_errno("remove", path);
    }
    if (walk(fd, 0, remove_entry) < 0 || (rmdir(path) < 0 && errno != ENOENT))
        return tg_fail_errno("remove", path);
    return TG_OK;
}

tg_status tg_new_folder_open(const char *path, tg_new_folder *out)
{
    char *target = tg_path_follow(path);
    if (!target)
        return tg_fail(TG_ERROR_MACHINE, "cannot write %s: out of memory", path);
    tg_new_folder folder = {.path = target, .fd = -1};
    tg_status status = tg_temp_create(target, true, &folder.temp_path, &folder.fd);
    if (status < 0) {
        free(target);
        return status;
    }
    *out = folder;
    return TG_OK;
}

void tg_new_folder_discard(tg_new_folder *folder)
{
    if (!folder || !folder->path)
        return;
    if (folder->temp_path && tg_tree_remove(folder->temp_path) < 0)
        tg_error_clear(); /* what is left is found by tg_temp_clean */
    close(folder->fd);
    free(folder->temp_path);
    free(folder->path);
    *folder = (tg_new_folder){.fd = -1};
}

/* Where the file system cannot swap two names: the old folder steps aside first. A crash between
 * the two renames leaves no target; tg_temp_clean puts the old one back. */
static tg_status swap_in_two_steps(tg_new_folder *folder)
{
    char *aside = tg_temp_name(folder->path, TG_TEMP_OLD);
    if (!aside)
        return tg_fail(TG_ERROR_MACHINE, "cannot replace %s: out of memory", folder->path);
    tg_status status = TG_OK;
    if (rename(folder->path, aside) < 0) {
        status = tg_fail_errno("replace", folder->path);
    } else if (rename(folder->temp_path, folder->path) < 0) {
        status = tg_fail_errno("replace", folder->path);
        (void)!rename(aside, folder->path);
    } else {
        free(folder->temp_path);
        folder->temp_path = aside; /* discard removes it */
        return TG_OK;
    }
    free(aside);
    return status;
}

/* After success temp_path names what is to be removed (the old content), or is NULL. */
static tg_status put_in_place(tg_new_folder *folder)
{
    if (renameat2(AT_FDCWD, folder->temp_path, AT_FDCWD, folder->path, RENAME_EXCHANGE) == 0)
        return TG_OK;
    if (errno == ENOENT || !tg_file_exists(folder->path)) {
        if (rename(folder->temp_path, folder->path) < 0)
            return tg_fail_errno("replace", folder->path);
        free(folder->temp_path);
        folder->temp_path = NULL;
        return TG_OK;
    }
    if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP)
        return swap_in_two_steps(folder);
    return tg_fail_errno("replace", folder->path);
}

static tg_status sync_tree(const tg_new_folder *folder)
{
    int fd = open(folder->temp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || walk(fd, 0, sync_entry) < 0 || tg_fd_sync(folder->fd) < 0)
        return tg_fail_errno("write to disk", folder->path);
    return TG_OK;
}

tg_status tg_new_folder_commit(tg_new_folder *folder)
{
    char *parent = tg_path_folder(folder->path);
    tg_status status =
        parent ? TG_OK : tg_fail(TG_ERROR_MACHINE, "cannot write %s: out of memory", folder->path);
    if (status == TG_OK)
        status = sync_tree(folder);
    if (status == TG_OK)
        status = put_in_place(folder);
    if (status == TG_OK)
        status = tg_folder_sync(parent);
    free(parent);
    tg_new_folder_discard(folder);
    return status;
}

/* True when nobody holds the lock that the writer of a temporary keeps. */
static bool is_abandoned(int folder_fd, const char *name)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    bool free_lock = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    close(fd);
    return free_lock;
}

/* ".BASE.tg-old-..." goes back to BASE when that name is free. Returns whether it did. */
static bool put_back(const char *folder, const char *name, const char *mark, const char *path)
{
    char *base = strndup(name + 1, (size_t)(mark - name - 1));
    char *target = base ? tg_path_join(folder, base) : NULL;
    bool done = target && !tg_file_exists(target) && rename(path, target) == 0;
    free(target);
    free(base);
    return done;
}

static tg_status clean_entry(const char *folder, int folder_fd, const char *name)
{
    const char *is_old = strstr(name, TG_TEMP_OLD);
    if (name[0] != '.' || (!is_old && !strstr(name, TG_TEMP_NEW)) || !is_abandoned(folder_fd, name))
        return TG_OK;
    char *path = tg_path_join(folder, name);
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "cannot clean %s: out of memory", folder);
    tg_status status = TG_OK;
    if (!is_old || !put_back(folder, name, is_old, path))
        status = tg_tree_remove(path);
    free(path);
    return status;
}

tg_status tg_temp_clean(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? TG_OK : tg_fail_errno("open", folder);
    tg_status status = TG_OK;
    struct dirent *entry;
    while (status == TG_OK && (entry = readdir(dir)) != NULL)
        status = clean_entry(folder, dirfd(dir), entry->d_name);
    closedir(dir);
    return status;
}
