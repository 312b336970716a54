/* evaluate.h - accuracy and loss of a model on a data set, every photo counted once.
 *
 * top-1 and top-5 are shares of the photos that could be decoded, in percent; with fewer than 5
 * classes "top-5" uses all of them. The loss is plain cross-entropy with the labels. A photo whose
 * logits are not finite counts as wrong and makes the loss NaN. Sums over photos
 * are whole numbers (counts) or double, in data-set order: batch size and workers do not change them.
 * A photo whose logits are not all finite is answered wrongly, makes the loss NaN and is counted in
 * not_finite; the confusion matrix leaves it out.
 * Memory  the step arena: tg_vit_step_bytes(batch, INFER).
 */
#ifndef TG_TRAIN_EVALUATE_H
#define TG_TRAIN_EVALUATE_H

#include "base/arena.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "infer/network.h"

typedef struct tg_evaluation {
    double top1, top5, loss;
    uint64_t images, skipped, not_finite;
    double images_per_s;
} tg_evaluation;

typedef struct tg_evaluate_options {
    size_t batch_size; /* of each rank */
    tg_comm
        *comm; /* ranks that score the set together, each its share, all with one result; or NULL */
    int workers;
    bool strict;
    const tg_preprocess *preprocess;
    /* [K of the model] -> index in the data set's class list, or NULL when they are equal */
    const uint32_t *class_of;
    uint64_t
        *confusion; /* or NULL: [K,K], zeroed: photos of class row whose first choice is column;
                          * photos without a finite answer are left out */
    void (*progress)(void *user, uint64_t done, uint64_t total); /* or NULL */
    void *user;
    int (*stop)(void *user); /* or NULL; nonzero: leave with TG_ERROR_STOPPED */
} tg_evaluate_options;

tg_status tg_evaluate(tg_vit *vit, tg_arena *arena, const tg_dataset *dataset,
                      const tg_evaluate_options *options, tg_evaluation *out) TG_MUST_CHECK;

/* For each of `names`, its index in `list`: true when every name is found. *out_same: the order is
 * equal. out_index: [count]. */
bool tg_classes_match(char *const *names, size_t count, char *const *list, size_t list_count,
                      uint32_t *out_index, bool *out_same);

#endif
