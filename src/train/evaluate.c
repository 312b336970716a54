#include "train/evaluate.h"

#include "infer/scores.h"
#include "os/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tg_classes_match(char *const *names, size_t count, char *const *list, size_t list_count,
                      uint32_t *out_index, bool *out_same)
{
    *out_same = count == list_count;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < list_count && strcmp(names[i], list[at]) != 0)
            at++;
        if (at == list_count)
            return false;
        out_index[i] = (uint32_t)at;
        *out_same = *out_same && at == i;
    }
    return true;
}

typedef struct tally {
    uint64_t top1, top5, images, not_finite, skipped;
    double loss;
    int stopped; /* somebody wants to stop: the share is not finished */
} tally;

/* Where the data's label stands among the model's classes. */
static size_t model_class(const tg_evaluate_options *options, size_t K, int32_t label)
{
    if (!options->class_of)
        return (size_t)label;
    for (size_t k = 0; k < K; k++)
        if (options->class_of[k] == (uint32_t)label)
            return k;
    return K;
}

/* Rank of the right class (0 = first; equal logits: the lower index first) and its cross-entropy.
 * Returns the first choice. The logits are finite. */
static size_t count_photo(const float *logits, size_t K, size_t right, tally *t)
{
    size_t better = 0, best = 0;
    double largest = logits[0], sum = 0;
    for (size_t k = 0; k < K; k++) {
        better += logits[k] > logits[right] || (logits[k] == logits[right] && k < right);
        if (logits[k] > largest) {
            largest = logits[k];
            best = k;
        }
    }
    for (size_t k = 0; k < K; k++)
        sum += exp(logits[k] - largest);
    t->loss += largest + log(sum) - logits[right];
    t->top1 += better == 0;
    t->top5 += better < 5;
    t->images++;
    return best;
}

static tg_status score_batch(tg_vit *vit, tg_arena *arena, const tg_batch *batch,
                             const tg_evaluate_options *options, tally *t)
{
    const size_t K = tg_vit_get_config(vit)->num_classes;
    const tg_vit_input input = {.B = batch->count, .image = batch->image};
    tg_vit_output out;
    tg_arena_release(arena, 0);
    TG_TRY(tg_vit_forward(vit, arena, &input, TG_VIT_INFER, &out));
    for (size_t b = 0; b < batch->count; b++) {
        size_t right = model_class(options, K, batch->label[b]);
        if (right >= K)
            return tg_fail(TG_ERROR_INPUT, "label %d is not a class of the model (%zu classes)",
                           batch->label[b], K);
        if (!tg_scores_finite(out.logits + b * K, K)) { /* no comparison with NaN says anything */
            t->not_finite++;
            t->images++;
            t->loss = NAN;
            continue;
        }
        size_t best = count_photo(out.logits + b * K, K, right, t);
        if (options->confusion)
            options->confusion[right * K + best]++;
    }
    return TG_OK;
}

static tg_status score_all(tg_vit *vit, tg_arena *arena, tg_loader *loader, uint64_t total,
                           const tg_evaluate_options *options, tally *t)
{
    for (;;) {
        const tg_batch *batch;
        tg_status status = tg_loader_next(loader, &batch);
        TG_TRY(status);
        if (status == TG_END)
            return TG_OK;
        status = batch->count ? score_batch(vit, arena, batch, options, t) : TG_OK;
        uint64_t done = batch->position;
        tg_loader_release(loader, batch);
        TG_TRY(status);
        if (options->progress)
            options->progress(options->user, done, total);
        t->stopped = options->stop ? options->stop(options->user) : 0;
        if (t->stopped)
            return TG_OK;
    }
}

/* One rank's failure is everyone's; else the sum over ranks, in their order. */
static tg_status share_tally(tg_comm *comm, tg_status status, tally *t)
{
    TG_TRY(tg_comm_agree(comm, "evaluation", status));
    tally *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    status = tg_comm_meet(comm, "scores", t, sizeof *t, all);
    if (status == TG_OK)
        *t = (tally){0};
    for (int r = 0; r < comm->size && status == TG_OK; r++) {
        t->top1 += all[r].top1;
        t->top5 += all[r].top5;
        t->images += all[r].images;
        t->not_finite += all[r].not_finite;
        t->skipped += all[r].skipped;
        t->loss += all[r].loss;
        t->stopped = t->stopped ? t->stopped : all[r].stopped;
    }
    free(all);
    return status;
}

/* This rank's share, with a loader of its own. */
static tg_status score_share(tg_vit *vit, tg_arena *arena, const tg_dataset *dataset,
                             const tg_evaluate_options *options, const tg_comm *comm, tally *t)
{
    tg_loader_options loading = {.batch_size = options->batch_size * (size_t)comm->size,
                                 .rank = comm->rank,
                                 .ranks = comm->size,
                                 .workers = options->workers,
                                 .augment = tg_augment_default(),
                                 .preprocess = *options->preprocess,
                                 .strict = options->strict,
                                 .max_bad_share = 1};
    tg_loader *loader;
    TG_TRY(tg_loader_open(dataset, &loading, &loader));
    tg_status status = tg_loader_start_epoch(loader, 0, 0);
    if (status == TG_OK)
        status = score_all(vit, arena, loader, dataset->count, options, t);
    tg_loader_stats stats;
    tg_loader_get_stats(loader, &stats);
    tg_loader_close(loader);
    t->skipped = stats.skipped;
    return status;
}

tg_status tg_evaluate(tg_vit *vit, tg_arena *arena, const tg_dataset *dataset,
                      const tg_evaluate_options *options, tg_evaluation *out)
{
    tg_comm *comm = options->comm ? options->comm : tg_comm_self();
    if (dataset->count == 0)
        return tg_fail(TG_ERROR_INPUT, "there is no photo to evaluate");
    int64_t start = tg_clock_ns();
    tally t = {0};
    tg_status status = score_share(vit, arena, dataset, options, comm, &t);
    TG_TRY(share_tally(comm, status, &t));
    if (t.stopped)
        return tg_fail(TG_ERROR_STOPPED, "stopped during evaluation");
    double seconds = (double)(tg_clock_ns() - start) * 1e-9, n = t.images ? (double)t.images : NAN;
    *out = (tg_evaluation){.top1 = 100.0 * (double)t.top1 / n,
                           .top5 = 100.0 * (double)t.top5 / n,
                           .loss = t.loss / n,
                           .images = t.images,
                           .skipped = t.skipped,
                           .not_finite = t.not_finite,
                           .images_per_s = (double)t.images / seconds};
    return TG_OK;
}
