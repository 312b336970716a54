/* lines.h - files of a run that grow by whole lines: metrics.jsonl, ranks.jsonl.
 *
 * Written   one append a line; what a full disk cut off is taken back.
 * Resumed   lines that a killed job wrote beyond its last checkpoint are dropped before the first new
 *           one, the file written aside for it, so that a kill at that moment costs nothing.
 * Read      a torn last line (the job still writes, or was killed) is passed over.
 *
 * Errors    TG_ERROR_MACHINE for the disk; TG_ERROR_INPUT for an absent file when reading.
 * Memory    the writer keeps one line's buffer, so a line allocates nothing after the first.
 * Threads   one at a time per writer.
 */
#ifndef TG_RUN_LINES_H
#define TG_RUN_LINES_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

typedef struct tg_lines {
    char *path; /* NULL: not open */
    int fd;
    tg_text line; /* what tg_lines_write appends to the file, without its line end */
} tg_lines;

/* `line` ends with '\n', which `length` counts. */
typedef tg_status (*tg_lines_visit)(void *user, const char *line, size_t length);
typedef bool (*tg_lines_keep)(void *user, const char *line, size_t length);

/* Starts an empty file (keep NULL), or continues one with the lines that `keep` says true of (it may be
 * absent). */
tg_status tg_lines_open(const char *path, tg_lines_keep keep, void *user,
                        tg_lines *out) TG_MUST_CHECK;
/* The dropping alone; an absent file stays absent. */
tg_status tg_lines_drop(const char *path, tg_lines_keep keep, void *user) TG_MUST_CHECK;
/* A failed write leaves the writer usable; the line is lost. */
tg_status tg_lines_write(tg_lines *lines) TG_MUST_CHECK;
void tg_lines_close(tg_lines *lines);

/* Calls for each whole line until one is answered with an error, which is returned. */
tg_status tg_lines_read(const char *path, tg_lines_visit visit, void *user) TG_MUST_CHECK;

#endif
