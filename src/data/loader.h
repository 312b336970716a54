/* loader.h - batches of augmented photos, built by worker threads straight into aligned buffers.
 *
 * Order and random numbers are pure functions of (seed, epoch, sample index), mixing of (seed,
 * epoch, batch number): worker count, timing and resume do not change a bit of any batch. A batch
 * is `batch_size` consecutive positions of the epoch's order; the last one may be smaller. A photo
 * that cannot be decoded is counted, named once in the log, and its place in the batch is left out
 * (count shrinks) - or the run fails (strict). The others stay what they are without it; only its
 * mixing partner is then not mixed (data/mix.h). Faults of the machine (memory, handles, disk)
 * always fail.
 *
 * Ranks   data parallelism: one loader on each rank, with the same options but `rank`, reads that
 *         rank's share of every batch. A batch, its size, number, position and order, drop_last,
 *         batches_per_epoch and the place to resume are those of the group of ranks together, so
 *         they are the same on all ranks and for any number of them. The shares together are bit
 *         for bit the samples, images and targets of one rank alone, each sample once. A share is
 *         consecutive in the batch, or where training mixes, consecutive pairs of samples that mix
 *         with each other (data/deal.h). Shares may differ by a sample, or a pair, and a last small
 *         batch may have none for some ranks; they get it all the same, with count 0, so that all
 *         ranks count the same batches.
 *
 * Workers take single photos of the oldest unfinished batch, so a batch is ready as early as it
 * can be; whoever finishes its last photo mixes, builds targets and closes gaps. Workers block all
 * signals and flush subnormal numbers to zero. A batch that gives nothing for 30 s is named in the
 * log with the photo that is waited for. Their number may change at any time, in mid-epoch too
 * (tg_loader_set_workers): a worker that is no longer wanted finishes its photo and waits, with no
 * memory but its stack, until it is wanted again; without any, the consumer takes over what nobody
 * has begun.
 *
 * States  open -> { start_epoch -> next/release ... TG_END }... -> close. At most `prefetch` + 1
 *         batches exist; next() waits for the oldest and hands it over, release() gives it back.
 *         close() at any time stops the workers within one decode.
 * Memory  slots are reserved at open, for this rank's share: tg_loader_bytes(options). Beside them
 *         each worker keeps its largest photo, and shuffling takes 4 bytes a sample. Batches are
 *         borrowed until release or the next start_epoch.
 * Errors  open: TG_ERROR_USAGE (options out of range; no batch in an epoch; a full batch too small
 *         for every rank to have a share of it), TG_ERROR_INPUT (a label that is not below
 *         num_classes: names file and value), TG_ERROR_MACHINE (threads, memory). next:
 *         TG_ERROR_INPUT (strict and a bad file, or more bad files in this epoch than max_bad_share
 *         allows), TG_ERROR_MACHINE, TG_ERROR_USAGE (every batch is still lent). With ranks these
 *         concern only what this rank reads, and the others do not hear of it. An error is
 *         delivered in place of the batch it happened in, and again until start_epoch.
 * Threads one consumer thread.
 */
#ifndef TG_DATA_LOADER_H
#define TG_DATA_LOADER_H

#include "base/status.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "image/preprocess.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_loader_options {
    size_t batch_size; /* of the group: all ranks together */
    int rank, ranks;   /* this one's share of each batch; ranks 0 or 1: all of it */
    int workers;       /* decoding threads, >= 0; 0: decode in next() */
    size_t prefetch;   /* finished batches kept ready; 0: 2 */
    uint64_t seed;
    bool train;               /* augment and shuffle; false: evaluation transform, file order */
    bool drop_last;           /* train only: leave out a last part-batch */
    tg_augment augment;       /* used when train */
    bool evaluation_view;     /* train only: each photo by the evaluation transform, no crop, flip,
                                 colour or erasing; order, smoothing and mixing stay training's */
    tg_preprocess preprocess; /* of the student (or of the only model) */
    bool has_teacher;         /* fill batch.teacher_image: same crop and flip, own size/mean/std */
    tg_preprocess teacher_preprocess;
    size_t num_classes; /* width of targets; 0: no targets (unlabelled) */
    bool strict;
    double max_bad_share; /* fail when more than this share of what this rank reads of an epoch
                             is bad; 0: when any is */
    tg_trace *
        trace; /* NULL, or where worker number w records as thread w: "read", "decode" and "transform" of
                        each photo, "finish" of each batch; borrowed until close */
    /* NULL, or called on the worker's thread before each photo; tests inject delays here. */
    void (*before_photo)(void *user, uint64_t epoch, uint64_t sample);
    void *before_photo_user;
} tg_loader_options;

typedef struct tg_batch {
    size_t count;           /* samples in this batch, of this rank */
    uint64_t position;      /* position in the epoch after the group's last sample of this batch */
    float *image;           /* [count,3,S,S] normalised */
    float *teacher_image;   /* [count,3,St,St] or NULL */
    float *target;          /* [count,K] soft targets after smoothing and mixing (one-hot when
                               not training), or NULL */
    int32_t *label;         /* [count] class index before mixing; -1 when unlabelled */
    uint64_t *sample_index; /* [count] index in the data set */
    size_t skipped;         /* bad photos left out, of this rank's share */
} tg_batch;

typedef struct tg_loader_stats {
    uint64_t decoded, skipped;       /* photos since open */
    int64_t wait_ns;                 /* time the consumer waited in next() */
    int64_t decode_ns, transform_ns; /* summed over workers */
} tg_loader_stats;

typedef struct tg_loader tg_loader;

/* Most samples that any batch gives this rank: what its buffers must hold. Here and below
 * rank and ranks are as open accepts them. */
size_t tg_loader_share(const tg_loader_options *options);
/* SIZE_MAX when the sizes do not fit the machine's numbers. */
size_t tg_loader_bytes(const tg_loader_options *options);
/* The data set is borrowed until close; the options are copied. */
tg_status tg_loader_open(const tg_dataset *dataset, const tg_loader_options *options,
                         tg_loader **out) TG_MUST_CHECK;
/* Begins `epoch` at sample position `first` of its order (0, or where a checkpoint stopped). May be
 * called while an epoch is under way: it is abandoned. */
tg_status tg_loader_start_epoch(tg_loader *loader, uint64_t epoch, uint64_t first) TG_MUST_CHECK;
/* TG_OK with a batch (count may be 0: all its photos were bad, or none was this rank's), TG_END
 * after the last. */
tg_status tg_loader_next(tg_loader *loader, const tg_batch **out) TG_MUST_CHECK;
void tg_loader_release(tg_loader *loader, const tg_batch *batch);
/* From now on so many workers, 0 to 1024. Called by the consumer. TG_ERROR_USAGE for another number, nothing
 * changes; TG_ERROR_MACHINE when threads do not start: as many as there are work on. */
tg_status tg_loader_set_workers(tg_loader *loader, int workers) TG_MUST_CHECK;
/* How many work. Called by the consumer. */
int tg_loader_workers(const tg_loader *loader);
/* Batches in a whole epoch. */
uint64_t tg_loader_batches_per_epoch(const tg_loader *loader);
void tg_loader_get_stats(const tg_loader *loader, tg_loader_stats *out);
void tg_loader_close(tg_loader *loader);

#endif
