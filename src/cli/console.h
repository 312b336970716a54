/* console.h - the program's two outlets: results on standard output, log and progress on standard
 * error.
 *
 * On a terminal progress is one line that is redrawn at most ten times a second and erased before a
 * log line; elsewhere it is a plain line now and then. --quiet silences both, not errors.
 * One console for the process, guarded by the log's lock and used from the main thread otherwise.
 */
#ifndef TG_CLI_CONSOLE_H
#define TG_CLI_CONSOLE_H

#include "base/status.h"
#include "base/text.h"
#include "run/run_log.h"

#include <stdbool.h>
#include <stdint.h>

/* Becomes the sink of base/log.h. */
void tg_console_open(bool quiet, bool verbose);
/* This process is rank `rank` of a job, and what all ranks have to say, the first one says: of another's log
 * lines only its own warnings are shown, and errors where `tg_console_speak` was called; each begins with
 * "rank N on HOST: ". host is copied. */
void tg_console_set_rank(int rank, const char *host);
/* The command's name, for errors; borrowed; NULL: none. */
void tg_console_set_command(const char *command);
/* There is nobody else to say it; without effect after settle. */
void tg_console_speak(void);
/* It is known for good whether this rank says it. */
void tg_console_settle(bool speaks);
/* Shows why the program ends, also with --quiet, once, unless another rank does. */
void tg_console_error(const char *message);
/* tg_console_set_rank was called. */
bool tg_console_has_rank(void);

/* Copies every log line to this log as well (NULL: no longer). Borrowed. */
void tg_console_attach(tg_run_log *log);
/* Erases a progress line that still stands. */
void tg_console_close(void);

/* Writes the text to standard output at once and empties it. TG_ERROR_MACHINE when that fails or
 * the text itself did. */
tg_status tg_console_print(tg_text *text) TG_MUST_CHECK;

/* True after a print failed because the reader of the pipe is gone (`| head`): no news to report.
 */
bool tg_console_reader_left(void);

/* Shows `done` of `total` with a bar, as wide as the terminal allows, and `note` behind it
 * ("loss 1.23  14.2 images/s  3:20 left"). Cheap to call every step. total 0: no bar, only the note. */
void tg_console_progress(const char *what, uint64_t done, uint64_t total, const char *note);
/* Ends the line; the last state stays readable. */
void tg_console_progress_end(void);
/* Takes the line away: a line of the log says what came of it. */
void tg_console_progress_clear(void);

/* "1:02:03" or "2:03". */
void tg_console_append_duration(tg_text *text, double seconds);
/* "12.3 MiB". */
void tg_console_append_bytes(tg_text *text, double bytes);

#endif
