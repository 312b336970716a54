#include "ckpt/pieces.h"

#include "os/file.h"
#include "os/temp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Summed and written while it is in the cache. */
enum { CHUNK = 1 << 19 };

static tg_status open_with(const char *path, int flags, uint64_t length, tg_pieces *out)
{
    *out = (tg_pieces){.path = strdup(path), .fd = -1, .length = length};
    if (!out->path)
        return tg_fail(TG_ERROR_MACHINE, "cannot write %s: out of memory", path);
    out->fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666);
    if (out->fd >= 0)
        return TG_OK;
    tg_status status = tg_fail_errno("write", path);
    tg_pieces_discard(out);
    return status;
}

tg_status tg_pieces_create(const char *path, uint64_t length, tg_pieces *out)
{
    TG_TRY(open_with(path, O_CREAT | O_EXCL, length, out));
    if (ftruncate(out->fd, (off_t)length) == 0)
        return TG_OK;
    tg_status status = tg_fail_errno("write", path);
    tg_pieces_discard(out);
    return status;
}

tg_status tg_pieces_open(const char *path, uint64_t length, tg_pieces *out)
{
    struct stat st;
    if (!tg_file_await(path, TG_FILE_PATIENCE_S))
        return tg_fail_errno("see", path);
    TG_TRY(open_with(path, 0, length, out));
    if (fstat(out->fd, &st) == 0 && st.st_size >= 0 && (uint64_t)st.st_size == length)
        return TG_OK;
    tg_pieces_discard(out);
    return tg_fail(TG_ERROR_MACHINE,
                   "cannot write %s: it is not the file of %llu bytes that the "
                   "first rank has made",
                   path, (unsigned long long)length);
}

static tg_status write_at(const tg_pieces *pieces, uint64_t offset, const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t n = pwrite(pieces->fd, data, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tg_fail_errno("write", pieces->path);
        data += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return TG_OK;
}

tg_status tg_pieces_write(tg_pieces *pieces, uint64_t offset, const void *data, size_t bytes)
{
    assert(offset <= pieces->length && bytes <= pieces->length - offset);
    uLong crc = crc32(0, NULL, 0);
    const char *from = data;
    for (size_t at = 0; at < bytes; at += CHUNK) {
        size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
        crc = crc32(crc, (const Bytef *)from + at, (uInt)n);
        TG_TRY(write_at(pieces, offset + at, from + at, n));
    }
    const uint64_t behind = pieces->length - offset - bytes;
    const tg_pieces_sum sum = {bytes, (uint32_t)crc32_combine(crc, 0, (z_off_t)behind)};
    tg_pieces_add(&pieces->sum, &sum);
    return TG_OK;
}

tg_status tg_pieces_commit(tg_pieces *pieces)
{
    tg_status status =
        tg_fd_sync(pieces->fd) < 0 ? tg_fail_errno("write to disk", pieces->path) : TG_OK;
    int rc = close(pieces->fd);
    pieces->fd = -1;
    if (status == TG_OK && rc < 0) /* network file systems tell a full disk here at the latest */
        status = tg_fail_errno("write to disk", pieces->path);
    tg_pieces_discard(pieces);
    return status;
}

void tg_pieces_discard(tg_pieces *pieces)
{
    if (!pieces || !pieces->path)
        return;
    if (pieces->fd >= 0)
        close(pieces->fd);
    free(pieces->path);
    pieces->path = NULL;
    pieces->fd = -1;
}

void tg_pieces_add(tg_pieces_sum *sum, const tg_pieces_sum *other)
{
    sum->bytes += other->bytes;
    sum->crc ^= other->crc;
}

tg_status tg_pieces_check(const tg_pieces *pieces, const char *folder, const tg_pieces_sum *all)
{
    if (all->bytes == pieces->length)
        return TG_OK;
    return tg_fail(TG_ERROR_MACHINE,
                   "cannot write %s: %llu bytes of a file of %llu were written; a piece is missing "
                   "or was written twice",
                   folder, (unsigned long long)all->bytes, (unsigned long long)pieces->length);
}
