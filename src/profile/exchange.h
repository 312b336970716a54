/* exchange.h - what ranks' exchanges took, what of it the computing hid, and who was waited for.
 *
 * Waited    mean over ranks of what a rank waited for others in a step (ranks.jsonl). Exposed is what every rank waited (the
 *           least of the step), so the exchange itself; the rest of it was waiting for slower ranks.
 * Exchange  time a step in which something was under way between ranks (operations of the phase "exchange"), mean over
 *           ranks; hidden is the share of it that nobody waited for: 1 - exposed / exchange.
 * Slowest   the rank whose own work (step less waiting) is the most, and the mean of the others'.
 * Unknown   NaN; ranks 0: one rank, or no ranks.jsonl.
 *
 * Errors none. Memory none. Threads reentrant.
 */
#ifndef TG_PROFILE_EXCHANGE_H
#define TG_PROFILE_EXCHANGE_H

#include "run/history.h"

/* Seconds and bytes are a step's. */
typedef struct tg_exchange {
    size_t ranks;
    size_t steps; /* with that number of ranks, the last one of the run */
    double step_s, waited_s, exposed_s, slower_s;
    double exchange_s, bytes, hidden; /* bytes: of what a rank exchanges */
    int slowest_rank;
    double slowest_s, others_s; /* own work */
} tg_exchange;

tg_exchange tg_exchange_of(const tg_history *history);

#endif
