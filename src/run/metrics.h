/* metrics.h - metrics.jsonl: one JSON object a line for every step and every evaluation.
 *
 * Numbers are the shortest that read back; NaN and infinities become null, which reads as NaN. A resumed
 * run drops the records behind its checkpoint before the first new one, so steps neither repeat nor are
 * lost. A reader passes over a torn last line and counts others that are no record. How lines are
 * written, errors, memory and threads: run/lines.h.
 */
#ifndef TG_RUN_METRICS_H
#define TG_RUN_METRICS_H

#include "run/lines.h"

#include <stdint.h>

/* In the order of the file; times are seconds, and the parts add up to t_step. */
typedef struct tg_step_record {
    int64_t step;                    /* optimizer steps done, from 1 */
    int64_t epoch;                   /* that this step belongs to, from 0 */
    int64_t images;                  /* in this step */
    double loss, loss_task, loss_kd; /* NaN: not used */
    double lr, grad_norm, images_per_s;
    double t_step, t_data, t_teacher, t_forward, t_backward, t_reduce, t_optimizer, t_other;
    uint64_t rss_bytes;
    double time; /* wall time of its end (tg_clock_unix); NaN in files of older programs */
} tg_step_record;

typedef struct tg_eval_record {
    int64_t epoch;             /* epochs done */
    double val_top1, val_top5; /* percent */
    double val_loss;
    int64_t val_images;
    double time; /* as in tg_step_record */
} tg_eval_record;

typedef struct tg_metrics {
    tg_lines lines;
} tg_metrics;

/* Starts an empty file, or with `resume` continues one: records with step > last_step and
 * evaluations with epoch > last_epoch are dropped first (the file may be absent). */
tg_status tg_metrics_open(const char *path, bool resume, int64_t last_step, int64_t last_epoch,
                          tg_metrics *out) TG_MUST_CHECK;
/* A failed write leaves the writer usable; the record is lost. */
tg_status tg_metrics_write_step(tg_metrics *metrics, const tg_step_record *record) TG_MUST_CHECK;
tg_status tg_metrics_write_eval(tg_metrics *metrics, const tg_eval_record *record) TG_MUST_CHECK;
void tg_metrics_close(tg_metrics *metrics);

/* Appends the record as JSON without a line end. */
void tg_step_record_print(const tg_step_record *record, tg_text *out);
void tg_eval_record_print(const tg_eval_record *record, tg_text *out);

/* Called for each record in the order of the file: exactly one of the pointers is not NULL. */
typedef void (*tg_metrics_visit)(void *user, const tg_step_record *step,
                                 const tg_eval_record *eval);
/* *out_bad (may be NULL): lines that were no record. */
tg_status tg_metrics_read(const char *path, tg_metrics_visit visit, void *user,
                          size_t *out_bad) TG_MUST_CHECK;
/* One line, as a reader that follows the file has it (run/tail.h); false: it is no record. */
bool tg_metrics_take(const char *line, size_t length, tg_metrics_visit visit, void *user);

#endif
