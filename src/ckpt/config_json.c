#include "ckpt/config_json.h"

#include "base/checked.h"
#include "base/number.h"
#include "os/file.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG_BYTES = 64 << 20 };

static tg_status read_document(const char *folder, const char *name, tg_json *out)
{
    char *path = tg_path_join(folder, name), *bytes = NULL;
    size_t length;
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_status status = tg_file_read(path, MAX_CONFIG_BYTES, &bytes, &length);
    if (status == TG_OK)
        status = tg_json_parse(bytes, length, path, out);
    free(bytes);
    free(path);
    return status;
}

static tg_status read_hf(const char *folder, const tg_json_node *config, tg_model_info *out)
{
    tg_json document = {0};
    char *path = tg_path_join(folder, "preprocessor_config.json");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    bool present = tg_file_exists(path);
    free(path);
    if (!present)
        return tg_config_hf_read(config, NULL, out);
    TG_TRY(read_document(folder, "preprocessor_config.json", &document));
    tg_json_node root = tg_json_root(&document);
    tg_status status = tg_json_node_kind(&root) == TG_JSON_OBJECT
                           ? tg_config_hf_read(config, &root, out)
                           : tg_json_fail(&root, "an object is expected");
    tg_json_done(&document);
    return status;
}

tg_status tg_config_json_read(const char *folder, tg_model_info *out)
{
    tg_json document = {0};
    tg_json_node ignored;
    tg_model_info info = {0};
    TG_TRY(read_document(folder, "config.json", &document));
    tg_json_node root = tg_json_root(&document);
    tg_status status;
    if (tg_json_node_kind(&root) != TG_JSON_OBJECT)
        status = tg_json_fail(&root, "not a model's configuration (an object is expected)");
    else if (tg_json_find(&root, "model_type", &ignored))
        status = read_hf(folder, &root, &info);
    else if (tg_json_find(&root, "architecture", &ignored))
        status = tg_config_timm_read(&root, &info);
    else
        status = tg_json_fail(&root, "neither \"architecture\" (timm) nor \"model_type\" (Hugging "
                                     "Face) is there: not a model's configuration");
    if (status == TG_OK) {
        status = tg_vit_config_check(&info.config);
        if (status < 0)
            status = tg_fail_prefix(TG_ERROR_INPUT, "%s", document.name);
    }
    tg_json_done(&document);
    if (status < 0)
        tg_model_info_done(&info);
    else
        *out = info;
    return status;
}

static tg_status store_name(const tg_json_node *node, size_t index, tg_model_info *out)
{
    const char *name;
    TG_TRY(tg_json_as_string(node, &name));
    if (out->class_names[index])
        return tg_json_fail(node, "class %zu is named twice", index);
    out->class_names[index] = strdup(name);
    return out->class_names[index] ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory");
}

tg_status tg_config_read_names(const tg_json_node *names, tg_model_info *out)
{
    size_t count = tg_json_count(names);
    tg_json_kind kind = tg_json_node_kind(names);
    if (kind != TG_JSON_ARRAY && kind != TG_JSON_OBJECT)
        return tg_json_fail(names, "class names must be an array or an object");
    out->class_names = calloc(count + 1, sizeof *out->class_names);
    if (!out->class_names)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", count);
    out->class_count = count;
    for (size_t i = 0; kind == TG_JSON_ARRAY && i < count; i++) {
        tg_json_node element = tg_json_element(names, i);
        TG_TRY(store_name(&element, i, out));
    }
    if (kind == TG_JSON_ARRAY)
        return TG_OK;
    tg_json_iterator iterator = {0};
    tg_json_node node;
    const char *key;
    while (tg_json_next(names, &iterator, &key, &node)) {
        uint64_t index;
        if (!tg_number_parse_u64(key, strlen(key), &index) || index >= count)
            return tg_json_fail(&node, "classes must be numbered 0 to %zu", count - 1);
        TG_TRY(store_name(&node, (size_t)index, out));
    }
    return TG_OK;
}

tg_status tg_config_read_size(const tg_json_node *node, size_t out[2])
{
    int64_t value[2];
    if (tg_json_node_kind(node) == TG_JSON_ARRAY) {
        if (tg_json_count(node) != 2)
            return tg_json_fail(node, "a size is a number or a pair (height, width)");
        for (size_t i = 0; i < 2; i++) {
            tg_json_node element = tg_json_element(node, i);
            TG_TRY(tg_json_as_int(&element, &value[i]));
        }
    } else {
        TG_TRY(tg_json_as_int(node, &value[0]));
        value[1] = value[0];
    }
    if (value[0] <= 0 || value[1] <= 0 || value[0] > 1 << 20 || value[1] > 1 << 20)
        return tg_json_fail(node, "impossible size");
    out[0] = (size_t)value[0];
    out[1] = (size_t)value[1];
    return TG_OK;
}
