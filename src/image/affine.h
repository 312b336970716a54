/* affine.h - rotate, shear and shift a picture in place, as Pillow's Image.transform and rotate.
 *
 * Bit for bit Pillow's for the same matrix; rotate within 1 level (its matrix comes from the C
 * library's sine and cosine). Values are interpolated in double and truncated; Pillow's transforms
 * use the cubic with a = -1, unlike its resize.
 * Errors     TG_ERROR_MACHINE. Non-finite numbers are the caller's bug.
 * Memory     a copy of the picture in scratch.
 * Threads    reentrant, one scratch per thread.
 */
#ifndef TG_IMAGE_AFFINE_H
#define TG_IMAGE_AFFINE_H

#include "base/status.h"
#include "image/image.h"
#include "image/preprocess.h"

/* Image.transform(size, AFFINE, matrix, resample, fillcolor): output pixel (x, y) takes the source
 * at (a x' + b y' + c, d x' + e y' + f) with x' = x + 1/2 ...; outside it is `fill`. Cubic: a = -1,
 * as Pillow's transforms use. Same size. */
tg_status tg_image_affine(tg_image *image, const double matrix[6], tg_interpolation filter,
                          const uint8_t fill[3], tg_image_scratch *scratch) TG_MUST_CHECK;
/* Image.rotate(degrees): counter-clockwise around the centre, same size. */
tg_status tg_image_rotate(tg_image *image, double degrees, tg_interpolation filter,
                          const uint8_t fill[3], tg_image_scratch *scratch) TG_MUST_CHECK;
/* timm's ShearX / ShearY (factor), TranslateX / TranslateY (pixels). */
tg_status tg_image_shear_x(tg_image *image, double factor, tg_interpolation filter,
                           const uint8_t fill[3], tg_image_scratch *scratch) TG_MUST_CHECK;
tg_status tg_image_shear_y(tg_image *image, double factor, tg_interpolation filter,
                           const uint8_t fill[3], tg_image_scratch *scratch) TG_MUST_CHECK;
tg_status tg_image_translate(tg_image *image, double x_px, double y_px, tg_interpolation filter,
                             const uint8_t fill[3], tg_image_scratch *scratch) TG_MUST_CHECK;

#endif
