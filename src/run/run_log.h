/* run_log.h - log/rank-N.log: the job's log lines with time and level, and the last few at hand.
 *
 * The program's log sink passes each line on with tg_run_log_line. The last TG_RUN_LOG_KEPT lines
 * stay in memory for the `failure` file, also when the disk takes no more.
 * Errors  open: TG_ERROR_MACHINE. A line that cannot be written is dropped from the file.
 * Threads one at a time (the log's lock does that).
 */
#ifndef TG_RUN_RUN_LOG_H
#define TG_RUN_RUN_LOG_H

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "run/run_dir.h"

#define TG_RUN_LOG_KEPT 20

typedef struct tg_run_log {
    int fd;
    tg_text kept[TG_RUN_LOG_KEPT]; /* a ring */
    unsigned count;                /* lines since open */
} tg_run_log;

/* Opens for appending: a resumed job continues the file. */
tg_status tg_run_log_open(const tg_run_dir *dir, int rank, tg_run_log *out) TG_MUST_CHECK;
void tg_run_log_close(tg_run_log *log);
void tg_run_log_line(tg_run_log *log, tg_log_level level, const char *line);
/* Appends the kept lines, oldest first, each with its line end. */
void tg_run_log_last(const tg_run_log *log, tg_text *out);

/* "debug", "info", "warning", "error". */
const char *tg_log_level_name(tg_log_level level);

#endif
