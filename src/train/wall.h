/* wall.h - where the wall time of a job goes besides its steps: what the first rank writes to spans.jsonl (run/spans.h).
 *
 *   open (with the job's records) -> span ... -> close (when the job's last file is written)
 *
 * Whoever starts the job owns it, so that the end is the process's and not the job's; the job opens it. Until then, and
 * on ranks that have none, every function does nothing.
 *
 * Errors   TG_ERROR_MACHINE of opening. A span that cannot be written is a warning.
 * Threads  the job's own.
 */
#ifndef TG_TRAIN_WALL_H
#define TG_TRAIN_WALL_H

#include "run/spans.h"

#include <stdbool.h>

/* Zeroed, with begun_ns set, before open. */
typedef struct tg_wall {
    int64_t begun_ns; /* when the process began (os/process.h) */
    int64_t until_ns; /* end of the last step or span */
    int64_t step;     /* updates done then */
    bool open;
    tg_spans file;
} tg_wall;

/* RUN/spans.jsonl with this attempt. resume: goes on behind what is there, and says what the records of steps behind
 * `last_step` come to, which are about to be dropped from RUN/metrics.jsonl. */
tg_status tg_wall_open(tg_wall *wall, const char *run_path, bool resume,
                       int64_t last_step) TG_MUST_CHECK;
/* Notes that a step, which spans.jsonl does not have, has ended. */
void tg_wall_step(tg_wall *wall, int64_t step, int64_t end_ns);
/* What has been from begin_ns (0: since the last step or span) to now; returns now, also with wall NULL. */
int64_t tg_wall_span(tg_wall *wall, tg_span_kind kind, int64_t begin_ns);
/* All since the last step or span is the finish; then the end. */
void tg_wall_close(tg_wall *wall);

#endif
