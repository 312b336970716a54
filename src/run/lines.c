#include "run/lines.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tg_status tg_lines_read(const char *path, tg_lines_visit visit, void *user)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return tg_fail(errno == ENOENT ? TG_ERROR_INPUT : TG_ERROR_MACHINE, "cannot read %s: %s",
                       path, strerrordesc_np(errno));
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    tg_status status = TG_OK;
    while (status == TG_OK && (n = getline(&line, &capacity, file)) > 0)
        if (line[n - 1] == '\n')
            status = visit(user, line, (size_t)n);
    if (status == TG_OK && ferror(file))
        status = tg_fail(TG_ERROR_MACHINE, "cannot read %s", path);
    free(line);
    fclose(file);
    return status;
}

typedef struct keeper {
    tg_lines_keep keep;
    void *user;
    tg_new_file file;
} keeper;

static tg_status keep_line(void *user, const char *line, size_t length)
{
    keeper *k = user;
    return k->keep(k->user, line, length) ? tg_new_file_write(&k->file, line, length) : TG_OK;
}

tg_status tg_lines_drop(const char *path, tg_lines_keep keep, void *user)
{
    keeper k = {.keep = keep, .user = user};
    if (!tg_file_exists(path))
        return TG_OK;
    TG_TRY(tg_new_file_open(path, &k.file));
    tg_status status = tg_lines_read(path, keep_line, &k);
    if (status == TG_OK)
        return tg_new_file_commit(&k.file);
    tg_new_file_discard(&k.file);
    return status;
}

tg_status tg_lines_open(const char *path, tg_lines_keep keep, void *user, tg_lines *out)
{
    if (keep)
        TG_TRY(tg_lines_drop(path, keep, user));
    tg_lines lines = {.path = strdup(path)};
    if (!lines.path)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    lines.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC), 0666);
    if (lines.fd < 0) {
        free(lines.path);
        return tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", path, strerrordesc_np(errno));
    }
    *out = lines;
    return TG_OK;
}

void tg_lines_close(tg_lines *lines)
{
    if (!lines || !lines->path)
        return;
    close(lines->fd);
    free(lines->path);
    tg_text_done(&lines->line);
    *lines = (tg_lines){.fd = -1};
}

tg_status tg_lines_write(tg_lines *lines)
{
    tg_text_append_char(&lines->line, '\n');
    TG_TRY(tg_text_check(&lines->line, lines->path));
    off_t start = lseek(lines->fd, 0, SEEK_END);
    size_t done = 0;
    while (done < lines->line.length) {
        ssize_t n = write(lines->fd, lines->line.data + done, lines->line.length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = errno;
            if (start >= 0)
                (void)!ftruncate(lines->fd, start); /* no half line before the next one */
            return tg_fail(TG_ERROR_MACHINE, "cannot write %s: %s", lines->path,
                           strerrordesc_np(error));
        }
        done += (size_t)n;
    }
    return TG_OK;
}
