/* tune_bed.h - trials of training steps for train/tune.h: what a setting needs, and what it does.
 *
 * A trial opens the parts of the very job that the options describe (job_parts.h: networks, optimizer state,
 * loader, step), with the setting's batch, threads, workers and buckets, steps as training does, and closes
 * all again; nothing is written anywhere. Threads change from trial to trial within the process: each stream
 * has a team of its own size.
 *
 * Photos   with --data they come from the training split through the job's loader. Its rate is what it delivered, and
 *          no more than its workers can give in the long run: a trial is short, and begins with batches that
 *          lie ready. Without --data generated pictures are used, as many batches of them as a loader keeps, so
 *          that memory is the same; classes are those of --num-classes, else the teacher's, else the model's,
 *          else 1000.
 * Memory   a trial begins only when its prediction (train/memory.h) fits into what is there at that moment; what a
 *          reservation is refused ends it before a step. Both give a trial that does not fit.
 * Ranks    all ranks run all trials together; a trial's numbers are of all of them, and everyone's.
 * Errors   of the job's parts; TG_ERROR_STOPPED when stop says so; TG_ERROR_PEER.
 * Threads  one at a time.
 */
#ifndef TG_TRAIN_TUNE_BED_H
#define TG_TRAIN_TUNE_BED_H

#include "train/options.h"
#include "train/tune.h"

typedef struct tg_tune_bed tg_tune_bed;

/* options: as for tg_train_job_run, data.data may be NULL; strings and comm are borrowed. Lists the photos, and
 * reads what is written about the models. stop (may be NULL): nonzero ends the trial under way. */
tg_status tg_tune_bed_open(const tg_train_options *options, int (*stop)(void *user), void *user,
                           tg_tune_bed **out) TG_MUST_CHECK;
void tg_tune_bed_close(tg_tune_bed *bed);

/* Without `told`; user is the bed. */
tg_tune_ops tg_tune_bed_ops(tg_tune_bed *bed);
/* The setting that the options describe. */
tg_tune_setting tg_tune_bed_given(const tg_tune_bed *bed);
/* The largest batch of a rank that makes sense: all photos in one step of all ranks; 0: no photos are known. */
int64_t tg_tune_bed_most(const tg_tune_bed *bed);
/* What a rank may take of this moment's memory, the least of all ranks; every rank calls it. */
tg_status tg_tune_bed_available(tg_tune_bed *bed, double *out_bytes) TG_MUST_CHECK;
/* The student's architecture, and the type of its activations. */
const char *tg_tune_bed_model(const tg_tune_bed *bed);
tg_dtype tg_tune_bed_dtype(const tg_tune_bed *bed);
/* Photos of the training split; 0 without --data. */
size_t tg_tune_bed_photos(const tg_tune_bed *bed);

#endif
