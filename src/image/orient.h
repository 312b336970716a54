/* orient.h - EXIF orientations 1..8 of pictures, rectangles and boxes.
 *
 * Value v of tag 0x0112 says how the stored picture w x h must be turned to be upright: mirrored in
 * x for 2, 3, 7, 8; mirrored in y for 3, 4, 6, 7; then x and y exchanged for 5..8.
 * Values outside 1..8 are the caller's bug. Reentrant.
 */
#ifndef TG_IMAGE_ORIENT_H
#define TG_IMAGE_ORIENT_H

#include "base/status.h"
#include "image/image.h"

#include <stdbool.h>

/* Whether upright width and height are the stored ones exchanged. */
bool tg_orientation_is_transposed(int orientation);

/* out is the upright picture; out is not source. Errors: TG_ERROR_MACHINE. */
tg_status tg_image_orient(const tg_image *source, int orientation, tg_image *out) TG_MUST_CHECK;

/* The rectangle of a stored picture of width x height that shows up as `upright`. */
tg_image_rect tg_rect_to_stored(tg_image_rect upright, int orientation, int stored_width_px,
                                int stored_height_px);
/* Where a box of a stored picture of width x height lies in the upright one. */
tg_image_box tg_box_to_upright(tg_image_box stored, int orientation, int stored_width_px,
                               int stored_height_px);

#endif
