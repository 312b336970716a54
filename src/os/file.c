#include "os/file.h"

#include "base/checked.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

char *tg_path_join(const char *folder, const char *name)
{
    char *path;
    size_t n = strlen(folder);
    const char *slash = n && folder[n - 1] != '/' ? "/" : "";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

bool tg_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Asks the server, which a look at its attributes may not (close-to-open). What may not be read is there. */
static bool can_be_opened(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == EACCES;
}

bool tg_file_await(const char *path, double seconds)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    const int64_t begin = tg_clock_ns();
    for (;;) {
        if (can_be_opened(path))
            return true;
        int error = errno;
        if ((error != ENOENT && error != ESTALE) ||
            tg_clock_seconds(tg_clock_ns() - begin) >= seconds) {
            errno = error;
            return false;
        }
        nanosleep(&pause, NULL);
    }
}

tg_status tg_file_read_fault(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO ? TG_ERROR_MACHINE
                                                                                 : TG_ERROR_INPUT;
}

/* Opens without waiting for a writer of a pipe, and refuses what is not a regular file. */
static tg_status open_regular(const char *path, int *out_fd, struct stat *out_stat)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        tg_status fault = tg_file_read_fault(errno);
        (void)tg_fail_errno("read", path);
        return fault;
    }
    bool known = fstat(fd, out_stat) == 0;
    if (!known || !S_ISREG(out_stat->st_mode)) {
        close(fd);
        return tg_fail(TG_ERROR_INPUT, "cannot read %s: it is %s", path,
                       known && S_ISDIR(out_stat->st_mode) ? "a folder; name the files in it"
                                                           : "not a regular file");
    }
    *out_fd = fd;
    return TG_OK;
}

static tg_status too_large(const char *path, size_t max_bytes)
{
    return tg_fail(TG_ERROR_INPUT, "cannot read %s: larger than the %zu bytes allowed here", path,
                   max_bytes);
}

/* Reads until the end of the file, which may have grown past its stated size (as in /proc). */
static tg_status read_all(int fd, const char *path, size_t expected, size_t max_bytes, char **out,
                          size_t *out_bytes)
{
    size_t capacity = expected + 1, used = 0;
    char *data = malloc(capacity);
    tg_status status = TG_OK;
    while (data) {
        ssize_t n = read(fd, data + used, capacity - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = tg_fail_errno("read", path);
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used > max_bytes) {
            status = too_large(path, max_bytes);
            break;
        }
        if (used < capacity)
            continue;
        size_t more = capacity < 4096 ? 8192 : capacity * 2;
        char *larger = realloc(data, more);
        if (!larger)
            free(data);
        data = larger;
        capacity = more;
    }
    if (!data)
        return tg_fail(TG_ERROR_MACHINE, "cannot read %s: out of memory", path);
    if (status < 0) {
        free(data);
        return status;
    }
    data[used] = '\0'; /* the loop leaves at least one byte free */
    *out = data;
    *out_bytes = used;
    return TG_OK;
}

tg_status tg_file_read(const char *path, size_t max_bytes, char **out, size_t *out_bytes)
{
    int fd = -1;
    struct stat st;
    TG_TRY(open_regular(path, &fd, &st));
    tg_status status;
    if (st.st_size < 0 || (uint64_t)st.st_size > max_bytes || (uint64_t)st.st_size > SIZE_MAX / 4)
        status = too_large(path, max_bytes);
    else
        status = read_all(fd, path, (size_t)st.st_size, max_bytes, out, out_bytes);
    close(fd);
    return status;
}

tg_status tg_new_file_open(const char *path, tg_new_file *out)
{
    char *target = tg_path_follow(path);
    if (!target)
        return tg_fail(TG_ERROR_MACHINE, "cannot write %s: out of memory", path);
    tg_new_file file = {.path = target, .fd = -1};
    tg_status status = tg_temp_create(target, false, &file.temp_path, &file.fd);
    if (status < 0) {
        free(target);
        return status;
    }
    *out = file;
    return TG_OK;
}

tg_status tg_new_file_write(tg_new_file *file, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length) {
        ssize_t n = write(file->fd, at, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tg_fail_errno("write", file->path);
        at += n;
        length -= (size_t)n;
    }
    return TG_OK;
}

void tg_new_file_discard(tg_new_file *file)
{
    if (!file || !file->path)
        return;
    if (file->temp_path)
        unlink(file->temp_path);
    close(file->fd);
    free(file->temp_path);
    free(file->path);
    *file = (tg_new_file){.fd = -1};
}

/* A replaced file keeps its permissions. */
static void copy_mode(const tg_new_file *file)
{
    struct stat st;
    if (stat(file->path, &st) == 0 && S_ISREG(st.st_mode))
        (void)!fchmod(file->fd, st.st_mode & 07777);
}

tg_status tg_new_file_commit(tg_new_file *file)
{
    tg_status status = TG_OK;
    char *folder = tg_path_folder(file->path);
    copy_mode(file);
    if (!folder)
        status = tg_fail(TG_ERROR_MACHINE, "cannot write %s: out of memory", file->path);
    else if (tg_fd_sync(file->fd) < 0)
        status = tg_fail_errno("write to disk", file->path);
    else if (rename(file->temp_path, file->path) < 0)
        status = tg_fail_errno("replace", file->path);
    if (status == TG_OK) {
        free(file->temp_path);
        file->temp_path = NULL;
        status = tg_folder_sync(folder);
    }
    free(folder);
    tg_new_file_discard(file);
    return status;
}

tg_status tg_file_write(const char *path, const void *bytes, size_t length)
{
    tg_new_file file;
    TG_TRY(tg_new_file_open(path, &file));
    tg_status status = tg_new_file_write(&file, bytes, length);
    if (status == TG_OK)
        return tg_new_file_commit(&file);
    tg_new_file_discard(&file);
    return status;
}

tg_status tg_file_write_text(const char *path, const tg_text *text)
{
    TG_TRY(tg_text_check(text, path));
    return tg_file_write(path, tg_text_string(text), text->length);
}

tg_status tg_disk_free_bytes(const char *path, uint64_t *out)
{
    struct statvfs fs;
    if (statvfs(path, &fs) < 0)
        return tg_fail_errno("ask for the free space of", path);
    uint64_t bytes;
    if (!tg_mul_u64(fs.f_bavail, fs.f_frsize, &bytes))
        bytes = UINT64_MAX;
    *out = bytes;
    return TG_OK;
}
