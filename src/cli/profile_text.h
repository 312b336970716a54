/* profile_text.h - the tables of `tagine profile`: as text of at most 80 columns, and as JSON. */
#ifndef TG_CLI_PROFILE_TEXT_H
#define TG_CLI_PROFILE_TEXT_H

#include "base/json_writer.h"
#include "base/text.h"
#include "profile/profile.h"

/* Rows of no time are left out, the total stands last. */
void tg_profile_print_ledger(const tg_ledger *ledger, tg_text *out);
/* How long steps take, part by part and over ranks, and the slowest. Nothing without steps. */
void tg_profile_print_steps(const tg_step_times *steps, tg_text *out);
/* Exchanges between ranks; nothing without several. */
void tg_profile_print_exchange(const tg_exchange *exchange, tg_text *out);

/* The first `top` rows in steps, the rest in one, and what goes on beside the steps. by: of the table; TG_BY_PHASE shows
 * a bar for each. over_ranks: least and most instead of rates. */
typedef struct tg_operation_view {
    tg_operation_by by;
    bool over_ranks;
    size_t top;
} tg_operation_view;
void tg_profile_print_operations(const tg_operation_table *table, const tg_operation_view *view,
                                 tg_text *out);

/* Members of an object that is open: "ledger", "steps", "operations", "exchange". */
void tg_profile_put(const tg_profile *profile, size_t top, tg_json_writer *writer);

/* "0.29 ms", "12.3 s", "3.20 h": three digits and a unit; "-": not known. */
void tg_profile_append_seconds(tg_text *out, double seconds);
/* A bar of `width` columns at a share of 1, without blanks behind it. */
void tg_profile_append_bar(tg_text *out, double share, int width);

#endif
