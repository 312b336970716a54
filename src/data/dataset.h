/* dataset.h - a list of photos with class indices, made from folders.
 *
 * Layouts    DIR/train + DIR/val (split names as given, several joined by '+', e.g. "train+more");
 *            or DIR/<class>/... with a validation share cut out by a seeded hash of the file name;
 *            or a flat folder of photos without labels.
 * Classes    sub-folder names of the training split in bytewise order; one list rules every split.
 * Names      beginning with a dot are passed over at any depth; extensions jpg, jpeg, png, webp,
 *            heic, heif in any case; others counted by extension. Links are followed once
 *            (device, inode). Listings are sorted bytewise, so any file system gives one order.
 * Errors     TG_ERROR_INPUT with the path: absent folder, no photo, a split's class that training
 *            does not have.
 * Memory     owned by the data set (heap); paths are absolute or relative as the root was given.
 */
#ifndef TG_DATA_DATASET_H
#define TG_DATA_DATASET_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tg_sample {
    const char *path; /* owned by the data set */
    int32_t label;    /* class index; -1 unlabelled */
} tg_sample;

typedef struct tg_dataset {
    tg_sample *samples;
    size_t count;
    char **class_names; /* NULL when unlabelled */
    size_t class_count;
    struct tg_dataset_storage *storage;
} tg_dataset;

typedef struct tg_dataset_options {
    const char *root;
    const char *split;           /* "train", "train+more", "val"; NULL: the root itself */
    double val_share;            /* > 0: root is one folder of classes; see part */
    int part;                    /* with val_share: 0 = training part, 1 = validation part */
    uint64_t seed;               /* of the share */
    const char *const *class_names; /* the ruling list, or NULL: make it from this split */
    size_t class_count;
    int unlabelled;              /* 1: ignore folders as labels, take every photo below */
} tg_dataset_options;

tg_status tg_dataset_open(const tg_dataset_options *options, tg_dataset *out) TG_MUST_CHECK;
void tg_dataset_done(tg_dataset *dataset);

#endif
