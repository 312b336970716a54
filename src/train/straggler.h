/* straggler.h - which rank keeps the others waiting, and with what: a rule over the steps of all ranks.
 *
 * Own work     of a rank in a step: t_step - t_reduce, what it did while it waited for nobody. Ranks meet
 *              in every step, so the one with most own work is waited for by all others.
 * Windows      of at least TG_STRAGGLER_STEPS steps and TG_STRAGGLER_SECONDS, one after another; a
 *              rank's numbers are means over a window. The process's first step is left out.
 * Excess       own work beyond the median of the other ranks', as a share of the step.
 * Begins       when the rank with most own work exceeds the others by TG_STRAGGLER_BEGIN in
 *              TG_STRAGGLER_WINDOWS windows in a row; the phase is the one that exceeds its median most.
 * Changes      when in as many windows another rank exceeds them by that much more than the named one
 *              (or by that much, and the named one no longer at all), or when another phase of the named
 *              one leads the first by TG_STRAGGLER_END.
 * Clears       when its excess stays below TG_STRAGGLER_END in as many windows.
 *
 * One hiccup, however long, is in one window; hiccups that come again and again do cost time and are
 * named. Memory: three records a rank. Errors: TG_ERROR_MACHINE when it is short. Threads: one at a time.
 */
#ifndef TG_TRAIN_STRAGGLER_H
#define TG_TRAIN_STRAGGLER_H

#include "base/text.h"
#include "run/rank_steps.h"

enum { TG_STRAGGLER_STEPS = 10, TG_STRAGGLER_WINDOWS = 2 };
#define TG_STRAGGLER_SECONDS 1.0
#define TG_STRAGGLER_BEGIN 0.10
#define TG_STRAGGLER_END 0.05

typedef enum tg_rank_phase {
    TG_PHASE_DATA,
    TG_PHASE_TEACHER,
    TG_PHASE_FORWARD,
    TG_PHASE_BACKWARD,
    TG_PHASE_OPTIMIZER,
    TG_PHASE_OTHER,
    TG_PHASE_COUNT
} tg_rank_phase;

/* A rank against the median of the others; seconds and photos a step. */
typedef struct tg_straggler_finding {
    int rank; /* -1: no rank stands out */
    tg_rank_phase phase;
    double step_s, own_s, others_s;
    double phase_s, phase_others_s;
    double images, images_others;
} tg_straggler_finding;

typedef enum tg_straggler_event {
    TG_STRAGGLER_NOTHING,
    TG_STRAGGLER_BEGAN,
    TG_STRAGGLER_CHANGED,
    TG_STRAGGLER_CLEARED
} tg_straggler_event;

typedef struct tg_straggler {
    size_t ranks;
    tg_rank_step *window, *whole; /* [ranks], sums */
    double *scratch;              /* [ranks] */
    int64_t window_steps, whole_steps;
    bool begun; /* the first step has passed */
    tg_straggler_finding
        found; /* what stands, with the numbers of the last window; rank -1: nothing */
    tg_straggler_finding rival; /* what the last windows say instead */
    int rival_windows, even_windows;
} tg_straggler;

tg_status tg_straggler_init(tg_straggler *straggler, size_t ranks) TG_MUST_CHECK;
void tg_straggler_done(tg_straggler *straggler);

/* One step of all ranks, each: [ranks]. On TG_STRAGGLER_CLEARED straggler->rival has the rank that no longer
 * stands out, with its numbers now. */
tg_straggler_event tg_straggler_add(tg_straggler *straggler, const tg_rank_step *each);

/* The rank with most own work over all steps so far, however small its excess; rank -1: fewer steps, or
 * less time, than the rule needs to begin. */
tg_straggler_finding tg_straggler_whole(tg_straggler *straggler);

/* Share of the step by which it exceeds the others. */
double tg_straggler_excess(const tg_straggler_finding *finding);

/* "1.31 s", "12.4 ms" */
void tg_straggler_print_seconds(double seconds, tg_text *out);
/* "rank 3 on b, 1.31 s of own work a step (median of the others 1.02 s), most of the difference in ..." */
void tg_straggler_print(const tg_straggler_finding *finding, const char *host, tg_text *out);
/* "t_data" */
const char *tg_rank_phase_name(tg_rank_phase phase);

#endif
