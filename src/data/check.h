/* check.h - finds what is wrong with photos before training; behind `tagine data check`.
 *
 * BROKEN          cannot be read or decoded; detail: the cause
 * ODD             decoded with a warning; detail: the warning
 * TINY, HUGE      a side below tiny_px; more pixels than huge_pixels
 * DUPLICATE       the same bytes as an earlier photo (`other`); confirmed by comparing the files
 * NEAR_DUPLICATE  looks like an earlier photo: difference hashes (9 x 8 grays) at most
 *                 near_bits apart and 8 x 8 thumbnails at most 6 levels apart on average. Finds
 *                 re-encoded and resized copies, not crops or mirror images
 * SMALL_CLASS     a class with less than 1/imbalance of the photos of the split's largest one;
 *                 path: the class name
 *
 * Duplicates carry two marks: `leak`, the photos lie in different splits (validation then measures
 * memory), and `conflict`, their labels differ (one of them is wrong). Labels are compared by
 * index: open all splits under one class list.
 *
 * Order      findings are sorted by kind, then by split and position; any number of workers gives
 *            the same list.
 * Memory     the result owns findings and details; paths belong to the data sets.
 * Errors     TG_ERROR_USAGE (no split, no worker), TG_ERROR_MACHINE. What is found is no error.
 */
#ifndef TG_DATA_CHECK_H
#define TG_DATA_CHECK_H

#include "base/status.h"
#include "data/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_check_kind {
    TG_CHECK_BROKEN,
    TG_CHECK_ODD,
    TG_CHECK_TINY,
    TG_CHECK_HUGE,
    TG_CHECK_DUPLICATE,
    TG_CHECK_NEAR_DUPLICATE,
    TG_CHECK_SMALL_CLASS,
    TG_CHECK_KIND_COUNT
} tg_check_kind;

typedef struct tg_check_split {
    const char *name; /* "train" */
    const tg_dataset *dataset;
} tg_check_split;

typedef struct tg_check_options {
    const tg_check_split *splits;
    size_t split_count;
    int workers;
    int tiny_px;          /* 32 */
    uint64_t huge_pixels; /* 50,000,000 */
    int near_bits;        /* 3; the most that is looked for; below 0: off */
    double imbalance;     /* 10 */
} tg_check_options;

typedef struct tg_check_finding {
    tg_check_kind kind;
    const char *split; /* name of the photo's split */
    const char *path;
    const char *other; /* the earlier photo, or NULL */
    bool leak, conflict;
    char *detail; /* a few words, or NULL */
} tg_check_finding;

typedef struct tg_check_result {
    tg_check_finding *findings;
    size_t count;
    size_t counts[TG_CHECK_KIND_COUNT];
    size_t photos, leaks, conflicts;
} tg_check_result;

/* No splits, one worker, the values named above. */
tg_check_options tg_check_options_default(void);
/* "broken", "odd", "tiny", "huge", "duplicate", "near_duplicate", "small_class". */
const char *tg_check_kind_name(tg_check_kind kind);

tg_status tg_data_check(const tg_check_options *options, tg_check_result *out) TG_MUST_CHECK;
void tg_check_result_done(tg_check_result *result);

#endif
