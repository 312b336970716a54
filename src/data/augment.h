/* augment.h - training augmentation: what is done to one photo and to one batch, timm's meanings. */
#ifndef TG_DATA_AUGMENT_H
#define TG_DATA_AUGMENT_H

#include <stdbool.h>

typedef struct tg_augment {
    double scale_min, scale_max; /* random resized crop: area share; 0.08 .. 1 */
    double ratio_min, ratio_max; /* 3/4 .. 4/3 */
    double hflip, vflip;         /* probability: 0.5, 0 */
    double color_jitter;         /* strength of brightness, contrast, saturation; 0 off (0.4 timm) */
    /* RandAugment, "rand-m9-mstd0.5-inc1": ops per photo, magnitude, its deviation, increasing */
    int rand_ops;                /* 0 off; timm 2 */
    double rand_magnitude, rand_std;
    bool rand_increasing;
    double reprob;               /* random erasing probability */
    bool reprob_pixel;           /* erase with noise per pixel, else with 0 (the mean) */
    double smoothing;            /* label smoothing */
    double mixup, cutmix;        /* alpha of the Beta distributions; 0 off */
    double mix_prob, mix_switch_prob; /* 1.0, 0.5 */
} tg_augment;

/* timm's defaults: crop 0.08-1, ratio 3/4-4/3, flip 0.5, everything else off. */
tg_augment tg_augment_default(void);

#endif
