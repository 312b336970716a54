/* transform.h - from pixels to network input, as torchvision and timm do it.
 *
 * Evaluation  TG_CROP_CENTER: resize so that the shorter side is floor(size / crop_pct), the longer
 *             int(that * long / short); centre crop with torchvision's rounding, round half to even
 *             of (h - size) / 2; where the resized picture is smaller than the crop it is padded
 *             with black as torchvision does. Where floor(width / pct) and floor(height / pct)
 *             differ, both sides are divided by the smaller of the two ratios and rounded, so that
 *             each reaches its target, as timm does for inputs that are not square. TG_CROP_SQUASH:
 *             resize to those two floors without keeping the shape, then centre crop.
 * Tensor      out[c][y][x] = (rgb / 255 - mean[c]) / std[c] in float, in this order of operations:
 *             bit for bit ToTensor and Normalize.
 * Boxes       RandomResizedCrop's choice is made from numbers that the caller draws, so that the
 *             random source is the caller's.
 * Errors      as in resize.h.  Threads reentrant, one scratch per thread.
 */
#ifndef TG_IMAGE_TRANSFORM_H
#define TG_IMAGE_TRANSFORM_H

#include "base/status.h"
#include "image/image.h"
#include "image/preprocess.h"

#include <stdbool.h>

/* What the evaluation transform does to a picture of a given size: resize the whole picture to
 * resized_*, then take `crop` of that (left and top may be negative: black padding). */
typedef struct tg_eval_plan {
    int resized_width_px, resized_height_px;
    tg_image_rect crop;
} tg_eval_plan;

tg_eval_plan tg_preprocess_plan(const tg_preprocess *preprocess, int width_px, int height_px);

/* The evaluation transform up to 8-bit pixels of width x height of the network. Only the pixels
 * that the crop keeps are computed; they equal those of resize-then-crop. */
tg_status tg_preprocess_pixels(const tg_preprocess *preprocess, const tg_image *source,
                               tg_image_scratch *scratch, tg_image *out) TG_MUST_CHECK;

/* The whole evaluation transform: out [3, height, width]. `pixels` is the caller's image for the
 * step between and keeps the 8-bit result. */
tg_status tg_preprocess_image(const tg_preprocess *preprocess, const tg_image *source,
                              tg_image_scratch *scratch, tg_image *pixels,
                              float *out) TG_MUST_CHECK;

/* RGB8 to planes [3, height, width], mirrored left-right when hflip. */
void tg_image_to_tensor(const tg_image *image, const float mean[3], const float std[3], bool hflip,
                        float *out);

/* One try of torchvision's RandomResizedCrop for a picture of width x height. u_area and u_ratio in
 * [0,1) give area share (uniform in scale) and aspect ratio (log-uniform in ratio); u_top and
 * u_left in [0,1) place it: floor(u * (free + 1)). Returns false when the box does not fit; after
 * ten failed tries use tg_crop_fallback. Sides are rounded half to even, as Python's round. */
bool tg_crop_try(int width_px, int height_px, double scale_min, double scale_max, double ratio_min,
                 double ratio_max, double u_area, double u_ratio, double u_top, double u_left,
                 tg_image_rect *out);
/* The central crop with the nearest allowed ratio. */
tg_image_rect tg_crop_fallback(int width_px, int height_px, double ratio_min, double ratio_max);

/* Mirror in place. */
void tg_image_flip_horizontal(tg_image *image);
void tg_image_flip_vertical(tg_image *image);

#endif
