#include "ckpt/preset_preprocess.h"

#include "model/presets.h"

tg_preprocess tg_preset_preprocess(const tg_vit_config *config)
{
    tg_preprocess out = tg_preprocess_default((int)config->img_h);
    const tg_vit_preset *preset = tg_vit_preset_find(config->architecture);
    out.width_px = (int)config->img_w;
    if (!preset)
        return out;
    out.crop_pct = preset->crop_pct;
    for (int i = 0; i < 3 && preset->pixel_norm == TG_PIXEL_NORM_HALF; i++)
        out.mean[i] = out.std[i] = 0.5f;
    return out;
}
