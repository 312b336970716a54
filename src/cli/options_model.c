#include "cli/options_model.h"

#define AT(field) offsetof(tg_model_choice, field)
#define SIZE_OPTION(option_name, field, text)                                                      \
    {                                                                                              \
        .name = option_name, .type = TG_OPTION_INT, .offset = AT(field), .metavar = "N",           \
        .help = text, .low = 1, .high = 1 << 20                                                    \
    }

const tg_option tg_model_option_table[TG_MODEL_OPTION_COUNT] = {
    {.name = "model",
     .type = TG_OPTION_STRING,
     .offset = AT(model),
     .initial = "vit_tiny_patch16_224",
     .metavar = "MODEL",
     .help = "model folder, .safetensors file beside its config.json, or architecture name",
     .flags = TG_OPTION_FILE},
    SIZE_OPTION("img-size", img_size, "side of the input in pixels (default: the model's)"),
    SIZE_OPTION("patch-size", patch_size, "side of a patch in pixels (default: the model's)"),
    SIZE_OPTION("embed-dim", embed_dim, "width of a token (default: the model's)"),
    SIZE_OPTION("depth", depth, "number of blocks (default: the model's)"),
    SIZE_OPTION("num-heads", num_heads, "attention heads (default: the model's)"),
    {.name = "reg-tokens",
     .type = TG_OPTION_INT,
     .offset = AT(reg_tokens),
     .initial = "-1",
     .metavar = "N",
     .help = "register tokens; -1: the model's",
     .low = -1,
     .high = 1024},
    {.name = "num-classes",
     .type = TG_OPTION_INT,
     .offset = AT(num_classes),
     .initial = "-1",
     .metavar = "N",
     .help = "classes of the head; 0: no head; -1: the data's or the model's",
     .low = -1,
     .high = 1 << 20},
};

/* A new width scales the MLP with it and, without --num-heads, keeps the width of a head. */
static void apply_width(const tg_model_choice *choice, tg_vit_config *config)
{
    size_t C = (size_t)choice->embed_dim, D = config->embed_dim / config->num_heads;
    config->mlp_hidden = C * (config->mlp_hidden / config->embed_dim);
    if (!choice->num_heads)
        config->num_heads = C % D == 0 ? C / D : 1;
    config->embed_dim = C;
}

tg_status tg_model_choice_config(const tg_model_choice *choice, tg_vit_config *out)
{
    tg_vit_config config;
    TG_TRY(tg_vit_config_preset(choice->model, &config));
    if (choice->embed_dim)
        apply_width(choice, &config);
    if (choice->num_heads)
        config.num_heads = (size_t)choice->num_heads;
    if (choice->img_size)
        config.img_h = config.img_w = (size_t)choice->img_size;
    if (choice->patch_size)
        config.patch = (size_t)choice->patch_size;
    if (choice->depth)
        config.depth = (size_t)choice->depth;
    if (choice->reg_tokens >= 0)
        config.reg_tokens = (size_t)choice->reg_tokens;
    if (choice->num_classes >= 0)
        config.num_classes = (size_t)choice->num_classes;
    TG_TRY(tg_vit_config_check(&config));
    *out = config;
    return TG_OK;
}
