/* photo.h - one photo from its file to network input; what a loader's worker does for one sample.
 *
 * A file is read with read() (one that shrinks meanwhile gives fewer bytes, never a bus error)
 * into a buffer that is kept. Training decodes only what the crop needs, JPEGs at reduced scale
 * where the image module's stated bound allows; evaluation decodes at full size.
 *
 * Traced     (trace/trace.h) "read", "decode", "transform".
 * Memory     grows to the largest photo seen and stays; nothing is allocated after that.
 * Errors     TG_ERROR_INPUT with the path: absent, unreadable, too large, broken.
 *            TG_ERROR_MACHINE: memory, file handles, a failing disk. Handles are closed on every
 *            way out.
 * Threads    one tg_photo_maker per thread.
 */
#ifndef TG_DATA_PHOTO_H
#define TG_DATA_PHOTO_H

#include "base/status.h"
#include "data/augment.h"
#include "image/decode.h"
#include "image/image.h"
#include "image/preprocess.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file; capacity is kept between uses. */
typedef struct tg_photo_file {
    unsigned char *bytes;
    size_t count, capacity;
} tg_photo_file;

/* Files above `max_bytes` are refused before memory is taken. The message holds the path. */
tg_status tg_photo_file_read(tg_photo_file *file, const char *path,
                             uint64_t max_bytes) TG_MUST_CHECK;
void tg_photo_file_done(tg_photo_file *file);

typedef struct tg_photo_maker { /* zeroed to start */
    tg_photo_file file;
    tg_image source, pixels, teacher_pixels;
    tg_image_scratch scratch;
    int siblings;                    /* makers that work side by side, for the trace; 0 as 1 */
    int64_t decode_ns, transform_ns; /* time spent in the last call; decode includes reading */
} tg_photo_maker;

/* What is to be made of a photo. */
typedef struct tg_photo_recipe {
    const tg_augment *augment;       /* NULL: the evaluation transform */
    const tg_preprocess *preprocess; /* of the student */
    const tg_preprocess *teacher;    /* NULL: no teacher */
    uint64_t seed, epoch;
} tg_photo_recipe;

/* out_image [3,H,W]; out_teacher [3,Ht,Wt] when the recipe has a teacher. */
tg_status tg_photo_make(tg_photo_maker *maker, const tg_photo_recipe *recipe, const char *path,
                        uint64_t sample, float *out_image, float *out_teacher) TG_MUST_CHECK;
void tg_photo_maker_done(tg_photo_maker *maker);

#endif
