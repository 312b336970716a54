#include "os/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
        return "; free space on this disk or choose another place";
    case EDQUOT:
        return "; your disk quota is used up: remove files or choose another place";
    case EACCES:
    case EPERM:
        return "; check the owner and permissions of the folder";
    case EROFS:
        return "; choose a place that is writable";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (ulimit -n)";
    default:
        return "";
    }
}

tg_status tg_fail_errno(const char *verb, const char *path)
{
    int error = errno;
    const char *reason = strerrordesc_np(error);
    return tg_fail(TG_ERROR_MACHINE, "cannot %s %s: %s%s", verb, path,
                   reason ? reason : "unknown error", advice(error));
}

int tg_fd_sync(int fd)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 && (errno == EINVAL || errno == ENOTSUP) ? 0 : rc;
}

/* Length without slashes at the end, so that "runs/a/" and "runs/a" are one target. */
static size_t trimmed_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

static size_t base_start(const char *path, size_t length)
{
    size_t at = length;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return at;
}

char *tg_path_folder(const char *path)
{
    size_t at = base_start(path, trimmed_length(path));
    if (at == 0)
        return strdup(".");
    while (at > 1 && path[at - 1] == '/')
        at--;
    return strndup(path, at);
}

char *tg_path_follow(const char *path)
{
    struct stat st;
    char *plain = strndup(path, trimmed_length(path));
    if (!plain || lstat(plain, &st) < 0 || !S_ISLNK(st.st_mode))
        return plain;
    char *target = realpath(plain, NULL);
    if (!target)
        return plain; /* a dangling link is replaced itself */
    free(plain);
    return target;
}

char *tg_temp_name(const char *path, const char *kind)
{
    static atomic_uint count; /* distinct names within the process; the pid does the rest */
    size_t length = trimmed_length(path);
    size_t at = base_start(path, length);
    /* keeps room for the suffix in file systems that end names at 255 bytes */
    int base = length - at > 200 ? 200 : (int)(length - at);
    char *name;
    if (asprintf(&name, "%.*s.%.*s%s%ld-%u", (int)at, path, base, path + at, kind, (long)getpid(),
                 atomic_fetch_add(&count, 1)) < 0)
        return NULL;
    return name;
}

/* A cleaner may take the new name away between its creation and its lock; then it has no link. */
static bool lock_if_linked(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static int create(const char *path, bool folder)
{
    if (!folder)
        return open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
    if (mkdir(path, 0777) < 0)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

tg_status tg_temp_create(const char *path, bool folder, char **out_temp_path, int *out_fd)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        char *temp = tg_temp_name(path, TG_TEMP_NEW);
        if (!temp)
            return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
        int fd = create(temp, folder);
        if (fd >= 0 && lock_if_linked(fd)) {
            *out_temp_path = temp;
            *out_fd = fd;
            return TG_OK;
        }
        bool again = fd >= 0 || errno == EEXIST || (folder && errno == ENOENT && attempt < 3);
        tg_status status = again ? TG_OK : tg_fail_errno("create a file beside", path);
        if (fd >= 0)
            close(fd);
        free(temp);
        TG_TRY(status);
    }
    return tg_fail(TG_ERROR_MACHINE, "cannot create a temporary name beside %s", path);
}
