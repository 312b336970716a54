/* preprocess.h - how pixels become a network's input; stored in the model folder's config.json.
 *
 * One value of this struct travels with every model: train, eval, predict and serve all read it, so
 * the same photo gives the same input at every door. Names and defaults are timm's.
 * Evaluation: resize the shorter side to floor(size / crop_pct), centre crop to size x size,
 * x / 255, (x - mean) / std, planes R, G, B.
 */
#ifndef TG_IMAGE_PREPROCESS_H
#define TG_IMAGE_PREPROCESS_H

#include <stdbool.h>

typedef enum tg_interpolation { TG_BICUBIC, TG_BILINEAR } tg_interpolation;
typedef enum tg_crop_mode { TG_CROP_CENTER, TG_CROP_SQUASH } tg_crop_mode;

#define TG_CROP_PCT_MIN 0.01 /* the resized photo is 1/crop_pct times the input: bounds its size */

typedef struct tg_preprocess {
    int width_px, height_px; /* network input */
    double crop_pct;         /* [TG_CROP_PCT_MIN,1]; 0.9 timm's default, 0.875 DeiT */
    tg_interpolation interpolation;
    tg_crop_mode crop_mode;
    float mean[3], std[3]; /* of values in [0,1] */
    bool exif_orientation; /* default true: photos are turned upright */
} tg_preprocess;

/* ImageNet mean and std, bicubic, crop 0.9, size x size. */
tg_preprocess tg_preprocess_default(int size_px);

#endif
