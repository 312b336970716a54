#include "data/mix.h"

#include "base/rng.h"

#include <math.h>

static int clip(int value, int high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* timm's rand_bbox, margin 0. */
static void choose_box(tg_mix *mix, tg_rng *rng)
{
    double ratio = sqrt(1 - mix->lambda);
    int cut_h = (int)(mix->height_px * ratio), cut_w = (int)(mix->width_px * ratio);
    int y = (int)tg_rng_below(rng, (uint32_t)mix->height_px);
    int x = (int)tg_rng_below(rng, (uint32_t)mix->width_px);
    int top = clip(y - cut_h / 2, mix->height_px);
    int bottom = clip(y + (cut_h + 1) / 2, mix->height_px);
    int left = clip(x - cut_w / 2, mix->width_px);
    int right = clip(x + (cut_w + 1) / 2, mix->width_px);
    mix->box = (tg_image_rect){left, top, right - left, bottom - top};
    mix->lambda = 1 - (double)mix->box.width_px * mix->box.height_px /
                          ((double)mix->width_px * mix->height_px);
}

tg_mix tg_mix_make(const tg_augment *augment, size_t count, int width_px, int height_px,
                   uint64_t seed, uint64_t epoch, uint64_t batch)
{
    tg_mix mix = {.lambda = 1, .width_px = width_px, .height_px = height_px};
    tg_rng rng = tg_rng_init(seed, epoch, batch, TG_RNG_MIX);
    if (count < 2 || (augment->mixup <= 0 && augment->cutmix <= 0) ||
        tg_rng_uniform(&rng) >= augment->mix_prob)
        return mix;
    mix.on = true;
    mix.cutmix = augment->cutmix > 0;
    if (mix.cutmix && augment->mixup > 0)
        mix.cutmix = tg_rng_uniform(&rng) < augment->mix_switch_prob;
    mix.lambda = tg_rng_beta(&rng, mix.cutmix ? augment->cutmix : augment->mixup);
    if (mix.cutmix)
        choose_box(&mix, &rng);
    return mix;
}

static void blend_pair(float *restrict a, float *restrict b, size_t n, float lambda)
{
    for (size_t i = 0; i < n; i++) {
        float x = a[i], y = b[i];
        a[i] = x * lambda + y * (1 - lambda);
        b[i] = y * lambda + x * (1 - lambda);
    }
}

static int scale_edge(int edge, int from, int to)
{
    return (int)(((int64_t)edge * to * 2 + from) / ((int64_t)from * 2));
}

static void swap_box(const tg_mix *mix, int width_px, int height_px, float *restrict a,
                     float *restrict b)
{
    int left = scale_edge(mix->box.left_px, mix->width_px, width_px);
    int right = scale_edge(mix->box.left_px + mix->box.width_px, mix->width_px, width_px);
    int top = scale_edge(mix->box.top_px, mix->height_px, height_px);
    int bottom = scale_edge(mix->box.top_px + mix->box.height_px, mix->height_px, height_px);
    for (int c = 0; c < 3; c++)
        for (int y = top; y < bottom; y++) {
            size_t row = ((size_t)c * (size_t)height_px + (size_t)y) * (size_t)width_px;
            for (size_t x = row + (size_t)left; x < row + (size_t)right; x++) {
                float t = a[x];
                a[x] = b[x];
                b[x] = t;
            }
        }
}

static bool is_alone(const bool *bad, size_t i, size_t partner)
{
    return i == partner || (bad && (bad[i] || bad[partner]));
}

void tg_mix_images(const tg_mix *mix, const bool *bad, size_t count, int width_px, int height_px,
                   float *images)
{
    const size_t n = 3 * (size_t)width_px * (size_t)height_px;
    if (!mix->on)
        return;
    for (size_t i = 0; i < count / 2; i++) {
        float *a = images + i * n, *b = images + (count - 1 - i) * n;
        if (is_alone(bad, i, count - 1 - i))
            continue;
        if (mix->cutmix)
            swap_box(mix, width_px, height_px, a, b);
        else
            blend_pair(a, b, n, (float)mix->lambda);
    }
}

void tg_mix_targets(const tg_mix *mix, const bool *bad, const int32_t *labels, size_t count,
                    size_t K, double smoothing, float *out_target)
{
    const double off = smoothing / (double)K, extra = 1 - smoothing;
    for (size_t i = 0; i < count; i++) {
        float *row = out_target + i * K;
        size_t other = is_alone(bad, i, count - 1 - i) ? i : count - 1 - i;
        size_t own = (size_t)labels[i], partner = (size_t)labels[other];
        for (size_t k = 0; k < K; k++)
            row[k] = (float)off;
        if (own == partner) {
            row[own] = (float)(off + extra);
        } else {
            row[own] = (float)(off + extra * mix->lambda);
            row[partner] = (float)(off + extra * (1 - mix->lambda));
        }
    }
}
