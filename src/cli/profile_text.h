/* profile_text.h - the tables of `tagine profile` as text of 80 columns. */
#ifndef TG_CLI_PROFILE_TEXT_H
#define TG_CLI_PROFILE_TEXT_H

#include "base/text.h"
#include "profile/ledger.h"

/* Rows of no time are left out, the total stands last. */
void tg_profile_print_ledger(const tg_ledger *ledger, tg_text *out);

/* "0.29 ms", "12.3 s", "3.20 h": three digits and a unit. */
void tg_profile_append_seconds(tg_text *out, double seconds);
/* A bar of `width` columns at a share of 1, without blanks behind it. */
void tg_profile_append_bar(tg_text *out, double share, int width);

#endif
