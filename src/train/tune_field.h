/* tune_field.h - the rows of a search, and which of them a stage takes; for tune.c and tune_field.c only. */
#ifndef TG_TRAIN_TUNE_FIELD_H
#define TG_TRAIN_TUNE_FIELD_H

#include "train/tune.h"

typedef struct tg_tune_hunt {
    const tg_tune_plan *plan;
    const tg_tune_ops *ops;
    tg_tune_result *r;
    tg_tune_setting
        base; /* as given, but with all cores where threads are looked for: batch and workers are found
                             beside the most work, and threads go down from there */
    double ends[TG_TUNE_STAGES]; /* when each stage has to be over */
    double begin;                /* of the batches' stage */
    double overhead_s;           /* of the last trial, beside its timed steps */
    double rate;                 /* images/s, as last seen; 0: nothing is known */
} tg_tune_hunt;

/* Rows that a stage decides between. */
typedef struct tg_tune_field {
    size_t rows[TG_TUNE_ROWS_MAX];
    size_t count;
} tg_tune_field;

static inline bool tg_tune_is_known(size_t row)
{
    return row != TG_TUNE_NO_ROW;
}

bool tg_tune_equal(const tg_tune_setting *a, const tg_tune_setting *b);
size_t tg_tune_find_row(const tg_tune_result *r, const tg_tune_setting *setting);
/* The row of `setting` with a trial more; TG_TUNE_NO_ROW where time or room for rows is short. */
tg_status tg_tune_try(tg_tune_hunt *h, tg_tune_stage stage, const tg_tune_setting *setting,
                      double seconds, double end, size_t *out_row) TG_MUST_CHECK;
/* A row that is not known, does not fit, has no speed, or is there already changes nothing. */
void tg_tune_add(const tg_tune_hunt *h, tg_tune_field *f, size_t row);
/* The difference of their rates is noise, and little enough to be given up for a cheaper setting. */
bool tg_tune_tie(const tg_tune_row *fastest, const tg_tune_row *row);
/* The fastest first. */
void tg_tune_sort(const tg_tune_hunt *h, tg_tune_field *f);
/* In turns, until each has its trials or the time is over. */
tg_status tg_tune_repeat(tg_tune_hunt *h, tg_tune_stage stage, const tg_tune_field *f,
                         double end) TG_MUST_CHECK;
/* Repeats the fastest few, and the cheapest near them, and takes one: it is the best then. */
tg_status tg_tune_decide(tg_tune_hunt *h, tg_tune_stage stage, tg_tune_field *f) TG_MUST_CHECK;

#endif
