/* stats.h - what a data set consists of: behind `tagine data stats`.
 *
 * Every photo is read and decoded at full size. Mean and deviation are those of all pixels of all
 * photos in [0,1] per channel (each pixel counts once, so large photos weigh more), summed as whole
 * numbers and therefore the same for any number of workers.
 * Bad photos  are counted; they do not enter sizes, formats and colours.
 * Memory      class_counts is owned by the result; free with done.
 * Errors      TG_ERROR_MACHINE. Bad photos are not an error.
 */
#ifndef TG_DATA_STATS_H
#define TG_DATA_STATS_H

#include "base/status.h"
#include "data/dataset.h"
#include "image/decode.h"

#include <stddef.h>
#include <stdint.h>

/* Smallest, median and largest of one quantity; the median is the lower of two. */
typedef struct tg_spread {
    uint64_t min, median, max;
} tg_spread;

typedef struct tg_data_stats {
    size_t photos, bad;
    size_t *class_counts; /* [class_count of the data set]; NULL when unlabelled */
    size_t class_count;
    uint64_t total_bytes;
    tg_spread width_px, height_px, file_bytes; /* of upright photos */
    size_t formats[TG_IMAGE_HEIF + 1];         /* by tg_image_format */
    size_t orientations[9];                    /* by EXIF value 1..8 */
    size_t with_alpha, with_warning;
    double mean[3], std[3];
} tg_data_stats;

/* workers >= 1 threads. */
tg_status tg_data_stats_collect(const tg_dataset *dataset, int workers,
                                tg_data_stats *out) TG_MUST_CHECK;
void tg_data_stats_done(tg_data_stats *stats);

#endif
