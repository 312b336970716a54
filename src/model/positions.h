/* positions.h - resampling a table of learned positions to another grid of patches.
 *
 * Every code base resizes its own way, and features only stay equal to the published ones with the
 * rule of the code base that a file comes from:
 *
 *   ANTIALIAS  bicubic (a = -0.5), widened when shrinking: timm for every ViT, DeiT and DINOv2 it
 *              loads; transformers and the DINOv2 code for DINOv2 with registers
 *   PLAIN      bicubic (a = -0.75), 4 taps, borders repeated: transformers for ViT, DeiT and
 * DINOv2; the DeiT code OFFSET     PLAIN, but the scale is (new + 0.1) / old per side: the DINOv2
 * code without registers
 *
 * Formula    half-pixel centres (align_corners = False), as PyTorch's F.interpolate. Target grids
 *            are whole numbers, so no size can come out one row short; rows (class, distillation,
 *            registers) before the grid are copied; equal grids are copied bit for bit.
 * Accuracy   computed in double, rounded once to float.
 */
#ifndef TG_MODEL_POSITIONS_H
#define TG_MODEL_POSITIONS_H

#include "base/status.h"

#include <stddef.h>

typedef enum tg_positions_rule {
    TG_POSITIONS_ANTIALIAS,
    TG_POSITIONS_PLAIN,
    TG_POSITIONS_OFFSET
} tg_positions_rule;

typedef struct tg_grid {
    size_t h, w; /* patches: rows, columns */
} tg_grid;

/* table [prefix + from.h * from.w, C] to out [prefix + to.h * to.w, C]; they do not overlap. Grids
 * are not empty; the caller has checked that the tables fit in memory. Takes from.h * to.w * C
 * doubles for the call. TG_ERROR_MACHINE when memory is short. Reentrant. */
tg_status tg_positions_resample(const float *table, size_t prefix, tg_grid from, tg_grid to,
                                size_t C, tg_positions_rule rule, float *out) TG_MUST_CHECK;

#endif
