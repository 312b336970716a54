/* screen.h - what tagine watch shows of a run, as lines that fit a terminal.
 *
 * The lines that matter most stay where the terminal is low: progress, steps, cores, findings, warnings. Everything that
 * stands in files of the run (host names, log lines) is cut and freed of controls. Threads reentrant.
 */
#ifndef TG_REPORT_SCREEN_H
#define TG_REPORT_SCREEN_H

#include "report/glyphs.h"
#include "report/live.h"

typedef struct tg_screen {
    tg_glyphs glyphs;
    size_t columns, rows; /* at least 20 and 4 */
    const char *keys;     /* the last line: "q quits"; NULL: none */
} tg_screen;

/* Appends at most `rows` lines of at most `columns`, each with its '\n'. */
void tg_screen_print(const tg_screen *screen, const tg_live *live, tg_text *out);

/* The same in one line, without '\n', for output that is no terminal. */
void tg_screen_print_line(const tg_live *live, tg_text *out);

#endif
