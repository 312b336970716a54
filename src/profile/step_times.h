/* step_times.h - how long the steps of a run took, what part of it went where, and which stood out.
 *
 * Steps     the first rank's (metrics.jsonl), all of them.
 * Ranks     means over steps of each rank (ranks.jsonl), told as the least, the mean and the most of them; the part
 *           "waiting for ranks" of one is another one's work.
 * Slow      steps that took more than TG_STEP_SLOW medians; the worst come with the part that was most beyond its own
 *           median.
 *
 * Errors TG_ERROR_MACHINE for memory. Memory freed before it returns. Threads reentrant.
 */
#ifndef TG_PROFILE_STEP_TIMES_H
#define TG_PROFILE_STEP_TIMES_H

#include "run/history.h"

#define TG_STEP_SLOW 2.0
enum { TG_STEP_WORST = 5 };

/* As in metrics.jsonl. */
typedef enum tg_step_part {
    TG_PART_DATA,
    TG_PART_TEACHER,
    TG_PART_FORWARD,
    TG_PART_BACKWARD,
    TG_PART_REDUCE,
    TG_PART_OPTIMIZER,
    TG_PART_OTHER,
    TG_PARTS
} tg_step_part;

/* Seconds a step; NaN without steps. */
typedef struct tg_step_spread {
    double mean, median, p5, p95, least, most;
} tg_step_spread;

/* Of one part over ranks, seconds a step; NaN without ranks.jsonl. */
typedef struct tg_part_ranks {
    double least, mean, most;
    int least_rank, most_rank;
} tg_part_ranks;

typedef struct tg_slow_step {
    int64_t step;
    double seconds, time; /* time of its end; NaN: not known */
    tg_step_part part;    /* that was most beyond its median, by beyond_s */
    double beyond_s;
} tg_slow_step;

typedef struct tg_step_times {
    size_t steps;
    double images_per_s; /* all photos over all steps' time */
    tg_step_spread step, parts[TG_PARTS];
    size_t ranks; /* 0: no ranks.jsonl */
    tg_part_ranks part_ranks[TG_PARTS];
    size_t slow;          /* how many */
    double slow_beyond_s; /* what they took beyond the median, together */
    tg_slow_step worst[TG_STEP_WORST];
    size_t worst_count;
} tg_step_times;

tg_status tg_step_times_make(const tg_history *history, tg_step_times *out) TG_MUST_CHECK;

/* "t_data", ...: as in the files. */
const char *tg_step_part_key(tg_step_part part);
/* "waiting for photos", ...: for people. */
const char *tg_step_part_name(tg_step_part part);

#endif
