#include "run/run_dir.h"

#include "base/text.h"
#include "os/file.h"
#include "os/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const FOLDERS[] = {"log", "system", "trace", "checkpoints"};
enum { FOLDER_COUNT = sizeof FOLDERS / sizeof FOLDERS[0] };

char *tg_run_dir_path(const tg_run_dir *dir, const char *name)
{
    return tg_path_join(dir->path, name);
}

static tg_status no_memory(const char *path)
{
    return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
}

static tg_status make_folder(const tg_run_dir *dir, const char *name)
{
    char *path = tg_run_dir_path(dir, name);
    if (!path)
        return no_memory(dir->path);
    tg_status status = tg_folder_make(path);
    free(path);
    return status;
}

static tg_status lock_is_taken(const tg_run_dir *dir)
{
    char holder[64];
    ssize_t n = pread(dir->lock_fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    return tg_fail(TG_ERROR_USAGE,
                   "%s: another job writes here (process %s); wait for it, stop it, or choose "
                   "another --output",
                   dir->path, holder[0] ? holder : "unknown");
}

/* The lock file stays when the job ends: removing it would let two jobs lock two files. */
static tg_status take_lock(tg_run_dir *dir)
{
    char *path = tg_run_dir_path(dir, "lock"), text[64];
    if (!path)
        return no_memory(dir->path);
    dir->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    free(path);
    if (dir->lock_fd < 0)
        return tg_fail(TG_ERROR_MACHINE, "%s: cannot open its lock file: %s", dir->path,
                       strerrordesc_np(errno));
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return lock_is_taken(dir);
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(dir->lock_fd, 0) < 0 || pwrite(dir->lock_fd, text, (size_t)n, 0) < 0)
        return tg_fail(TG_ERROR_MACHINE, "%s: cannot write its lock file: %s", dir->path,
                       strerrordesc_np(errno));
    return TG_OK;
}

static bool holds(const char *folder, const char *name)
{
    char *path = tg_path_join(folder, name);
    bool found = path && tg_file_exists(path);
    free(path);
    return found;
}

static bool is_model(const char *folder)
{
    return holds(folder, "config.json") && holds(folder, "model.safetensors");
}

static bool is_checkpoints_of_run(const char *folder)
{
    const char *name = strrchr(folder, '/');
    char up[PATH_MAX];
    return name && strcmp(name, "/checkpoints") == 0 &&
           snprintf(up, sizeof up, "%s/..", folder) < (int)sizeof up && holds(up, "run.json");
}

/* What a run replaces or removes is no place for another run. */
static tg_status refuse_inside(const char *path)
{
    char real[PATH_MAX];
    char *at = strdup(path);
    tg_status status = at ? TG_OK : no_memory(path);
    for (char *slash; at && !realpath(at, real);
         *slash = '\0') /* the nearest folder that is there */
        if (!(slash = strrchr(at, '/')) || slash == at) {
            (void)!realpath(slash ? "/" : ".", real);
            break;
        }
    free(at);
    while (status == TG_OK && real[0] && real[1]) {
        if (is_model(real) || is_checkpoints_of_run(real))
            status = tg_fail(TG_ERROR_USAGE, "%s lies in %s, which %s; give another --output", path,
                             real,
                             is_model(real) ? "is a model and may be replaced as a whole"
                                            : "holds the checkpoints of a run");
        *strrchr(real, '/') = '\0';
    }
    return status;
}

tg_status tg_run_dir_open(const char *path, tg_run_dir *out)
{
    tg_run_dir dir = {.path = strdup(path), .lock_fd = -1};
    tg_status status;
    if (!dir.path)
        return no_memory(path);
    TG_TRY_GOTO(refuse_inside(path), close_dir);
    TG_TRY_GOTO(tg_folder_make(path), close_dir);
    TG_TRY_GOTO(take_lock(&dir), close_dir);
    for (int i = 0; i < FOLDER_COUNT; i++)
        TG_TRY_GOTO(make_folder(&dir, FOLDERS[i]), close_dir);
    TG_TRY_GOTO(tg_temp_clean(path), close_dir);
    *out = dir;
    return TG_OK;

close_dir:
    tg_run_dir_close(&dir);
    return status;
}

