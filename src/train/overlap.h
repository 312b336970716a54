/* overlap.h - how much of the exchange of gradients lay inside backward, from what collectives took.
 *
 * A bucket is queued when its gradients are final, posted when the thread that moves messages takes it up, done
 * when its sum is there. The exchange of a step is the time in which one bucket at least is posted and not done;
 * hidden is what of it lies inside the backward of the window's last micro-batch.
 *
 * Threads reentrant. Memory: none but the text's.
 */
#ifndef TG_TRAIN_OVERLAP_H
#define TG_TRAIN_OVERLAP_H

#include "base/text.h"
#include "comm/comm.h"

/* The records of one step (train/ranks.h), and its last backward. Gathered parameters among them are passed
 * over. */
typedef struct tg_overlap_step {
    const tg_comm_record *records; /* in the order in which they began */
    size_t count;
    int64_t backward_begin_ns, backward_end_ns;
} tg_overlap_step;

typedef struct tg_overlap {
    size_t buckets;              /* 0: all below is 0 */
    double exchange_s, hidden_s; /* hidden: of exchange_s */
    double before_end_s,
        behind_s; /* the first bucket was posted so long before backward ended, and the last was done
                                      so long after it; negative: the other way round */
} tg_overlap;

tg_overlap tg_overlap_of(const tg_overlap_step *step);

/* One line, without its end, and beside these numbers what the rank waited and what the thread that moves messages
 * took of a core. */
void tg_overlap_tell(const tg_overlap_step *step, double exposed_s, double cpu_s, tg_text *out);

/* A picture of the step: a line for backward and one for each bucket (those in the middle left out where there are
 * many), '.' while it is queued and '#' while it is on its way, over the same time. */
void tg_overlap_draw(const tg_overlap_step *step, tg_text *out);

#endif
