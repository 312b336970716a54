/* rank_steps.h - ranks.jsonl: what each rank spent its step on, one JSON object a step, written by the
 * first rank of several.
 *
 *   {"step":12,"ranks":2,"images":[16,16],"t_step":[0.41,0.41],...,"rss_bytes":[...,...]}
 *
 * Keys mean what they mean in metrics.jsonl; each is an array by rank. A rank's own work is t_step -
 * t_reduce: what it did while it waited for nobody. A resumed run drops what lies behind its checkpoint,
 * whatever the number of ranks. Lines, errors, memory, threads: run/lines.h.
 */
#ifndef TG_RUN_RANK_STEPS_H
#define TG_RUN_RANK_STEPS_H

#include "run/lines.h"

#include <stdint.h>

/* One rank's step. Seconds; the parts add up to t_step. */
typedef struct tg_rank_step {
    int64_t images; /* of this rank alone */
    double t_step, t_data, t_teacher, t_forward, t_backward, t_reduce, t_optimizer, t_other;
    uint64_t rss_bytes;
} tg_rank_step;

typedef struct tg_rank_steps {
    tg_lines lines;
} tg_rank_steps;

/* resume: lines with step > last_step are dropped first; else an empty file is started. */
tg_status tg_rank_steps_open(const char *path, bool resume, int64_t last_step,
                             tg_rank_steps *out) TG_MUST_CHECK;
/* The dropping alone, for a run that goes on with one rank. */
tg_status tg_rank_steps_drop(const char *path, int64_t last_step) TG_MUST_CHECK;
/* each: [ranks]. A failed write leaves the writer usable; the line is lost. */
tg_status tg_rank_steps_write(tg_rank_steps *writer, int64_t step, const tg_rank_step *each,
                              size_t ranks) TG_MUST_CHECK;
void tg_rank_steps_close(tg_rank_steps *writer);

/* Called for each line in the order of the file; each: [ranks], gone when it returns. */
typedef void (*tg_rank_steps_visit)(void *user, int64_t step, const tg_rank_step *each,
                                    size_t ranks);
/* *out_bad (may be NULL): lines that were no record. */
tg_status tg_rank_steps_read(const char *path, tg_rank_steps_visit visit, void *user,
                             size_t *out_bad) TG_MUST_CHECK;
/* One line, as a reader that follows the file has it (run/tail.h); false: it is no record. */
bool tg_rank_steps_take(const char *line, size_t length, tg_rank_steps_visit visit, void *user);

#endif
