#include "profile/profile.h"

tg_status tg_profile_make(const tg_history *history, tg_operation_by by, tg_profile *out)
{
    tg_profile p = {0};
    TG_TRY(tg_step_times_make(history, &p.steps));
    TG_TRY(tg_operation_table_make(history, by, &p.operations));
    tg_ledger_make(history, &p.ledger);
    p.exchange = tg_exchange_of(history);
    *out = p;
    return TG_OK;
}

void tg_profile_done(tg_profile *profile)
{
    tg_operation_table_done(&profile->operations);
}
