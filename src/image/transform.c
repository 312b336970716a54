#include "image/transform.h"

#include "image/resize.h"

#include <math.h>
#include <string.h>

/* Python's round of a value that is a multiple of one half: to the nearest, ties to even. */
static int round_half_even(double v)
{
    return (int)nearbyint(v);
}

static int at_least_one(double v)
{
    return v < 1 ? 1 : v > INT32_MAX / 4 ? INT32_MAX / 4 : (int)v;
}

/* torchvision's Resize(int): the shorter side becomes `side`. */
static void plan_shorter_side(tg_eval_plan *plan, int side, int width_px, int height_px)
{
    bool wide = width_px > height_px;
    int shorter = wide ? height_px : width_px, longer = wide ? width_px : height_px;
    int scaled = at_least_one((double)((int64_t)side * longer) / shorter);
    plan->resized_width_px = wide ? scaled : side;
    plan->resized_height_px = wide ? side : scaled;
}

/* timm's ResizeKeepRatio: both sides reach at least their target. */
static void plan_keep_ratio(tg_eval_plan *plan, int target_width, int target_height, int width_px,
                            int height_px)
{
    double ratio = fmin((double)height_px / target_height, (double)width_px / target_width);
    plan->resized_width_px = at_least_one(nearbyint(width_px / ratio));
    plan->resized_height_px = at_least_one(nearbyint(height_px / ratio));
}

/* Offset of torchvision's center_crop; negative: padding on that side. */
static int center_offset(int size_px, int crop_px)
{
    return size_px >= crop_px ? round_half_even((size_px - crop_px) / 2.0)
                              : -((crop_px - size_px) / 2);
}

tg_eval_plan tg_preprocess_plan(const tg_preprocess *p, int width_px, int height_px)
{
    tg_eval_plan plan;
    int target_width = (int)floor(p->width_px / p->crop_pct);
    int target_height = (int)floor(p->height_px / p->crop_pct);
    if (p->crop_mode == TG_CROP_SQUASH) {
        plan.resized_width_px = target_width;
        plan.resized_height_px = target_height;
    } else if (target_width == target_height) {
        plan_shorter_side(&plan, target_width, width_px, height_px);
    } else {
        plan_keep_ratio(&plan, target_width, target_height, width_px, height_px);
    }
    plan.crop = (tg_image_rect){center_offset(plan.resized_width_px, p->width_px),
                                center_offset(plan.resized_height_px, p->height_px), p->width_px,
                                p->height_px};
    return plan;
}

/* The part of the crop that lies inside the resized picture. */
static tg_image_rect clip_to_picture(const tg_eval_plan *plan)
{
    tg_image_rect r = plan->crop;
    int right = r.left_px + r.width_px, bottom = r.top_px + r.height_px;
    r.left_px = r.left_px > 0 ? r.left_px : 0;
    r.top_px = r.top_px > 0 ? r.top_px : 0;
    r.width_px = (right < plan->resized_width_px ? right : plan->resized_width_px) - r.left_px;
    r.height_px = (bottom < plan->resized_height_px ? bottom : plan->resized_height_px) - r.top_px;
    return r;
}

/* Puts the picture at its place on a black one of the crop's size. */
static tg_status pad(tg_image *image, const tg_eval_plan *plan, tg_image_scratch *scratch)
{
    TG_TRY(tg_image_copy(image, &scratch->picture));
    const tg_image *small = &scratch->picture;
    size_t row = (size_t)plan->crop.width_px * 3, part = (size_t)small->width_px * 3;
    int left = plan->crop.left_px < 0 ? -plan->crop.left_px : 0;
    int top = plan->crop.top_px < 0 ? -plan->crop.top_px : 0;
    TG_TRY(tg_image_reserve(image, plan->crop.width_px, plan->crop.height_px));
    memset(image->rgb, 0, row * (size_t)plan->crop.height_px);
    for (int y = 0; y < small->height_px; y++)
        memcpy(image->rgb + (size_t)(top + y) * row + (size_t)left * 3,
               small->rgb + (size_t)y * part, part);
    return TG_OK;
}

