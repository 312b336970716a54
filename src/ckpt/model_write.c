#include "ckpt/model_folder.h"

#include "ckpt/config_json.h"
#include "ckpt/naming.h"
#include "ckpt/safetensors.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The tensors of a file in the making. Most point into the parameters; the few that Hugging Face
 * shapes differently are built in buffers of their own. */
typedef struct list {
    tg_safetensors_tensor *items;
    size_t count;
    float *made[8];
    size_t made_count;
} list;

static const tg_safetensors_note notes[] = {{"format", "pt"}};

static tg_status list_new(size_t capacity, list *out)
{
    *out = (list){.items = calloc(capacity, sizeof *out->items)};
    return out->items ? TG_OK
                      : tg_fail(TG_ERROR_MACHINE, "out of memory for %zu tensors", capacity);
}

static void list_done(list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)l->items[i].name);
    for (size_t i = 0; i < l->made_count; i++)
        free(l->made[i]);
    free(l->items);
}

static tg_status list_add(list *l, const char *prefix, const char *name, int ndim,
                          const size_t *shape, const float *data)
{
    char *full;
    if (asprintf(&full, "%s%s", prefix, name) < 0)
        return tg_fail(TG_ERROR_MACHINE, "out of memory");
    tg_safetensors_tensor *tensor = &l->items[l->count++];
    *tensor = (tg_safetensors_tensor){.name = full, .dtype = TG_F32, .ndim = ndim, .data = data};
    memcpy(tensor->shape, shape, (size_t)ndim * sizeof *shape);
    return TG_OK;
}

/* A zeroed buffer that lives as long as the list; NULL when memory is short. */
static float *list_make(list *l, size_t count)
{
    float *values = calloc(count, sizeof *values);
    if (values)
        l->made[l->made_count++] = values;
    return values;
}

static tg_status out_of_memory(const char *name)
{
    return tg_fail(TG_ERROR_MACHINE, "out of memory writing %s", name);
}

static tg_status list_timm(const tg_param_table *table, const float *params, list *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const tg_param *p = &table->items[i];
        TG_TRY(list_add(out, "", p->name, p->ndim, p->shape, params + p->offset));
    }
    return TG_OK;
}

/* Their table has rows for the tokens that they give a position; ours may lack them (zeros) or have
 * some for registers, which are added to the registers instead. */
static tg_status hf_positions(const tg_vit_config *c, tg_hf_kind kind, const tg_param *param,
                              const float *params, size_t shape[3], const float **out_data,
                              list *out)
{
    size_t C = c->embed_dim, N = tg_vit_patches(c), theirs = tg_naming_hf_prefix_rows(kind);
    size_t ours = c->no_embed_class ? 0 : tg_vit_prefix_tokens(c);
    const float *table = params + param->offset;
    shape[0] = 1;
    shape[1] = theirs + N;
    shape[2] = C;
    if (ours == theirs) {
        *out_data = table;
        return TG_OK;
    }
    size_t kept = ours < theirs ? ours : theirs;
    float *made = list_make(out, shape[1] * C);
    if (!made)
        return out_of_memory(param->name);
    memcpy(made, table, kept * C * sizeof *made);
    memcpy(made + theirs * C, table + ours * C, N * C * sizeof *made);
    *out_data = made;
    return TG_OK;
}

static tg_status hf_registers(const tg_vit_config *c, tg_hf_kind kind, const tg_param_table *table,
                              const float *params, const float **out_data, list *out)
{
    const tg_param *reg = tg_param_find(table, "reg_token");
    const tg_param *pos = tg_param_find(table, "pos_embed");
    *out_data = params + reg->offset;
    if (c->no_embed_class || kind != TG_HF_DINOV2_REG)
        return TG_OK;
    float *sum = list_make(out, reg->count);
    if (!sum)
        return out_of_memory(reg->name);
    for (size_t i = 0; i < reg->count; i++) /* rows: class, registers, patches */
        sum[i] = params[reg->offset + i] + params[pos->offset + c->embed_dim + i];
    *out_data = sum;
    return TG_OK;
}

/* [K,2C] with zeros where the mean of the patches would be read. */
static tg_status hf_wide_head(const tg_param *param, const float *params, size_t shape[2],
                              const float **out_data, list *out)
{
    size_t K = param->shape[0], C = param->shape[1];
    float *wide = list_make(out, 2 * K * C);
    if (!wide)
        return out_of_memory(param->name);
    for (size_t k = 0; k < K; k++)
        memcpy(wide + 2 * k * C, params + param->offset + k * C, C * sizeof *wide);
    shape[1] = 2 * C;
    *out_data = wide;
    return TG_OK;
}

