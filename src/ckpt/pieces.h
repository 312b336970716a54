/* pieces.h - a file of known length that several processes fill at once, each its own pieces of it.
 *
 * Order     one process creates the file with its full length; then the others open it; all write and
 *           commit. Who goes when is the callers' to agree on; nobody waits here, except that opening
 *           gives a network file system TG_FILE_PATIENCE_S to show what another host has made.
 * CRC-32    of the whole file, without reading it: CRCs are linear, so that of a piece, moved on past the
 *           bytes behind it (zlib's crc32_combine), may be XORed with the others' in any order.
 * Whole     the bytes written by all together must be the file's length: what is missing is found
 *           by tg_pieces_check. Pieces must not overlap.
 * Hosts     descriptors are for writing alone, and the length is set before any other opens: so a client
 *           of NFS never reads a page in, and sends just the bytes that were written to it, not the
 *           neighbours' that another host is writing.
 * Errors    TG_ERROR_MACHINE with path and the system's reason. Memory: the path. Threads: one an object.
 */
#ifndef TG_CKPT_PIECES_H
#define TG_CKPT_PIECES_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What was written, and what it adds to the file's CRC. */
typedef struct tg_pieces_sum {
    uint64_t bytes;
    uint32_t crc;
} tg_pieces_sum;

typedef struct tg_pieces {
    char *path; /* NULL: closed */
    int fd;
    uint64_t length;
    tg_pieces_sum sum; /* of this object's pieces; stays after commit */
} tg_pieces;

tg_status tg_pieces_create(const char *path, uint64_t length, tg_pieces *out) TG_MUST_CHECK;
/* One that another process has created with this length. */
tg_status tg_pieces_open(const char *path, uint64_t length, tg_pieces *out) TG_MUST_CHECK;
/* file[offset, offset + bytes), inside the length. */
tg_status tg_pieces_write(tg_pieces *pieces, uint64_t offset, const void *data,
                          size_t bytes) TG_MUST_CHECK;
/* Forces them to disk and closes. */
tg_status tg_pieces_commit(tg_pieces *pieces) TG_MUST_CHECK;
/* Closes; the file stays. Accepts NULL, a zeroed object, and one that is closed. */
void tg_pieces_discard(tg_pieces *pieces);

/* Adds another writer's. */
void tg_pieces_add(tg_pieces_sum *sum, const tg_pieces_sum *other);
/* Whether the sum of all writers covers this file, which may be closed; `folder`, for the message, is
 * where it will be. */
tg_status tg_pieces_check(const tg_pieces *pieces, const char *folder,
                          const tg_pieces_sum *all) TG_MUST_CHECK;

#endif
