#include "data/augment_plan.h"

#include "image/affine.h"
#include "image/color.h"
#include "image/transform.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define TRIES 10
#define LEVEL_DENOMINATOR 10.0 /* timm's scale of magnitudes */
#define ERASE_AREA_MIN 0.02
#define ERASE_AREA_MAX (1.0 / 3.0)
#define ERASE_RATIO_MIN 0.3

static double uniform_in(tg_rng *rng, double low, double high)
{
    return low + (high - low) * tg_rng_uniform(rng);
}

static tg_image_rect choose_crop(const tg_augment *augment, int width_px, int height_px,
                                 tg_rng *rng)
{
    tg_image_rect crop;
    for (int i = 0; i < TRIES; i++) {
        double area = tg_rng_uniform(rng), ratio = tg_rng_uniform(rng);
        double top = tg_rng_uniform(rng), left = tg_rng_uniform(rng);
        if (tg_crop_try(width_px, height_px, augment->scale_min, augment->scale_max,
                        augment->ratio_min, augment->ratio_max, area, ratio, top, left, &crop))
            return crop;
    }
    return tg_crop_fallback(width_px, height_px, augment->ratio_min, augment->ratio_max);
}

static void add_jitter(double strength, tg_rng *rng, tg_augment_plan *plan)
{
    static const tg_augment_op ops[3] = {TG_AUGMENT_BRIGHTNESS, TG_AUGMENT_CONTRAST,
                                         TG_AUGMENT_COLOR};
    uint32_t order[3];
    tg_rng_permutation(rng, order, 3);
    for (int i = 0; i < 3; i++)
        plan->steps[plan->step_count++] = (tg_augment_step){
            ops[order[i]], uniform_in(rng, strength < 1 ? 1 - strength : 0, 1 + strength)};
}

static double draw_magnitude(const tg_augment *augment, tg_rng *rng)
{
    double magnitude = augment->rand_magnitude;
    if (isinf(augment->rand_std))
        magnitude = uniform_in(rng, 0, magnitude);
    else if (augment->rand_std > 0)
        magnitude += augment->rand_std * tg_rng_normal(rng);
    return fmax(0, fmin(magnitude, augment->rand_magnitude_max));
}

static double random_sign(double value, tg_rng *rng)
{
    return tg_rng_uniform(rng) > 0.5 ? -value : value;
}

static double enhance_factor(double level, bool increasing, tg_rng *rng)
{
    if (!increasing)
        return level * 1.8 + 0.1;
    return fmax(0.1, 1.0 + random_sign(level * 0.9, rng));
}

/* timm's level functions; level = magnitude / 10. */
static double op_value(tg_augment_op op, double level, bool increasing, tg_rng *rng)
{
    double whole;
    switch (op) {
    case TG_AUGMENT_ROTATE:
        return random_sign(level * 30.0, rng);
    case TG_AUGMENT_POSTERIZE:
        whole = trunc(level * 4);
        return increasing ? 4 - whole : whole;
    case TG_AUGMENT_SOLARIZE:
        whole = fmin(256, trunc(level * 256));
        return increasing ? 256 - whole : whole;
    case TG_AUGMENT_SOLARIZE_ADD:
        return fmin(128, trunc(level * 110));
    case TG_AUGMENT_COLOR:
    case TG_AUGMENT_CONTRAST:
    case TG_AUGMENT_BRIGHTNESS:
    case TG_AUGMENT_SHARPNESS:
        return enhance_factor(level, increasing, rng);
    case TG_AUGMENT_SHEAR_X:
    case TG_AUGMENT_SHEAR_Y:
        return random_sign(level * 0.3, rng);
    case TG_AUGMENT_TRANSLATE_X:
    case TG_AUGMENT_TRANSLATE_Y:
        return random_sign(level * 0.45, rng);
    case TG_AUGMENT_AUTOCONTRAST:
    case TG_AUGMENT_EQUALIZE:
    case TG_AUGMENT_INVERT:
    case TG_AUGMENT_OP_COUNT:
        break;
    }
    return 0;
}

static void add_rand(const tg_augment *augment, tg_rng *rng, tg_augment_plan *plan)
{
    for (int i = 0; i < augment->rand_ops; i++) {
        tg_augment_op op = (tg_augment_op)tg_rng_below(rng, TG_AUGMENT_OP_COUNT);
        if (tg_rng_uniform(rng) >= augment->rand_prob)
            continue;
        double level = draw_magnitude(augment, rng) / LEVEL_DENOMINATOR;
        plan->steps[plan->step_count++] =
            (tg_augment_step){op, op_value(op, level, augment->rand_increasing, rng)};
    }
}

static void choose_erase(const tg_augment *augment, const tg_preprocess *input, tg_rng *rng,
                         tg_augment_plan *plan)
{
    const int width = input->width_px, height = input->height_px;
    const double log_ratio = log(1 / ERASE_RATIO_MIN);
    if (augment->reprob <= 0 || tg_rng_uniform(rng) >= augment->reprob)
        return;
    for (int i = 0; i < TRIES; i++) {
        double area =
            uniform_in(rng, ERASE_AREA_MIN, ERASE_AREA_MAX) * (double)width * (double)height;
        double ratio = exp(uniform_in(rng, -log_ratio, log_ratio));
        double h = nearbyint(sqrt(area * ratio)), w = nearbyint(sqrt(area / ratio));
        if (!(w < width && h < height))
            continue;
        plan->erase = true;
        plan->erase_width_px = width;
        plan->erase_height_px = height;
        plan->erase_box.width_px = (int)w;
        plan->erase_box.height_px = (int)h;
        plan->erase_box.top_px = (int)tg_rng_below(rng, (uint32_t)(height - (int)h + 1));
        plan->erase_box.left_px = (int)tg_rng_below(rng, (uint32_t)(width - (int)w + 1));
        return;
    }
}

