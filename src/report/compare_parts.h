/* compare_parts.h - what compare.c is put together from; for compare*.c only. */
#ifndef TG_REPORT_COMPARE_PARTS_H
#define TG_REPORT_COMPARE_PARTS_H

#include "report/compare.h"

/* Room for one more element at the end of an array of `count`; NULL: memory is short, recorded, and the array is as it
 * was. */
void *tg_compare_more(void *array, size_t count, size_t size);

/* The steps that count: [first, count) of the history, without warm-up. */
size_t tg_compare_first_step(const tg_history *history);
/* A value of each of these steps, from malloc; NULL: recorded. */
typedef double (*tg_compare_value)(const tg_step_record *step);
tg_status tg_compare_measure_steps(const tg_history *history, tg_compare_value value,
                                   tg_measure *out) TG_MUST_CHECK;
tg_status tg_compare_add_row(tg_comparison *c, const tg_compare_row *row) TG_MUST_CHECK;

/* The value of an option that a run worked with: "auto" as it came out. "-": none. */
void tg_compare_effective(const tg_history *history, const char *option, char out[64]);
/* The same value, as a number or as text. */
bool tg_compare_same_value(const char *a, const char *b);

tg_status tg_compare_settings(const tg_history *a, const tg_history *b,
                              tg_comparison *c) TG_MUST_CHECK;
tg_status tg_compare_speed(const tg_history *a, const tg_history *b,
                           tg_comparison *c) TG_MUST_CHECK;
tg_status tg_compare_machines(const tg_history *a, const tg_history *b,
                              tg_comparison *c) TG_MUST_CHECK;
tg_status tg_compare_learning(const tg_history *a, const tg_history *b,
                              tg_comparison *c) TG_MUST_CHECK;
tg_status tg_compare_operations(const tg_history *a, const tg_history *b,
                                tg_comparison *c) TG_MUST_CHECK;
tg_status tg_compare_findings(const tg_history *a, const tg_history *b,
                              tg_comparison *c) TG_MUST_CHECK;

#endif
