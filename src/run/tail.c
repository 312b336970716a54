#include "run/tail.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

tg_status tg_tail_open(const char *folder, const char *name, uint64_t at_most, tg_tail *out)
{
    *out = (tg_tail){.path = tg_path_join(folder, name), .fd = -1, .at_most = at_most};
    return out->path ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
}

void tg_tail_close(tg_tail *tail)
{
    if (!tail || !tail->path)
        return;
    if (tail->fd >= 0)
        close(tail->fd);
    free(tail->path);
    tg_text_done(&tail->line);
    *tail = (tg_tail){.fd = -1};
}

/* An open file keeps its number, so that one of the same number under this name is the same. */
static bool is_replaced(const tg_tail *tail)
{
    struct stat held, named;
    char before = '\n';
    if (tail->fd < 0 || fstat(tail->fd, &held) < 0)
        return true;
    if (stat(tail->path, &named) < 0)
        return false; /* removed, or between two names: what is held still counts */
    if (held.st_ino != named.st_ino || held.st_dev != named.st_dev)
        return true;
    if ((uint64_t)held.st_size < tail->offset)
        return true;
    /* cut and grown again: most likely another byte than a line's end stands there */
    return tail->offset && !tail->line.length && !tail->passing &&
           pread(tail->fd, &before, 1, (off_t)tail->offset - 1) == 1 && before != '\n';
}

static void forget(tg_tail *tail)
{
    if (tail->fd >= 0)
        close(tail->fd);
    tail->fd = -1;
    tail->offset = 0;
    tail->passing = false;
    tg_text_clear(&tail->line);
}

/* TG_END: it is not there. */
static tg_status begin_anew(tg_tail *tail)
{
    struct stat st;
    forget(tail);
    /* a pipe of that name must not hold the reader up */
    tail->fd = open(tail->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (tail->fd < 0)
        return TG_END;
    if (fstat(tail->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        forget(tail);
        return TG_END;
    }
    if (tail->at_most && (uint64_t)st.st_size > tail->at_most) {
        tail->offset = (uint64_t)st.st_size - tail->at_most;
        tail->passing = true; /* most likely in the middle of a line */
    }
    return TG_OK;
}

/* One line, or a part of one, of `length` bytes. */
static tg_status take(tg_tail *tail, const char *bytes, size_t length, tg_lines_visit visit,
                      void *user)
{
    const bool ended = bytes[length - 1] == '\n';
    tg_status status = TG_OK;
    if (!tail->passing)
        tg_text_append(&tail->line, bytes, length);
    TG_TRY(tg_text_check(&tail->line, tail->path));
    if (tail->line.length > TG_TAIL_LINE_BYTES) {
        tail->passing = true;
        tg_text_clear(&tail->line);
    }
    if (!ended)
        return TG_OK;
    if (!tail->passing)
        status = visit(user, tail->line.data, tail->line.length);
    tail->passing = false;
    tg_text_clear(&tail->line);
    return status;
}

static tg_status take_chunk(tg_tail *tail, const char *bytes, size_t length, tg_lines_visit visit,
                            void *user)
{
    while (length) {
        const char *end = memchr(bytes, '\n', length);
        const size_t n = end ? (size_t)(end - bytes) + 1 : length;
        TG_TRY(take(tail, bytes, n, visit, user));
        bytes += n;
        length -= n;
    }
    return TG_OK;
}

tg_status tg_tail_read(tg_tail *tail, tg_lines_visit visit, void *user, bool *out_news)
{
    const bool anew = is_replaced(tail);
    const bool had = tail->fd >= 0;
    bool news = false;
    char bytes[CHUNK];
    tg_status status = anew ? begin_anew(tail) : TG_OK;
    if (anew && (status == TG_OK || had)) {
        news = true;
        TG_TRY(visit(user, NULL, 0));
    }
    while (status == TG_OK) {
        const ssize_t n = pread(tail->fd, bytes, sizeof bytes, (off_t)tail->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status =
                tg_fail(TG_ERROR_MACHINE, "cannot read %s: %s", tail->path, strerrordesc_np(errno));
        if (n <= 0)
            break;
        tail->offset += (uint64_t)n;
        news = true;
        status = take_chunk(tail, bytes, (size_t)n, visit, user);
    }
    if (out_news)
        *out_news = news;
    return status < 0 ? status : TG_OK;
}
