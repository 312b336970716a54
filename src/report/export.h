/* export.h - all records of a run in other tools' formats: TensorBoard's event files, a table of CSV.
 *
 * Errors   TG_ERROR_MACHINE for memory and the disk, TG_ERROR_INPUT for a run without steps.
 * Threads  reentrant.
 */
#ifndef TG_REPORT_EXPORT_H
#define TG_REPORT_EXPORT_H

#include "base/text.h"
#include "run/history.h"

/* One event file in `folder` (report/scalars.h): steps, evaluations, samples of machines, in the order of time. */
tg_status tg_export_tensorboard(const tg_history *history, const char *folder) TG_MUST_CHECK;

/* A line a step: the keys of metrics.jsonl, then those of the evaluation behind it. An empty cell is not known. */
tg_status tg_export_csv(const tg_history *history, tg_text *out) TG_MUST_CHECK;

#endif
