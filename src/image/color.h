/* color.h - colour operations of augmentation, equal to Pillow's.
 *
 * Each works in place on RGB8 and gives what the named Pillow call gives for an RGB picture, bit
 * for bit unless a bound is stated. Luminance is Pillow's L: (19595 R + 38470 G + 7471 B + 0x8000)
 * >> 16. A blend is Pillow's: a + factor (b - a) in float, truncated, clipped to 0..255.
 * Errors     only where a scratch is taken: TG_ERROR_MACHINE. Non-finite factors are the caller's
 * bug. Threads    reentrant, one scratch per thread.
 */
#ifndef TG_IMAGE_COLOR_H
#define TG_IMAGE_COLOR_H

#include "base/status.h"
#include "image/image.h"

/* ImageEnhance.Brightness, Contrast (around the rounded mean luminance), Color; factor 1 = same. */
void tg_color_brightness(tg_image *image, double factor);
void tg_color_contrast(tg_image *image, double factor);
void tg_color_saturation(tg_image *image, double factor);
/* ImageEnhance.Sharpness: blend with the 3x3 SMOOTH filter (edges untouched). */
tg_status tg_color_sharpness(tg_image *image, double factor,
                             tg_image_scratch *scratch) TG_MUST_CHECK;
/* torchvision adjust_hue, factor in [-0.5, 0.5]: adds int(factor * 255) to H of Pillow's HSV,
 * modulo 256. */
void tg_color_hue(tg_image *image, double factor);
/* convert("L") back to three equal channels. */
void tg_color_grayscale(tg_image *image);
/* ImageOps.posterize: keeps the `bits` upper bits; bits >= 8 changes nothing, 0 gives black. */
void tg_color_posterize(tg_image *image, int bits);
/* ImageOps.solarize: inverts values >= threshold; threshold > 255 changes nothing. */
void tg_color_solarize(tg_image *image, int threshold);
/* timm's SolarizeAdd: adds `add` (clipped to 255) to values below threshold (threshold <= 128). */
void tg_color_solarize_add(tg_image *image, int add, int threshold);
void tg_color_invert(tg_image *image);
/* ImageOps.equalize, ImageOps.autocontrast (cutoff 0), per channel. */
void tg_color_equalize(tg_image *image);
void tg_color_autocontrast(tg_image *image);

#endif
