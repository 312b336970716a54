/* file.h - reading whole files, and writing files so that no crash leaves half of one.
 *
 * Writing aside   A new file (or folder: folder.h) is built under a temporary name beside its
 * target
 *                 (".NAME.tg-new-..."), forced to disk, and renamed over the target, then the
 * folder that holds it is forced to disk. At any moment the target is the whole old one or the
 * whole new one. A temporary is held under flock() while its writer lives, so tg_temp_clean
 * (folder.h) can tell what a killed writer left behind from work in progress. Links           a
 * target that is a symbolic link is followed: what it points to is replaced. Errors
 * TG_ERROR_MACHINE with path and the system's reason; TG_ERROR_INPUT when a file to be read is
 * absent, may not be read, is not a regular file, or larger than allowed. A failed write removes its temporary and
 * leaves the target as it was. Threads         reentrant. Memory: heap buffers owned by the caller
 * where said.
 */
#ifndef TG_OS_FILE_H
#define TG_OS_FILE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a whole regular file with read() (a file that shrinks meanwhile gives fewer bytes, never a
 * bus error). *out is from malloc, has a NUL behind its last byte, and belongs to the caller. */
tg_status tg_file_read(const char *path, size_t max_bytes, char **out,
                       size_t *out_bytes) TG_MUST_CHECK;
/* Replaces `path` by these bytes, written aside. */
tg_status tg_file_write(const char *path, const void *bytes, size_t length) TG_MUST_CHECK;
/* The same by a text that found memory for all of it. */
tg_status tg_file_write_text(const char *path, const tg_text *text) TG_MUST_CHECK;
bool tg_file_exists(const char *path);
/* Waits until a file or folder can be opened that another host has made and said so: a network file system may show it
 * late, or give a stale handle of what was there before. False, with errno, when it cannot after so long. */
#define TG_FILE_PATIENCE_S 3.0
bool tg_file_await(const char *path, double seconds);
/* Whose fault an errno of opening or reading something named by the user is: TG_ERROR_MACHINE for
 * too many open files, no memory and a failing disk; else TG_ERROR_INPUT, because that name is bad. */
tg_status tg_file_read_fault(int error);

/* A file written aside piece by piece: open -> write ... -> commit, or discard. commit and discard
 * end the object; discard accepts NULL and an object that was committed. */
typedef struct tg_new_file {
    char *path;      /* target, links followed */
    char *temp_path; /* NULL once committed */
    int fd;
} tg_new_file;

tg_status tg_new_file_open(const char *path, tg_new_file *out) TG_MUST_CHECK;
tg_status tg_new_file_write(tg_new_file *file, const void *bytes, size_t length) TG_MUST_CHECK;
tg_status tg_new_file_commit(tg_new_file *file) TG_MUST_CHECK;
void tg_new_file_discard(tg_new_file *file);

/* Bytes that this user may still write where `path` (a file or folder that exists) lives. */
tg_status tg_disk_free_bytes(const char *path, uint64_t *out) TG_MUST_CHECK;

/* "folder/name", from malloc; NULL when memory is short. */
char *tg_path_join(const char *folder, const char *name);

#endif