tg_status tg_preprocess_pixels(const tg_preprocess *preprocess, const tg_image *source,
                               tg_image_scratch *scratch, tg_image *out)
{
    tg_eval_plan plan = tg_preprocess_plan(preprocess, source->width_px, source->height_px);
    tg_image_rect part = clip_to_picture(&plan);
    tg_resize_spec spec = {.width_px = plan.resized_width_px,
                           .height_px = plan.resized_height_px,
                           .filter = preprocess->interpolation,
                           .part = part};
    TG_TRY(tg_image_resize(source, &spec, scratch, out));
    if (part.width_px == plan.crop.width_px && part.height_px == plan.crop.height_px)
        return TG_OK;
    return pad(out, &plan, scratch);
}

tg_status tg_preprocess_image(const tg_preprocess *preprocess, const tg_image *source,
                              tg_image_scratch *scratch, tg_image *pixels, float *out)
{
    TG_TRY(tg_preprocess_pixels(preprocess, source, scratch, pixels));
    tg_image_to_tensor(pixels, preprocess->mean, preprocess->std, false, out);
    return TG_OK;
}

void tg_image_to_tensor(const tg_image *image, const float mean[3], const float std[3], bool hflip,
                        float *out)
{
    float table[3][256];
    size_t width = (size_t)image->width_px, plane = width * (size_t)image->height_px;
    const uint8_t *p = image->rgb;
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            table[c][v] = ((float)v / 255.0f - mean[c]) / std[c];
    for (int y = 0; y < image->height_px; y++, out += width) {
        float *red = hflip ? out + width - 1 : out;
        ptrdiff_t step = hflip ? -1 : 1;
        for (size_t x = 0; x < width; x++, p += 3, red += step) {
            red[0] = table[0][p[0]];
            red[plane] = table[1][p[1]];
            red[2 * plane] = table[2][p[2]];
        }
    }
}

bool tg_crop_try(int width_px, int height_px, double scale_min, double scale_max, double ratio_min,
                 double ratio_max, double u_area, double u_ratio, double u_top, double u_left,
                 tg_image_rect *out)
{
    double area = (double)width_px * height_px * (scale_min + u_area * (scale_max - scale_min));
    double low = log(ratio_min), ratio = exp(low + u_ratio * (log(ratio_max) - low));
    double w = nearbyint(sqrt(area * ratio)), h = nearbyint(sqrt(area / ratio));
    if (!(w > 0 && w <= width_px && h > 0 && h <= height_px))
        return false;
    *out = (tg_image_rect){.left_px = (int)(u_left * (width_px - (int)w + 1)),
                           .top_px = (int)(u_top * (height_px - (int)h + 1)),
                           .width_px = (int)w,
                           .height_px = (int)h};
    return true;
}

tg_image_rect tg_crop_fallback(int width_px, int height_px, double ratio_min, double ratio_max)
{
    double ratio = (double)width_px / height_px;
    int w = width_px, h = height_px;
    if (ratio < ratio_min)
        h = at_least_one(nearbyint(w / ratio_min));
    else if (ratio > ratio_max)
        w = at_least_one(nearbyint(h * ratio_max));
    return (tg_image_rect){(width_px - w) / 2, (height_px - h) / 2, w, h};
}

void tg_image_flip_horizontal(tg_image *image)
{
    size_t row = (size_t)image->width_px * 3;
    for (int y = 0; y < image->height_px; y++) {
        uint8_t *a = image->rgb + (size_t)y * row, *b = a + row - 3;
        for (; a < b; a += 3, b -= 3) {
            uint8_t pixel[3];
            memcpy(pixel, a, 3);
            memcpy(a, b, 3);
            memcpy(b, pixel, 3);
        }
    }
}

void tg_image_flip_vertical(tg_image *image)
{
    size_t row = (size_t)image->width_px * 3;
    uint8_t *a = image->rgb, *b = image->rgb + (size_t)(image->height_px - 1) * row;
    for (; a < b; a += row, b -= row)
        for (size_t i = 0; i < row; i++) {
            uint8_t v = a[i];
            a[i] = b[i];
            b[i] = v;
        }
}
