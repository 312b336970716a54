/* screen_parts.h - the lines of the screen, theme by theme; for screen*.c only. */
#ifndef TG_REPORT_SCREEN_PARTS_H
#define TG_REPORT_SCREEN_PARTS_H

#include "report/screen.h"

enum { TG_SCREEN_LINES = 96, TG_SCREEN_LABEL = 10 };

/* Lines under way. A line's rank says when it gives way: the greatest first. */
typedef struct tg_screen_page {
    const tg_screen *screen;
    const tg_live *live;
    tg_text lines[TG_SCREEN_LINES];
    int ranks[TG_SCREEN_LINES];
    size_t count;
} tg_screen_page;

/* A new line that begins with its label, "loss      "; NULL: with nothing. */
tg_text *tg_screen_begin(tg_screen_page *page, int rank, const char *label);
/* Columns that are left on the line. */
size_t tg_screen_room(const tg_screen_page *page, const tg_text *line);
/* Text of whatever origin, cut to what is left. */
void tg_screen_append(const tg_screen_page *page, tg_text *line, const char *text);

/* Progress, curves, steps. */
void tg_screen_put_progress(tg_screen_page *page);
void tg_screen_put_steps(tg_screen_page *page);
/* Machines. */
void tg_screen_put_machines(tg_screen_page *page);

#endif
