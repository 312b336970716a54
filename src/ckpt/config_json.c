#include "ckpt/config_json.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/number.h"
#include "os/file.h"

#include <stdbool.h>
#include <stdio.h>
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

static tg_status read_names(const tg_json_node *names, tg_model_info *out)
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

typedef struct named {
    const char *name;
    size_t index;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

/* The classes in the order of their names, equal ones side by side; from malloc. */
static tg_status sort_names(const tg_model_info *info, named **out)
{
    named *sorted = calloc(info->class_count + 1, sizeof *sorted);
    if (!sorted)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu class names", info->class_count);
    for (size_t i = 0; i < info->class_count; i++)
        sorted[i] = (named){info->class_names[i], i};
    qsort(sorted, info->class_count, sizeof *sorted, by_name);
    *out = sorted;
    return TG_OK;
}

static bool are_equal(const named *sorted, size_t count, size_t a, size_t b)
{
    return a < count && b < count && strcmp(sorted[a].name, sorted[b].name) == 0;
}

static tg_status number_equal_names(tg_model_info *info)
{
    named *sorted;
    size_t n = info->class_count;
    TG_TRY(sort_names(info, &sorted));
    char **apart = calloc(n + 1, sizeof *apart);
    tg_status status = apart ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for class names");
    for (size_t i = 0; i < n && status == TG_OK; i++) {
        if (!are_equal(sorted, n, i, i + 1) && !are_equal(sorted, n, i - 1, i))
            continue;
        char **name = &apart[sorted[i].index];
        if (asprintf(name, "%s (%zu)", sorted[i].name, sorted[i].index) < 0) {
            *name = NULL;
            status = tg_fail(TG_ERROR_MACHINE, "out of memory for class names");
        } else {
            tg_log_info("class %zu is not the only \"%s\": it is called \"%s\"", sorted[i].index,
                        sorted[i].name, *name);
        }
    }
    free(sorted);
    for (size_t i = 0; apart && i < n; i++)
        if (apart[i]) {
            free(info->class_names[i]);
            info->class_names[i] = apart[i];
        }
    free(apart);
    return status;
}

static tg_status check_names(const tg_json_node *names, const tg_model_info *info)
{
    named *sorted;
    tg_status status = TG_OK;
    for (size_t i = 0; i < info->class_count; i++)
        if (info->class_names[i][strspn(info->class_names[i], " ")] == '\0')
            return tg_json_fail(names, "the name of class %zu is empty", i);
    TG_TRY(sort_names(info, &sorted));
    for (size_t i = 1; i < info->class_count && status == TG_OK; i++)
        if (are_equal(sorted, info->class_count, i - 1, i))
            status = tg_json_fail(names, "classes %zu and %zu have the same name \"%.100s\"",
                                  sorted[i - 1].index, sorted[i].index, sorted[i].name);
    free(sorted);
    return status;
}

tg_status tg_config_read_names(const tg_json_node *names, bool number_equal, tg_model_info *out)
{
    TG_TRY(read_names(names, out));
    if (number_equal)
        TG_TRY(number_equal_names(out));
    return check_names(names, out);
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
