/* profile.h - all that a run's records say about its time: what `tagine profile`, the report and comparisons show.
 *
 * Errors TG_ERROR_MACHINE for memory. Memory heap, owned by the struct; nothing of the history is kept. Threads reentrant.
 */
#ifndef TG_PROFILE_PROFILE_H
#define TG_PROFILE_PROFILE_H

#include "profile/exchange.h"
#include "profile/ledger.h"
#include "profile/operation_table.h"
#include "profile/step_times.h"

typedef struct tg_profile {
    tg_ledger ledger;
    tg_step_times steps;
    tg_operation_table operations;
    tg_exchange exchange;
} tg_profile;

tg_status tg_profile_make(const tg_history *history, tg_operation_by by,
                          tg_profile *out) TG_MUST_CHECK;
void tg_profile_done(tg_profile *profile);

#endif
