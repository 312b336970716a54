/* tail.h - following a file of a run that grows by whole lines: each read gives the lines that came since the one before.
 *
 * For files that another process writes meanwhile (run/lines.h). A torn last line waits for its end. A file that was
 * replaced or cut (a resumed run drops lines) begins anew, and says so. An absent file has no lines, and may come later.
 *
 * Memory   heap, owned by the struct: a line at most. A line longer than TG_TAIL_LINE_BYTES is passed over.
 * Errors   TG_ERROR_MACHINE for memory and the disk. Threads: one at a time.
 */
#ifndef TG_RUN_TAIL_H
#define TG_RUN_TAIL_H

#include "run/lines.h"

#include <stdint.h>

enum { TG_TAIL_LINE_BYTES = 4 << 20 };

typedef struct tg_tail {
    char *path;
    int fd;           /* -1: not there yet */
    uint64_t offset;  /* behind the last byte taken */
    uint64_t at_most; /* bytes of a file that is new to the reader: its last ones; 0: all */
    tg_text line;     /* the begin of one whose end has not come */
    bool passing;     /* over the rest of a line */
} tg_tail;

/* at_most: where a file is longer when it is first read, its end is enough, from a line's begin. */
tg_status tg_tail_open(const char *folder, const char *name, uint64_t at_most,
                       tg_tail *out) TG_MUST_CHECK;
void tg_tail_close(tg_tail *tail);

/* Calls for each new line with its '\n', as tg_lines_read does; with NULL and 0 where the file begins anew, also the
 * first time. *out_news (may be NULL): there was a call. */
tg_status tg_tail_read(tg_tail *tail, tg_lines_visit visit, void *user,
                       bool *out_news) TG_MUST_CHECK;

#endif