tg_status tg_run_dir_join(const char *path, tg_run_dir *out)
{
    tg_run_dir dir = {.path = strdup(path), .lock_fd = -1};
    tg_status status;
    if (!dir.path)
        return no_memory(path);
    if (!tg_file_await(path, TG_FILE_PATIENCE_S))
        TG_TRY_GOTO(tg_folder_make(path), close_dir);
    TG_TRY_GOTO(make_folder(&dir, "log"), close_dir);
    *out = dir;
    return TG_OK;

close_dir:
    tg_run_dir_close(&dir);
    return status;
}

void tg_run_dir_close(tg_run_dir *dir)
{
    if (!dir || !dir->path)
        return;
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    free(dir->path);
    *dir = (tg_run_dir){.lock_fd = -1};
}

tg_status tg_run_dir_check(const tg_run_dir *dir)
{
    struct stat held, there;
    char *path = tg_run_dir_path(dir, "lock");
    if (!path)
        return no_memory(dir->path);
    int rc = stat(path, &there);
    free(path);
    if (rc < 0)
        return errno == ENOENT || errno == ENOTDIR ? TG_END : TG_OK; /* unreadable is not gone */
    if (fstat(dir->lock_fd, &held) < 0 ||
        (held.st_dev == there.st_dev && held.st_ino == there.st_ino))
        return TG_OK;
    return tg_fail(
        TG_ERROR_MACHINE,
        "%s: the run directory was removed while the run was going, and another has taken "
        "its name; nothing more is written",
        dir->path);
}

static tg_status write_named(const tg_run_dir *dir, const char *name, const char *bytes,
                             size_t length)
{
    char *path = tg_run_dir_path(dir, name);
    if (!path)
        return no_memory(dir->path);
    tg_status status = tg_file_write(path, bytes, length);
    free(path);
    return status;
}

tg_status tg_run_dir_write_job(const tg_run_dir *dir, const char *yaml, size_t length)
{
    return write_named(dir, "job.yaml", yaml, length);
}

static void print_failure(const char *reason, const char *last_lines, tg_text *out)
{
    for (const char *at = reason; *at; at++) /* the reason is one line, whatever it quotes */
        tg_text_append_char(out, *at == '\n' ? ' ' : *at);
    tg_text_append_format(out, "\n%s", last_lines);
}

/* Of several that try at once one makes the file. */
static tg_status add_file(const char *path, const tg_text *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return TG_END;
    const bool written = fd >= 0 && write(fd, text->data, text->length) == (ssize_t)text->length;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    return written ? TG_OK
                   : tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", path, strerrordesc_np(error));
}

tg_status tg_run_dir_add_failure(const tg_run_dir *dir, const char *reason, const char *last_lines)
{
    tg_text text = {0};
    char *path = tg_run_dir_path(dir, "failure");
    print_failure(reason, last_lines, &text);
    tg_status status = path ? tg_text_check(&text, dir->path) : no_memory(dir->path);
    if (status == TG_OK)
        status = add_file(path, &text);
    free(path);
    tg_text_done(&text);
    return status;
}

tg_status tg_run_dir_write_failure(const tg_run_dir *dir, const char *reason,
                                   const char *last_lines)
{
    tg_text text = {0};
    print_failure(reason, last_lines, &text);
    tg_status status = tg_text_check(&text, dir->path);
    if (status == TG_OK)
        status = write_named(dir, "failure", text.data, text.length);
    tg_text_done(&text);
    return status;
}

tg_status tg_run_dir_remove_failure(const tg_run_dir *dir)
{
    char *path = tg_run_dir_path(dir, "failure");
    if (!path)
        return no_memory(dir->path);
    tg_status status = tg_tree_remove(path);
    free(path);
    return status;
}
