/* html.h - report.html: a run on one page, in one file that needs no network and no other file.
 *
 * The page (src/report/page/: HTML, style and scripts, put together when the program is built) draws what it is given as
 * one JSON object; the html_*.c make that object from the run directory. It is kept small whatever the run: steps and
 * samples are means over bins, of which there are at most TG_HTML_STEPS and TG_HTML_BINS, fewer where there are many rows,
 * so that an hour of 48 cores at 500 ms with 100,000 steps stays below 5 MB.
 *
 * Strings of the run (class names, hosts, options) can hold anything: in the data "<" is written as \u003c, and the page
 * shows text only as text.
 *
 * Errors TG_ERROR_MACHINE for memory and disk. Memory heap, given back. Threads reentrant.
 */
#ifndef TG_REPORT_HTML_H
#define TG_REPORT_HTML_H

#include "base/text.h"
#include "run/history.h"

enum { TG_HTML_STEPS = 2000, TG_HTML_BINS = 3600, TG_HTML_RANK_BINS = 1500 };

typedef struct tg_html_options {
    bool running;        /* the page looks for a newer one from time to time */
    double refresh_s;    /* every so many seconds */
    double written;      /* wall time now (tg_clock_unix) */
    const char *version; /* of the program */
} tg_html_options;

/* The page as text. */
tg_status tg_html_print(const tg_history *history, const tg_html_options *options,
                        tg_text *out) TG_MUST_CHECK;
/* Written aside and renamed, so that a browser never reads half of it. */
tg_status tg_html_write(const tg_history *history, const tg_html_options *options,
                        const char *path) TG_MUST_CHECK;

#endif
