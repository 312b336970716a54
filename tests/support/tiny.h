/* tiny.h - a vision transformer of a few thousand weights and small photos, made on the spot. */
#ifndef TG_TESTS_SUPPORT_TINY_H
#define TG_TESTS_SUPPORT_TINY_H

#include "base/status.h"
#include "ckpt/model_folder.h"

#include <stdbool.h>
#include <stddef.h>

enum { TG_TINY_CLASSES = 6, TG_TINY_SIDE = 32 };
/* apple_pie, falafel, ice_cream, pizza, ramen, sushi */
extern const char *const tg_tiny_class_names[TG_TINY_CLASSES];

/* 32 px, patch 8, width 32, 2 blocks, 2 heads, random weights strong enough that photos differ in
 * their answers. */
typedef struct tg_tiny_model {
    size_t num_classes; /* 0: no head */
    bool unnamed;       /* no class names in the folder */
    bool damaged;       /* a weight is NaN */
    bool huge;          /* weights are finite, answers are not */
} tg_tiny_model;
tg_status tg_tiny_model_write(const char *path, const tg_tiny_model *model) TG_MUST_CHECK;

/* A JPEG file of smooth colours that depend on the seed. */
tg_status tg_tiny_photo_write(const char *path, int width_px, int height_px,
                              unsigned seed) TG_MUST_CHECK;

#endif
