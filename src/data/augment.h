/* augment.h - training augmentation: what is done to one photo and to one batch, timm's meanings.
 *
 * Order      random resized crop, flips, RandAugment or colour jitter (jitter only when RandAugment
 *            is off, as timm), normalisation, random erasing; then the batch is mixed.
 * Errors     TG_ERROR_USAGE naming the option.
 */
#ifndef TG_DATA_AUGMENT_H
#define TG_DATA_AUGMENT_H

#include "base/status.h"

#include <stdbool.h>

#define TG_AUGMENT_MAX_OPS 16

typedef struct tg_augment {
    double scale_min, scale_max; /* random resized crop: area share; 0.08 .. 1 */
    double ratio_min, ratio_max; /* 3/4 .. 4/3 */
    double hflip, vflip;         /* probability: 0.5, 0 */
    double color_jitter;         /* strength of brightness, contrast, saturation; 0 off (0.4 timm) */
    /* RandAugment, "rand-m9-mstd0.5-inc1": ops per photo, magnitude, its deviation, increasing */
    int rand_ops;                /* 0 off; timm 2; at most TG_AUGMENT_MAX_OPS */
    double rand_magnitude, rand_std;
    double rand_magnitude_max;   /* magnitudes are clipped to 0..this; 10 */
    double rand_prob;            /* probability that a chosen op is applied; 0.5 */
    bool rand_increasing;
    double reprob;               /* random erasing probability */
    bool reprob_pixel;           /* erase with noise per pixel, else with 0 (the mean) */
    double smoothing;            /* label smoothing */
    double mixup, cutmix;        /* alpha of the Beta distributions; 0 off */
    double mix_prob, mix_switch_prob; /* 1.0, 0.5 */
} tg_augment;

/* timm's defaults: crop 0.08-1, ratio 3/4-4/3, flip 0.5, everything else off. */
tg_augment tg_augment_default(void);

/* Reads timm's --aa text into the rand_ fields: "rand" and sections joined by '-':
 *   m<whole>  magnitude (10)        n<whole>  ops per photo (2)      mstd<number>  deviation (0);
 *   p<number> probability (0.5)     mmax<whole> upper bound (10)     above 100: uniform in 0..m
 *   inc<0|1>  use the ops whose strength grows with the magnitude (0)
 * "" or "none" turns RandAugment off. The policies of AutoAugment, AugMix and weighted choices (t..)
 * are refused by name. On error nothing is changed. */
tg_status tg_augment_parse_aa(const char *text, tg_augment *inout) TG_MUST_CHECK;

/* Refuses what makes no sense: shares outside 0..1, empty ranges, negative strengths. */
tg_status tg_augment_check(const tg_augment *augment) TG_MUST_CHECK;

#endif
