#include "ckpt/model_folder.h"

#include "ckpt/config_json.h"
#include "ckpt/model_path.h"

#include <stdlib.h>

void tg_model_names_done(tg_model_info *info)
{
    for (size_t i = 0; info->class_names && i < info->class_count; i++)
        free(info->class_names[i]);
    free(info->class_names);
    info->class_names = NULL;
    info->class_count = 0;
}

void tg_model_info_done(tg_model_info *info)
{
    if (!info)
        return;
    tg_model_names_done(info);
    free(info->license);
    *info = (tg_model_info){0};
}

tg_status tg_model_read_info(const char *path, tg_model_info *out)
{
    tg_model_path place = {0};
    TG_TRY(tg_model_path_find(path, &place));
    tg_status status = tg_config_json_read(place.folder, out);
    tg_model_path_done(&place);
    return status;
}

void tg_model_apply_want(tg_model_info *info, const tg_model_want *want)
{
    tg_vit_config *config = &info->config;
    if (want->img_h && want->img_w) {
        config->img_h = want->img_h;
        config->img_w = want->img_w;
        info->preprocess.height_px = (int)want->img_h;
        info->preprocess.width_px = (int)want->img_w;
    }
    size_t classes = want->no_head ? 0 : want->fresh_head ? want->num_classes : config->num_classes;
    if (classes != config->num_classes)
        tg_model_names_done(info);
    config->num_classes = classes;
}
