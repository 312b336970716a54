/* dataset.h - a list of photos with class indices, made from folders.
 *
 * Layouts    DIR/train + DIR/val (split names as given, several joined by '+', e.g. "train+more");
 *            or DIR/<class>/... with a validation share cut out by a seeded hash of the file name;
 *            or a flat folder of photos without labels.
 * Classes    sub-folder names of the training split in bytewise order; one list rules every split.
 *            A class folder without photos keeps its index and is named in a warning, as are
 *            classes of the ruling list without photos. Names that are all whole numbers and whose
 *            bytewise order is not the numeric one ("10" before "2") are warned about.
 * Names      any bytes. Beginning with a dot: passed over at any depth, before anything else is
 *            looked at. Extensions jpg, jpeg, png, webp, heic, heif in any case; others are
 *            counted by extension, and one line of the log names what was left out. The contents
 *            decide the decoder, not the extension.
 * Links      to files and folders are followed; a folder (device, inode) is entered once. Class
 *            folders are known before any of them is entered and real folders come before linked
 *            ones, so a link inside one class never takes the photos of another.
 * Order      samples are sorted by split part, class, path (bytewise): any file system gives one
 *            order.
 * Share      val_share > 0 cuts every class (or the whole, unlabelled) by itself: its photos are
 *            put in the order of a hash of (seed, path below the root, or below the folder of its
 *            split) and the first round(share * n) are the validation part, at least 1 and at most n-1 where n > 1; a single photo is
 *            training. The two parts never overlap, do not depend on where the root lies, and a
 *            photo more or less moves at most one other.
 * Errors     TG_ERROR_INPUT with the path: a folder absent or unreadable, no photo, photos but no
 *            class folder, a split's class with photos that the ruling list does not have.
 *            TG_ERROR_USAGE: a share outside [0,1), a split named twice. TG_ERROR_MACHINE: memory.
 * Memory     owned by the data set (heap); paths are absolute or relative as the root was given.
 */
#ifndef TG_DATA_DATASET_H
#define TG_DATA_DATASET_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_sample {
    const char *path; /* owned by the data set */
    int32_t label;    /* class index; -1 unlabelled */
} tg_sample;

/* What was left out while looking for photos. */
typedef struct tg_passed_over {
    size_t hidden;       /* names that begin with a dot */
    size_t extension;    /* other extensions, and names without one */
    size_t stray;        /* photos outside class folders */
    size_t broken_links; /* links that lead nowhere */
    size_t other;        /* sockets, pipes, devices */
} tg_passed_over;

typedef struct tg_dataset {
    tg_sample *samples;
    size_t count;
    char **class_names; /* NULL when unlabelled */
    size_t class_count;
    tg_passed_over passed_over;
    struct tg_dataset_storage *storage;
} tg_dataset;

typedef struct tg_dataset_options {
    const char *root;
    const char *split;              /* "train", "train+more", "val"; NULL: the root itself */
    double val_share;               /* > 0: this much is held out; see part */
    int part;                       /* with val_share: 0 = training part, 1 = validation part */
    uint64_t seed;                  /* of the share */
    const char *const *class_names; /* the ruling list, or NULL: make it from this split */
    size_t class_count;
    int unlabelled; /* 1: ignore folders as labels, take every photo below */
} tg_dataset_options;

tg_status tg_dataset_open(const tg_dataset_options *options, tg_dataset *out) TG_MUST_CHECK;
void tg_dataset_done(tg_dataset *dataset);

/* Whether there is a folder with a photo at any depth, a class then, where the options look. Errors as
 * tg_dataset_open's about folders. */
tg_status tg_dataset_has_classes(const tg_dataset_options *options, bool *out) TG_MUST_CHECK;

/* How many photos of `b` are in `a` too: files of one name in the same folder (device and inode, so
 * links to folders hide none; copies and links to files are tg_data_check's). TG_ERROR_MACHINE:
 * memory. */
tg_status tg_dataset_count_shared(const tg_dataset *a, const tg_dataset *b,
                                  size_t *out) TG_MUST_CHECK;

#endif
