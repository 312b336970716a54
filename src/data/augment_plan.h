/* augment_plan.h - the decisions for one photo in one epoch, and carrying them out.
 *
 * A plan is a pure function of (options, seed, epoch, sample, size of the photo): thread, worker,
 * rank and the other samples do not matter. Student and teacher carry out the same plan, each at
 * its own size, mean and std.
 *
 * Crop        torchvision's RandomResizedCrop.get_params: up to ten boxes of random area and
 *             ratio, then the central one.
 * Jitter      torchvision's ColorJitter(s, s, s): brightness, contrast and saturation, factors
 *             uniform in [max(0, 1-s), 1+s], in random order.
 * RandAugment timm's: rand_ops ops drawn with replacement from its 15, each applied with
 * rand_prob,
 *             magnitude from a normal distribution clipped to 0..rand_magnitude_max, timm's level
 *             formulas. Geometry uses the model's interpolation and fills with its mean.
 * Erasing     timm's RandomErasing, one box: area 0.02 to 1/3 of the student's input, ratio 0.3 to
 *             1/0.3 log-uniform, up to ten tries; filled with 0 or standard normal noise, after
 *             normalisation. The teacher's box is the student's, scaled and rounded.
 * Random      The plan's numbers come from TG_RNG_AUGMENT of (seed, epoch, sample).
 */
#ifndef TG_DATA_AUGMENT_PLAN_H
#define TG_DATA_AUGMENT_PLAN_H

#include "base/rng.h"
#include "base/status.h"
#include "data/augment.h"
#include "image/image.h"
#include "image/preprocess.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tg_augment_op {
    TG_AUGMENT_AUTOCONTRAST,
    TG_AUGMENT_EQUALIZE,
    TG_AUGMENT_INVERT,
    TG_AUGMENT_ROTATE,       /* value: degrees */
    TG_AUGMENT_POSTERIZE,    /* bits kept */
    TG_AUGMENT_SOLARIZE,     /* threshold */
    TG_AUGMENT_SOLARIZE_ADD, /* what is added below 128 */
    TG_AUGMENT_COLOR,        /* factor, as contrast, brightness, sharpness */
    TG_AUGMENT_CONTRAST,
    TG_AUGMENT_BRIGHTNESS,
    TG_AUGMENT_SHARPNESS,
    TG_AUGMENT_SHEAR_X, /* factor */
    TG_AUGMENT_SHEAR_Y,
    TG_AUGMENT_TRANSLATE_X, /* share of the width */
    TG_AUGMENT_TRANSLATE_Y, /* share of the height */
    TG_AUGMENT_OP_COUNT
} tg_augment_op;

typedef struct tg_augment_step {
    tg_augment_op op;
    double value;
} tg_augment_step;

typedef struct tg_augment_plan {
    tg_image_rect crop; /* in upright pixels of the whole photo */
    bool hflip, vflip;
    tg_augment_step steps[TG_AUGMENT_MAX_OPS];
    int step_count;
    bool erase;
    tg_image_rect erase_box; /* in pixels of erase_width x erase_height, the student's input */
    int erase_width_px, erase_height_px;
    tg_rng noise; /* continues the plan's numbers */
} tg_augment_plan;

/* For a photo of width x height that becomes `input` (the student's). */
tg_augment_plan tg_augment_plan_make(const tg_augment *augment, const tg_preprocess *input,
                                     int width_px, int height_px, uint64_t seed, uint64_t epoch,
                                     uint64_t sample);

/* Flips and colour or geometry steps, in place, on the resized crop. */
tg_status tg_augment_plan_pixels(const tg_augment_plan *plan, const tg_preprocess *input,
                                 tg_image_scratch *scratch, tg_image *image) TG_MUST_CHECK;

/* Random erasing of planes [3,height,width]; noise is drawn from plan->noise, so call for the
 * student first. */
void tg_augment_plan_erase(tg_augment_plan *plan, bool pixel_noise, int width_px, int height_px,
                           float *planes);

#endif
