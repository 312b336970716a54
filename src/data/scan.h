/* scan.h - finds the photos of one or several split folders; inside of dataset.c.
 *
 * Turns a root and split names into class folders and a list of (path, part, class) in discovery
 * order; sorting, the validation share and the class list's rule are dataset.c's.
 */
#ifndef TG_DATA_SCAN_H
#define TG_DATA_SCAN_H

#include "base/status.h"
#include "data/dataset.h"
#include "data/listing.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_scan_class { /* a class folder of one part */
    char *name, *path;
    uint32_t part;
    bool is_link;
    int32_t label; /* set by the caller before tg_scan_classes; -1: not entered */
} tg_scan_class;

typedef struct tg_scan_photo {
    char *path;
    uint32_t part;
    int32_t label;
} tg_scan_photo;

typedef struct tg_scan_extension {
    char name[16]; /* lower case, cut when longer; "" for names without one */
    size_t count;
} tg_scan_extension;

typedef struct tg_scan {
    tg_scan_class *classes;
    size_t class_count, class_capacity;
    tg_scan_photo *photos;
    size_t photo_count, photo_capacity;
    tg_scan_extension extensions[16]; /* the last one takes what does not fit */
    size_t extension_count;
    tg_passed_over passed_over;
    tg_seen_folders seen;
} tg_scan;

/* Lists the folder of one part: unlabelled, every photo at any depth below it; else its class
 * folders (photos beside them are counted as stray). */
tg_status tg_scan_part(tg_scan *scan, const char *path, uint32_t part,
                       bool unlabelled) TG_MUST_CHECK;
/* Enters every class folder whose label is >= 0. Call once, after the labels are set. */
tg_status tg_scan_classes(tg_scan *scan) TG_MUST_CHECK;
/* One line of the log naming what was left out; nothing when nothing was. */
void tg_scan_report(const tg_scan *scan);
void tg_scan_done(tg_scan *scan);

#endif
