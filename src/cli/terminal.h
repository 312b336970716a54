/* terminal.h - the whole of a terminal for a while: what was there comes back, however the program ends it.
 *
 *   open -> { draw, wait } ... -> close
 *
 * open takes the other screen of the terminal, hides the cursor and lets keys come one by one; close gives all back, and
 * so do a stop by ^Z (and what follows it) and every signal that cli/signal.h catches, because wait then returns. No
 * library: these few sequences are those of every terminal since the VT220 (ECMA-48; 1049 is xterm's).
 *
 * State    one for the process, as the terminal is. Errors TG_ERROR_MACHINE.
 */
#ifndef TG_CLI_TERMINAL_H
#define TG_CLI_TERMINAL_H

#include "base/status.h"
#include "base/text.h"
#include "report/glyphs.h"

#include <stdbool.h>

/* Standard output is one that can be drawn on. */
bool tg_terminal_is_there(void);
/* What it can show: UTF-8 by LC_ALL, LC_CTYPE, LANG; colours unless NO_COLOR is set or TERM says it is dumb. */
tg_glyphs tg_terminal_glyphs(bool terminal);
/* Its size now; 80 x 24 where it has none. */
void tg_terminal_size(size_t *out_columns, size_t *out_rows);

tg_status tg_terminal_open(void) TG_MUST_CHECK;
void tg_terminal_close(void);

/* Shows lines from the top, and nothing below them, at once. */
tg_status tg_terminal_draw(const tg_text *lines) TG_MUST_CHECK;

typedef enum tg_terminal_event {
    TG_TERMINAL_TIME, /* the time has passed */
    TG_TERMINAL_SIZE, /* another size, or the screen is to be drawn again */
    TG_TERMINAL_QUIT, /* q, ^C, ^D, a signal, or a terminal that is gone */
} tg_terminal_event;

/* Also without open: then only time and signals count. */
tg_terminal_event tg_terminal_wait(double seconds);

#endif
