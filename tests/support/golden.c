#include "support/golden.h"

#include "support/check.h"

#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tg_golden_path(const char *name)
{
    static _Thread_local char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/model/%s", tg_test_source_dir(), name);
    return path;
}

void tg_golden_index(tg_json *out)
{
    char *bytes;
    size_t length;
    const char *path = tg_golden_path("index.json");
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    assert_ok(tg_json_parse(bytes, length, path, out));
    free(bytes);
}

void tg_golden_open(const char *file, tg_safetensors *out)
{
    assert_ok(tg_safetensors_open(tg_golden_path(file), out));
}

const char *tg_golden_string(const tg_json_node *object, const char *key)
{
    const char *value = NULL;
    assert_ok(tg_json_get_string(object, key, TG_REQUIRED, &value));
    return value;
}

double tg_golden_number(const tg_json_node *object, const char *key)
{
    double value = 0;
    assert_ok(tg_json_get_double(object, key, TG_REQUIRED, &value));
    return value;
}

static tg_family family_of(const char *name)
{
    if (strcmp(name, "deit") == 0)
        return TG_FAMILY_DEIT;
    return strcmp(name, "dinov2") == 0 ? TG_FAMILY_DINOV2 : TG_FAMILY_VIT;
}

static void read_sizes(const tg_json_node *object, tg_vit_config *c)
{
    const struct {
        const char *key;
        size_t *out;
    } sizes[] = {{"img_h", &c->img_h},           {"img_w", &c->img_w},
                 {"patch", &c->patch},           {"embed_dim", &c->embed_dim},
                 {"depth", &c->depth},           {"num_heads", &c->num_heads},
                 {"mlp_hidden", &c->mlp_hidden}, {"num_classes", &c->num_classes},
                 {"reg_tokens", &c->reg_tokens}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_ok(tg_json_get_size(object, sizes[i].key, TG_REQUIRED, sizes[i].out));
}

static void read_flags(const tg_json_node *object, tg_vit_config *c)
{
    const struct {
        const char *key;
        bool *out;
    } flags[] = {{"class_token", &c->class_token},
                 {"dist_token", &c->dist_token},
                 {"no_embed_class", &c->no_embed_class},
                 {"layer_scale", &c->layer_scale},
                 {"qkv_bias", &c->qkv_bias}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        assert_ok(tg_json_get_bool(object, flags[i].key, TG_REQUIRED, flags[i].out));
}

void tg_golden_config(const tg_json_node *object, tg_vit_config *out)
{
    tg_vit_config c = {.architecture = "golden", .layer_scale_init = 1};
    read_sizes(object, &c);
    read_flags(object, &c);
    c.family = family_of(tg_golden_string(object, "family"));
    c.pool = strcmp(tg_golden_string(object, "pool"), "avg") == 0 ? TG_POOL_AVG : TG_POOL_TOKEN;
    c.gelu = strcmp(tg_golden_string(object, "gelu"), "tanh") == 0 ? TG_GELU_TANH : TG_GELU_EXACT;
    c.norm_eps = (float)tg_golden_number(object, "norm_eps");
    *out = c;
}

bool tg_golden_has(const tg_safetensors *file, const char *name)
{
    return tg_safetensors_find(file, name) != NULL;
}

static void read_tensor(const tg_safetensors *file, const char *name, size_t count, float *out)
{
    const tg_safetensors_entry *entry = tg_safetensors_find(file, name);
    if (!entry)
        fail_msg("%s has no tensor %s", file->path, name);
    else if (entry->count != count)
        fail_msg("%s: %s has %zu elements, not %zu", file->path, name, entry->count, count);
    assert_ok(tg_safetensors_read_f32(file, entry, out));
}

float *tg_golden_tensor(const tg_safetensors *file, const char *name, size_t count, tg_arena *arena)
{
    float *out = tg_arena_alloc(arena, count * sizeof *out);
    assert_non_null(out);
    read_tensor(file, name, count, out);
    return out;
}

float *tg_golden_params(const tg_safetensors *file, const char *prefix, const tg_param_table *table,
                        tg_arena *arena)
{
    float *out = tg_arena_alloc(arena, table->elements * sizeof *out);
    assert_non_null(out);
    memset(out, 0, table->elements * sizeof *out);
    for (size_t i = 0; i < table->count; i++) {
        const tg_param *p = &table->items[i];
        char name[2 * TG_PARAM_NAME_BYTES];
        snprintf(name, sizeof name, "%s/%s", prefix, p->name);
        read_tensor(file, name, p->count, out + p->offset);
    }
    return out;
}
