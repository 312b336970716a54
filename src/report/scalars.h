/* scalars.h - which records of a run become which scalars of TensorBoard (report/event_file.h).
 *
 *   loss/total, loss/task, loss/kd             step/seconds, step/data, step/forward, ... (seconds)
 *   train/lr, train/grad_norm, train/images_per_s, train/epoch, train/rss_bytes
 *   val/top1, val/top5 (percent), val/loss     machine HOST/cores_busy, .../threads_running, .../memory_used_bytes, ...
 *
 * Each writes one record; errors are those of tg_event_file_end. What is not known is left out.
 */
#ifndef TG_REPORT_SCALARS_H
#define TG_REPORT_SCALARS_H

#include "report/event_file.h"
#include "run/metrics.h"
#include "run/system.h"

/* unix_s: of the record, where its own time is not known. */
tg_status tg_scalars_step(tg_event_file *file, const tg_step_record *step,
                          double unix_s) TG_MUST_CHECK;
/* step: updates done then. */
tg_status tg_scalars_eval(tg_event_file *file, const tg_eval_record *eval, int64_t step,
                          double unix_s) TG_MUST_CHECK;
tg_status tg_scalars_sample(tg_event_file *file, const char *host, size_t cores,
                            const tg_system_sample *sample, int64_t step) TG_MUST_CHECK;

#endif