static tg_status hf_entry(const tg_vit_config *c, tg_hf_kind kind, const tg_param_table *table,
                          const tg_param *param, const float *params, const char *prefix, list *out)
{
    char names[TG_NAMING_PIECES][TG_NAMING_BYTES];
    size_t shape[TG_PARAM_MAX_DIMS], pieces = tg_naming_hf(kind, c, param->name, names);
    const float *data = params + param->offset;
    memcpy(shape, param->shape, sizeof shape);
    if (strcmp(param->name, "pos_embed") == 0)
        TG_TRY(hf_positions(c, kind, param, params, shape, &data, out));
    else if (strcmp(param->name, "reg_token") == 0)
        TG_TRY(hf_registers(c, kind, table, params, &data, out));
    else if (strcmp(param->name, "head.weight") == 0 && c->layer_scale)
        TG_TRY(hf_wide_head(param, params, shape, &data, out));
    if (pieces == 0)
        return tg_fail(TG_ERROR_USAGE, "%s has no name in Hugging Face's scheme", param->name);
    shape[0] /= pieces;
    for (size_t i = 0; i < pieces; i++)
        TG_TRY(list_add(out, tg_naming_is_head(param->name) ? "" : prefix, names[i], param->ndim,
                        shape, data + i * (param->count / pieces)));
    return TG_OK;
}

static tg_status list_hf(const tg_vit_config *c, const tg_param_table *table, const float *params,
                         list *out)
{
    tg_hf_kind kind = tg_naming_hf_kind(c);
    char prefix[64] = "";
    if (kind == TG_HF_NONE)
        return tg_fail(TG_ERROR_USAGE, "model %s cannot be written in Hugging Face's naming",
                       c->architecture);
    if (c->num_classes)
        snprintf(prefix, sizeof prefix, "%s.", tg_naming_hf_type(kind));
    for (size_t i = 0; i < table->count; i++)
        TG_TRY(hf_entry(c, kind, table, &table->items[i], params, prefix, out));
    if (!c->layer_scale)
        return TG_OK;
    float *mask = list_make(out, c->embed_dim); /* read in pretraining only, but looked for */
    if (!mask)
        return out_of_memory("mask_token");
    return list_add(out, prefix, "embeddings.mask_token", 2, (size_t[]){1, c->embed_dim}, mask);
}

static tg_status write_weights(const char *folder, const tg_vit_config *config,
                               const tg_param_table *table, const float *params, tg_naming naming)
{
    list tensors = {0};
    char *path = tg_path_join(folder, "model.safetensors");
    tg_status status = TG_OK;
    if (!path)
        status = tg_fail(TG_ERROR_MACHINE, "out of memory");
    if (status == TG_OK)
        status = list_new(TG_NAMING_PIECES * table->count + 1, &tensors);
    if (status == TG_OK)
        status = naming == TG_NAMING_HF ? list_hf(config, table, params, &tensors)
                                        : list_timm(table, params, &tensors);
    if (status == TG_OK)
        status = tg_safetensors_write(path, tensors.items, tensors.count, notes, 1);
    list_done(&tensors);
    free(path);
    return status;
}

static const char *const OWN_FILES[] = {"config.json", "model.safetensors",
                                        "preprocessor_config.json"};

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof OWN_FILES / sizeof *OWN_FILES; i++)
        if (strcmp(name, OWN_FILES[i]) == 0)
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A folder cannot be in two places at once, so there would be a moment without it. */
static tg_status check_other(const char *path, int fd, const char *name)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return TG_OK;
    return tg_fail(
        TG_ERROR_USAGE,
        "%s is to be replaced by a new model, and holds a folder that is no part of one: "
        "%s; move it away",
        path, name);
}

/* What else lies in the folder that a new one is to replace: checked, and with to_fd >= 0 linked there,
 * so that it is in one of the two at every moment. */
static tg_status keep_others(const char *path, int to_fd)
{
    struct dirent *entry;
    tg_status status = TG_OK;
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? TG_OK : tg_fail_errno("list", path);
    while (status == TG_OK && (errno = 0, entry = readdir(dir)) != NULL) {
        if (is_own(entry->d_name))
            continue;
        status = check_other(path, dirfd(dir), entry->d_name);
        if (status == TG_OK && to_fd >= 0 &&
            linkat(dirfd(dir), entry->d_name, to_fd, entry->d_name, 0) < 0)
            status = tg_fail(TG_ERROR_MACHINE,
                             "cannot replace %s and keep %s in it: %s; move that file away", path,
                             entry->d_name, strerrordesc_np(errno));
    }
    if (status == TG_OK && errno)
        status = tg_fail_errno("list", path);
    closedir(dir);
    return status;
}

tg_status tg_model_check_replace(const char *path)
{
    return keep_others(path, -1);
}

tg_status tg_model_write(const char *path, const tg_model_info *info, const tg_param_table *table,
                         const float *params, tg_naming naming)
{
    tg_new_folder folder;
    TG_TRY(tg_new_folder_open(path, &folder));
    tg_status status;
    TG_TRY_GOTO(write_weights(folder.temp_path, &info->config, table, params, naming), discard);
    TG_TRY_GOTO(tg_config_json_write(folder.temp_path, info, naming), discard);
    TG_TRY_GOTO(keep_others(folder.path, folder.fd), discard);
    return tg_new_folder_commit(&folder);
discard:
    tg_new_folder_discard(&folder);
    return status;
}
