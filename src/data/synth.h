/* synth.h - generated pictures of food on plates: a data set that needs no download.
 *
 * What       Draws kinds of food by shape and texture (never by colour alone) on tables and plates
 *            with varied light, camera angle, size, place, colour, background, clutter, occlusion,
 *            blur, noise and JPEG quality. Class names are rows of the nutrition table.
 * Rule       A picture is a pure function of (seed, class, number, split, size): another count of
 *            classes or pictures changes none that both calls make. The pixels use only +, -, *, /
 *            and square roots (no libm), so they are the same on every machine; the JPEG bytes are
 *            those of libjpeg with the "islow" DCT, the same for one version of that library.
 * Layout     OUTPUT/train/<class>/NNNNN.jpg and OUTPUT/val/<class>/NNNNN.jpg, numbers from 00000.
 *            `per_class` counts training pictures; validation pictures come on top of them:
 *            per_class * val_share, rounded up (0.2 by default, so 200 gives 200 + 40).
 * Difficulty scripts/synth_difficulty.py measures it: a linear model on colour histogram and 8x8
 *            thumbnail, and a small vision transformer (figures: docs/DECISIONS.md).
 */
#ifndef TG_DATA_SYNTH_H
#define TG_DATA_SYNTH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TG_SYNTH_CLASSES 20
#define TG_SYNTH_SIZE_MIN_PX 16
#define TG_SYNTH_SIZE_MAX_PX 1024
#define TG_SYNTH_PER_CLASS_MAX 100000

typedef enum tg_synth_split { TG_SYNTH_TRAIN, TG_SYNTH_VAL } tg_synth_split;

typedef struct tg_synth_options {
    const char
        *output;      /* folder; made with its parents where absent; must not hold train/ or val/ */
    int class_count;  /* the first of tg_synth_class_name; 2..TG_SYNTH_CLASSES */
    int per_class;    /* training pictures of each class; 1..TG_SYNTH_PER_CLASS_MAX */
    double val_share; /* validation pictures as a share of per_class, on top; 0..1 */
    uint64_t seed;
    int size_px; /* side of the square pictures */
    int threads; /* that draw; 1..256. The files do not depend on it. */
} tg_synth_options;

/* 12 classes, 200 pictures, share 0.2, seed 0, 64 px, one thread; output NULL. */
tg_synth_options tg_synth_options_default(void);

/* Name of a class, 0 <= index < TG_SYNTH_CLASSES; NULL outside. Static storage. */
const char *tg_synth_class_name(int index);

/* Validation pictures of each class for these options. */
int tg_synth_val_count(const tg_synth_options *options);

/* Draws one picture: interleaved RGB rows, out_rgb[size_px * size_px * 3].
 * out_quality receives the JPEG quality (60..95) that belongs to the picture; may be NULL.
 * Errors: TG_ERROR_USAGE class, number or size out of range; TG_ERROR_MACHINE memory.
 * Threads: reentrant. Memory: 112 bytes an output pixel, freed on return. */
tg_status tg_synth_draw(uint64_t seed, int class_index, uint32_t number, tg_synth_split split,
                        int size_px, uint8_t *out_rgb, int *out_quality) TG_MUST_CHECK;

/* Called on the calling thread as pictures are finished, last with done == total. A negative
 * status stops the work and is returned. */
typedef tg_status (*tg_synth_progress)(void *context, size_t done, size_t total);

/* Writes the whole data set. `progress` may be NULL.
 * Errors: TG_ERROR_USAGE an option out of range, or train/ or val/ already there;
 *         TG_ERROR_MACHINE a folder or file that cannot be written (named), memory, threads.
 * Each split is built aside and put in place whole (os/folder.h), val/ before train/: after an
 * error or a stop there is no train/. Memory: tg_synth_draw's and one picture, for each thread. */
tg_status tg_synth_write(const tg_synth_options *options, tg_synth_progress progress,
                         void *context) TG_MUST_CHECK;

#endif
