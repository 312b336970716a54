/* wall.h - where the wall time of a job goes besides its steps: what the first rank writes to spans.jsonl (run/spans.h).
 *
 *   count_dropped -> open (the records are this run's) -> span ... -> close (when the job's last file is written)
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

/* Steps that a resume drops. until: when the last of them ended; NaN: not known. */
typedef struct tg_wall_dropped {
    int64_t last_step, count; /* those behind last_step */
    double seconds, until;
} tg_wall_dropped;

/* Zeroed, with begun_ns set, before all else. */
typedef struct tg_wall {
    int64_t begun_ns; /* when the process began (os/process.h) */
    int64_t until_ns; /* end of the last step or span */
    int64_t step;     /* updates done then */
    tg_wall_dropped dropped;
    bool open;
    tg_spans file;
} tg_wall;

/* Before steps behind `last_step` are dropped from RUN/metrics.jsonl: what they come to. Changes no file. */
void tg_wall_count_dropped(tg_wall *wall, const char *run_path, int64_t last_step);
/* RUN/spans.jsonl with this attempt, which begins behind `last_step`. resume: goes on behind what is there, and tells the
 * steps that were dropped. A start that is refused has not come here: it leaves an earlier run's file alone. */
tg_status tg_wall_open(tg_wall *wall, const char *run_path, bool resume,
                       int64_t last_step) TG_MUST_CHECK;
/* Notes that a step, which spans.jsonl does not have, has ended. */
void tg_wall_step(tg_wall *wall, int64_t step, int64_t end_ns);
/* What has been from begin_ns (0: since the last step or span) to now; returns now, also with wall NULL. */
int64_t tg_wall_span(tg_wall *wall, tg_span_kind kind, int64_t begin_ns);
/* All since the last step or span is the finish; then the end. */
void tg_wall_close(tg_wall *wall);

#endif
