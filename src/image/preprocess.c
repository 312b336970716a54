#include "image/preprocess.h"

tg_preprocess tg_preprocess_default(int size_px)
{
    return (tg_preprocess){.width_px = size_px,
                           .height_px = size_px,
                           .crop_pct = 0.9,
                           .interpolation = TG_BICUBIC,
                           .crop_mode = TG_CROP_CENTER,
                           .mean = {0.485f, 0.456f, 0.406f},
                           .std = {0.229f, 0.224f, 0.225f},
                           .exif_orientation = true};
}
