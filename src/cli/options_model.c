#include "cli/options_model.h"

#define AT(field) offsetof(tg_model_choice, field)
#define SIZE_OPTION(option_name, field, text)                                                      \
    {                                                                                              \
        .name = option_name, .type = TG_OPTION_INT, .offset = AT(field), .metavar = "N",           \
        .help = text, .low = 1, .high = 1 << 20                                                    \
    }

/* The index is the stored value: tg_model_choice.global_pool. */
static const char *const POOLS[] = {"model", "token", "avg", NULL};
_Static_assert(TG_POOL_TOKEN == 0 && TG_POOL_AVG == 1, "order of POOLS, after \"model\"");

const tg_option tg_model_option_table[TG_MODEL_OPTION_COUNT] = {
    {.name = "model",
     .type = TG_OPTION_STRING,
     .offset = AT(model),
     .initial = "vit_tiny_patch16_224",
     .metavar = "MODEL",
     .help = "model folder, .safetensors file beside its config.json, or architecture name",
     .flags = TG_OPTION_FILE | TG_OPTION_ARCHITECTURE},
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
    {.name = "global-pool",
     .type = TG_OPTION_CHOICE,
     .offset = AT(global_pool),
     .initial = "model",
     .choices = POOLS,
     .help = "what the head reads: the class token, or the average of the patches"},
    {.name = "num-classes",
     .type = TG_OPTION_INT,
     .offset = AT(num_classes),
     .initial = "-1",
     .metavar = "N",
     .help = "classes of the head; 0: no head; -1: the data's or the model's",
     .low = -1,
     .high = 1 << 20},
};

tg_status tg_model_choice_config(const tg_model_choice *choice, tg_vit_config *out)
{
    const tg_network_request request = {
        .model = choice->model, .shape = tg_model_choice_shape(choice), .fresh_head = true};
    tg_model_info info = {0};
    TG_TRY(tg_network_describe(&request, &info));
    *out = info.config;
    tg_model_info_done(&info);
    return TG_OK;
}