tg_augment_plan tg_augment_plan_make(const tg_augment *augment, const tg_preprocess *input,
                                     int width_px, int height_px, uint64_t seed, uint64_t epoch,
                                     uint64_t sample)
{
    tg_augment_plan plan = {0};
    tg_rng rng = tg_rng_init(seed, epoch, sample, TG_RNG_AUGMENT);
    plan.crop = choose_crop(augment, width_px, height_px, &rng);
    plan.hflip = tg_rng_uniform(&rng) < augment->hflip;
    plan.vflip = tg_rng_uniform(&rng) < augment->vflip;
    if (augment->rand_ops > 0)
        add_rand(augment, &rng, &plan);
    else if (augment->color_jitter > 0)
        add_jitter(augment->color_jitter, &rng, &plan);
    choose_erase(augment, input, &rng, &plan);
    plan.noise = rng;
    return plan;
}

static tg_status apply_geometry(tg_augment_step step, const tg_preprocess *input,
                                tg_image_scratch *scratch, tg_image *image)
{
    uint8_t fill[3];
    for (int c = 0; c < 3; c++)
        fill[c] = (uint8_t)fmin(255, nearbyint(255.0 * (double)input->mean[c]));
    switch (step.op) {
    case TG_AUGMENT_ROTATE:
        return tg_image_rotate(image, step.value, input->interpolation, fill, scratch);
    case TG_AUGMENT_SHEAR_X:
        return tg_image_shear_x(image, step.value, input->interpolation, fill, scratch);
    case TG_AUGMENT_SHEAR_Y:
        return tg_image_shear_y(image, step.value, input->interpolation, fill, scratch);
    case TG_AUGMENT_TRANSLATE_X:
        return tg_image_translate(image, step.value * image->width_px, 0, input->interpolation,
                                  fill, scratch);
    default:
        return tg_image_translate(image, 0, step.value * image->height_px, input->interpolation,
                                  fill, scratch);
    }
}

static tg_status apply_step(tg_augment_step step, const tg_preprocess *input,
                            tg_image_scratch *scratch, tg_image *image)
{
    switch (step.op) {
    case TG_AUGMENT_AUTOCONTRAST:
        tg_color_autocontrast(image);
        break;
    case TG_AUGMENT_EQUALIZE:
        tg_color_equalize(image);
        break;
    case TG_AUGMENT_INVERT:
        tg_color_invert(image);
        break;
    case TG_AUGMENT_POSTERIZE:
        tg_color_posterize(image, (int)step.value);
        break;
    case TG_AUGMENT_SOLARIZE:
        tg_color_solarize(image, (int)step.value);
        break;
    case TG_AUGMENT_SOLARIZE_ADD:
        tg_color_solarize_add(image, (int)step.value, 128);
        break;
    case TG_AUGMENT_COLOR:
        tg_color_saturation(image, step.value);
        break;
    case TG_AUGMENT_CONTRAST:
        tg_color_contrast(image, step.value);
        break;
    case TG_AUGMENT_BRIGHTNESS:
        tg_color_brightness(image, step.value);
        break;
    case TG_AUGMENT_SHARPNESS:
        return tg_color_sharpness(image, step.value, scratch);
    default:
        return apply_geometry(step, input, scratch, image);
    }
    return TG_OK;
}

tg_status tg_augment_plan_pixels(const tg_augment_plan *plan, const tg_preprocess *input,
                                 tg_image_scratch *scratch, tg_image *image)
{
    if (plan->hflip)
        tg_image_flip_horizontal(image);
    if (plan->vflip)
        tg_image_flip_vertical(image);
    for (int i = 0; i < plan->step_count; i++)
        TG_TRY(apply_step(plan->steps[i], input, scratch, image));
    return TG_OK;
}

static int scale_edge(int edge, int from, int to)
{
    return (int)(((int64_t)edge * to * 2 + from) / ((int64_t)from * 2));
}

void tg_augment_plan_erase(tg_augment_plan *plan, bool pixel_noise, int width_px, int height_px,
                           float *planes)
{
    if (!plan->erase)
        return;
    const tg_image_rect box = plan->erase_box;
    int left = scale_edge(box.left_px, plan->erase_width_px, width_px);
    int right = scale_edge(box.left_px + box.width_px, plan->erase_width_px, width_px);
    int top = scale_edge(box.top_px, plan->erase_height_px, height_px);
    int bottom = scale_edge(box.top_px + box.height_px, plan->erase_height_px, height_px);
    for (int c = 0; c < 3; c++)
        for (int y = top; y < bottom; y++) {
            float *row = planes + ((size_t)c * (size_t)height_px + (size_t)y) * (size_t)width_px;
            if (!pixel_noise)
                memset(row + left, 0, (size_t)(right - left) * sizeof *row);
            for (int x = left; pixel_noise && x < right; x++)
                row[x] = (float)tg_rng_normal(&plan->noise);
        }
}
