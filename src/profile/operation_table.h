/* operation_table.h - what the steps of a run spent their time on, operation by operation, over all ranks.
 *
 * Input     trace/operations-rank-N.json of all ranks (run/operations.h).
 * Rows      what has equal names, phases and types is one row, with TG_BY_SHAPE equal shapes too, with TG_BY_PHASE equal
 *           phases alone; the longest first. Times are a step's, means over ranks; least and most say which rank.
 * Place     rows "in steps" take part of the step's own time, one after the other: together with rest_s they are step_s.
 *           Rows of "exchange" and "loader" go on beside it, on other threads.
 * Rates     NaN where nothing was counted, or the peak of that type is not known.
 *
 * Errors TG_ERROR_MACHINE for memory. Memory heap, owned by the table. Threads reentrant.
 */
#ifndef TG_PROFILE_OPERATION_TABLE_H
#define TG_PROFILE_OPERATION_TABLE_H

#include "run/history.h"

typedef enum tg_operation_by { TG_BY_OPERATION, TG_BY_SHAPE, TG_BY_PHASE } tg_operation_by;

typedef struct tg_operation_row {
    tg_operation key; /* name, phase, dtype, shape: as they are equal in the row, else empty */
    size_t shapes;    /* how many different ones */
    bool in_steps;    /* else beside them */
    double calls;     /* a step of a rank */
    double step_s;    /* mean over ranks */
    double share;     /* of the step */
    double flops_per_s, bytes_per_s, peak_share;
    double least_s, most_s; /* over ranks */
    int least_rank, most_rank;
} tg_operation_row;

typedef struct tg_operation_table {
    size_t ranks; /* with a file; 0: none, and all else is empty */
    int64_t steps, first_step, last_step;
    double step_s;          /* mean over ranks */
    double rest_s;          /* of it, in no operation */
    double recording_share; /* of it, that recording took */
    tg_operation_row *rows;
    size_t count;
} tg_operation_table;

tg_status tg_operation_table_make(const tg_history *history, tg_operation_by by,
                                  tg_operation_table *out) TG_MUST_CHECK;
void tg_operation_table_done(tg_operation_table *table);

/* Whether a phase takes part of the step's own time. */
bool tg_operation_in_steps(const char *phase);

#endif
