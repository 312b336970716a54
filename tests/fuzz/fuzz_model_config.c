/* config.json of a model folder, both styles, and preprocessor_config.json. The input is one
 * document, or two apart by a NUL. */
#include "ckpt/config_json.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tg_json config = {0}, processor = {0};
    tg_model_info info = {0}, other = {0};
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t first = end ? (size_t)(end - data) : size;
    if (tg_json_parse((const char *)data, first, "config.json", &config) == TG_OK) {
        tg_json_node root = tg_json_root(&config), second;
        bool two = end && tg_json_parse((const char *)end + 1, size - first - 1,
                                        "preprocessor_config.json", &processor) == TG_OK;
        if (two)
            second = tg_json_root(&processor);
        if (tg_json_node_kind(&root) == TG_JSON_OBJECT &&
            (!two || tg_json_node_kind(&second) == TG_JSON_OBJECT)) {
            if (tg_config_timm_read(&root, &info) == TG_OK)
                (void)!tg_vit_config_check(&info.config);
            if (tg_config_hf_read(&root, two ? &second : NULL, &other) == TG_OK)
                (void)!tg_vit_config_check(&other.config);
        }
    }
    tg_model_info_done(&info);
    tg_model_info_done(&other);
    tg_json_done(&config);
    tg_json_done(&processor);
    return 0;
}
