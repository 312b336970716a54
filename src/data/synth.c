#include "data/synth.h"

#include "data/synth_scene.h"

#define VAL_NUMBERS ((uint64_t)1 << 40) /* keeps the two splits' pictures apart */

static tg_status check_picture(int class_index, int size_px)
{
    if (class_index < 0 || class_index >= TG_SYNTH_CLASSES)
        return tg_fail(TG_ERROR_USAGE, "generated pictures: class %d is not in 0..%d", class_index,
                       TG_SYNTH_CLASSES - 1);
    if (size_px < TG_SYNTH_SIZE_MIN_PX || size_px > TG_SYNTH_SIZE_MAX_PX)
        return tg_fail(TG_ERROR_USAGE, "generated pictures: size of %d px is not in %d..%d",
                       size_px, TG_SYNTH_SIZE_MIN_PX, TG_SYNTH_SIZE_MAX_PX);
    return TG_OK;
}

tg_status tg_synth_draw(uint64_t seed, int class_index, uint32_t number, tg_synth_split split,
                        int size_px, uint8_t *out_rgb, int *out_quality)
{
    TG_TRY(check_picture(class_index, size_px));
    uint64_t sample = number + (split == TG_SYNTH_VAL ? VAL_NUMBERS : 0);
    tg_rng rng = tg_rng_init(seed, (uint64_t)class_index, sample, TG_RNG_SYNTH);
    tg_synth_camera camera = tg_synth_camera_pick(&rng);
    tg_synth_canvas canvas;
    TG_TRY(tg_synth_canvas_init(&canvas, size_px, &camera));
    tg_synth_light light = tg_synth_light_pick(&rng);
    tg_synth_pen pen = {.canvas = &canvas, .rng = &rng, .noise = tg_rng_u32(&rng)};
    pen.tint = tg_synth_tint_pick(&rng);
    tg_synth_frame food = tg_synth_scene_lay(&pen);
    tg_synth_food_draw(&pen, class_index, &food);
    tg_synth_scene_cover(&pen, &food);
    tg_synth_develop(&canvas, &light, out_rgb);
    if (out_quality)
        *out_quality = tg_synth_count(&rng, 60, 95);
    tg_synth_canvas_done(&canvas);
    return TG_OK;
}
