/* mix.h - mixup and cutmix of a batch, and its soft targets: the one place that builds targets.
 *
 * Sources    Zhang et al., mixup, 2018; Yun et al., CutMix, 2019; timm's batch mode: one lambda
 *            for the batch, sample i is mixed with sample n-1-i.
 * Ranks      what is mixed here may be some pairs of a batch: pictures i and count-1-i of the
 *            arrays must be partners in it (data/deal.h). The decision is made for the batch, so
 *            that it is the same on every rank.
 * Bad        a picture that could not be read is not touched, and its partner stays as it is, with
 *            its own smoothed label; all other pairs are what they would be without it.
 * Box        cutmix: a box of share sqrt(1-lambda) of each side around a uniform centre, cut at
 *            the border; lambda is then 1 - pasted area / whole area, counted in pixels of the
 *            student's input. Other sizes (the teacher's) use the box scaled and rounded, and the
 *            same lambda.
 * Sizes      any count. The middle sample of an odd batch is its own partner and stays as it is;
 *            a batch of one is not mixed.
 * Targets    y = lambda s(label_i) + (1 - lambda) s(label_partner), s = one-hot smoothed to
 *            1 - smoothing + smoothing/K on the label and smoothing/K elsewhere; rows add up to 1.
 * Random     TG_RNG_MIX of (seed, epoch, batch number).
 */
#ifndef TG_DATA_MIX_H
#define TG_DATA_MIX_H

#include "data/augment.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_mix {
    bool on, cutmix;
    double lambda;     /* share of the sample itself; 1 when off */
    tg_image_rect box; /* cutmix, in pixels of width x height */
    int width_px, height_px;
} tg_mix;

/* Decides for a whole batch of `count` pictures of width x height, this rank's and the others'. */
tg_mix tg_mix_make(const tg_augment *augment, size_t count, int width_px, int height_px,
                   uint64_t seed, uint64_t epoch, uint64_t batch);

/* images [count,3,height,width], in place. bad [count]: pictures that are not there; NULL: none. */
void tg_mix_images(const tg_mix *mix, const bool *bad, size_t count, int width_px, int height_px,
                   float *images);

/* out_target [count,K], rows of bad pictures mean nothing; labels in 0..K-1 (the loader checks them
 * when it opens). */
void tg_mix_targets(const tg_mix *mix, const bool *bad, const int32_t *labels, size_t count,
                    size_t K, double smoothing, float *out_target);

#endif
