#include "support/tiny.h"

#include "base/rng.h"
#include "image/write_jpeg.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const tg_tiny_class_names[TG_TINY_CLASSES] = {"apple_pie", "falafel", "ice_cream",
                                                          "pizza",     "ramen",   "sushi"};

static tg_model_info describe(const tg_tiny_model *model)
{
    tg_model_info info = {.preprocess = tg_preprocess_default(TG_TINY_SIDE)};
    if (tg_vit_config_preset("vit_tiny_patch16_224", &info.config) < 0)
        abort();
    info.config.img_h = info.config.img_w = TG_TINY_SIDE;
    info.config.patch = 8;
    info.config.embed_dim = 32;
    info.config.mlp_hidden = 128;
    info.config.depth = 2;
    info.config.num_heads = 2;
    info.config.num_classes = model->num_classes;
    if (!model->unnamed && model->num_classes == TG_TINY_CLASSES) {
        info.class_names = (char **)(uintptr_t)tg_tiny_class_names; /* only read */
        info.class_count = TG_TINY_CLASSES;
    }
    return info;
}

tg_status tg_tiny_model_write(const char *path, const tg_tiny_model *model)
{
    tg_model_info info = describe(model);
    tg_param_table table = {0};
    TG_TRY(tg_vit_params(&info.config, &table));
    float *params = calloc(table.elements, sizeof *params);
    tg_vit_init_weights(&info.config, &table, 7, params);
    for (size_t i = 0; i < table.elements; i++) /* fresh weights answer the same to everything */
        params[i] *= fabsf(params[i]) < 0.5F ? 8 : 1;
    if (model->damaged)
        params[0] = NAN;
    const tg_param *norm = tg_param_find(&table, "norm.weight");
    for (size_t c = 0; c < norm->count && model->huge; c++)
        params[norm->offset + c] = 3e38F;
    tg_status status = tg_model_write(path, &info, &table, params, TG_NAMING_TIMM);
    free(params);
    tg_param_table_done(&table);
    return status;
}

tg_status tg_tiny_photo_write(const char *path, int width_px, int height_px, unsigned seed)
{
    tg_rng rng = tg_rng_init(seed, 0, 0, TG_RNG_TEST);
    double phase[3], pace[3];
    uint8_t *bytes, *rgb = malloc((size_t)width_px * (size_t)height_px * 3);
    size_t size;
    for (int c = 0; c < 3; c++) {
        phase[c] = 6 * tg_rng_uniform(&rng);
        pace[c] = 12 * tg_rng_uniform(&rng);
    }
    for (int y = 0; y < height_px; y++)
        for (int x = 0; x < width_px; x++)
            for (int c = 0; c < 3; c++)
                rgb[(y * width_px + x) * 3 + c] =
                    (uint8_t)(127 + 120 * sin(phase[c] + pace[c] * x / width_px +
                                              (c + 1.0) * y / height_px));
    tg_image image = tg_image_view(rgb, width_px, height_px);
    tg_status status = tg_image_write_jpeg(&image, 90, TG_JPEG_420, &bytes, &size);
    free(rgb);
    TG_TRY(status);
    status = tg_file_write(path, bytes, size);
    free(bytes);
    return status;
}
