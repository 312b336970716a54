/* resize.h - antialiased resampling, bit for bit what Pillow's Image.resize gives.
 *
 * Formula    out(x) = sum w((i + 1/2 - c)/s) in(i) / sum w, c = from + (x + 1/2)(to - from)/n,
 *            s = max(1, (to - from)/n); w = Keys' cubic with a = -1/2 (support 2) or the triangle
 *            (support 1). 8-bit rounding between the passes, weights as fixed-point numbers of 22
 *            fraction bits, sums rounded half up and clipped to 0..255.
 * Order      Horizontal pass first, except where the height shrinks by more than twice the pixels
 *            that the width shrinks by: then vertical first, as Pillow 13 does. horizontal_first
 *            asks for the order of Pillow 12 and before. The order matters by one level for the
 *            triangle, and for the cubic where the first pass clips.
 * Crop, box  `crop` cuts first: pixels outside it do not exist, as in torchvision's resized_crop.
 *            `box` is Pillow's box argument: a real-valued rectangle inside the crop (kept in
 *            single precision, as Pillow does) that is stretched to the target; pixels of the crop
 *            around it count where the filter reaches them.
 * Versions   plain C and AVX2, chosen at run time, equal in every bit. TG_RESIZE_AUTO takes the
 *            best one that the machine has.
 * Memory     in scratch: 3 bytes for each sample between the passes and the two filter tables
 *            (8 bytes * taps * target side), kept for the next picture of the same sizes.
 * Errors     TG_ERROR_USAGE: target side < 1; crop, box or part outside; a level that the machine
 *            lacks. TG_ERROR_MACHINE: memory.
 * Threads    reentrant, one scratch per thread. `out` must not be `source`.
 */
#ifndef TG_IMAGE_RESIZE_H
#define TG_IMAGE_RESIZE_H

#include "base/status.h"
#include "image/image.h"
#include "image/preprocess.h"

#include <stdbool.h>

typedef enum tg_resize_level {
    TG_RESIZE_AUTO,
    TG_RESIZE_PLAIN,
    TG_RESIZE_AVX2,
} tg_resize_level;

/* Whether this machine can run the level. */
int tg_resize_has_level(tg_resize_level level);

/* What to make. A zeroed crop, box or part means the whole. */
typedef struct tg_resize_spec {
    int width_px, height_px; /* target */
    tg_interpolation filter;
    tg_image_rect crop; /* of the source */
    tg_image_box box;   /* within the crop, from its left top corner */
    tg_image_rect part; /* of the target: only these pixels are computed, out has this size */
    tg_resize_level level;
    bool horizontal_first; /* Pillow 12 and before */
} tg_resize_spec;

tg_status tg_image_resize(const tg_image *source, const tg_resize_spec *spec,
                          tg_image_scratch *scratch, tg_image *out) TG_MUST_CHECK;

#endif
