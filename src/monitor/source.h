/* source.h - files of /proc and /sys, kept open and read again and again; and numbers in their text.
 *
 * What cannot be opened or read is absent: reading it says false, and whoever wanted a number of it has NaN. A file
 * that has gone (a thread that ended) is closed by the read that finds it out.
 *
 * Errors none but that. Memory: the text's, which a caller keeps from read to read. Threads one at a time.
 */
#ifndef TG_MONITOR_SOURCE_H
#define TG_MONITOR_SOURCE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_source {
    int fd; /* -1: absent */
} tg_source;

/* `root` is put before the path ("" for the real tree; tests give one of copies). */
tg_source tg_source_open(const char *root, const char *path);
/* The whole text from its beginning, replacing what was in `out`. */
bool tg_source_read(tg_source *source, tg_text *out);
void tg_source_close(tg_source *source);
/* Opens, reads and closes. */
bool tg_source_once(const char *root, const char *path, tg_text *out);

/* Passes blanks and takes the digits behind them; false, and *at stays, where there are none. Counters are doubles, exact
 * up to 2^53. */
bool tg_scan_number(const char **at, double *out);
/* Passes blanks and the word behind them. */
void tg_scan_word(const char **at);
/* The number behind `key` at the beginning of a line ("ctxt 123", "MemTotal:   5 kB"); NaN: there is none. */
double tg_scan_key(const char *text, const char *key);

/* What a counter grew by a second; NaN where either is unknown, or where it fell (it was begun anew). */
double tg_rate(double before, double after, double seconds);

#endif
