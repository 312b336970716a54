#include "ckpt/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *canonical, *original;
} named;

static int by_canonical(const void *a, const void *b)
{
    return strcmp(((const named *)a)->canonical, ((const named *)b)->canonical);
}

/* Two tensors that become the same one, like x and module.x. */
static tg_status check_duplicates(const tg_weights *weights)
{
    size_t n = weights->file.count;
    named *sorted = calloc(n + 1, sizeof *sorted);
    if (!sorted)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu names", n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (named){weights->names[i], weights->file.items[i].name};
    qsort(sorted, n, sizeof *sorted, by_canonical);
    tg_status status = TG_OK;
    for (size_t i = 1; i < n && status == TG_OK; i++)
        if (strcmp(sorted[i - 1].canonical, sorted[i].canonical) == 0)
            status = tg_fail(TG_ERROR_INPUT, "%s: tensors %.128s and %.128s are the same one",
                             weights->file.path, sorted[i - 1].original, sorted[i].original);
    free(sorted);
    return status;
}

static tg_status make_names(tg_weights *weights)
{
    size_t n = weights->file.count;
    weights->names = calloc(n + 1, sizeof *weights->names);
    weights->used = calloc(n + 1, sizeof *weights->used);
    if (!weights->names || !weights->used)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu names", n);
    for (size_t i = 0; i < n; i++) {
        weights->names[i] = tg_naming_canonical(weights->file.items[i].name, weights->naming);
        if (!weights->names[i])
            return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu names", n);
        if (weights->naming == TG_NAMING_TIMM && strcmp(weights->names[i], "mask_token") == 0 &&
            weights->file.items[i].ndim == 2) /* MAE's has 3 */
            weights->dinov2_code = true;
    }
    return check_duplicates(weights);
}

tg_status tg_weights_open(const char *path, const tg_model_info *info, tg_weights *out)
{
    tg_weights weights = {.naming = info->naming,
                          .kind = info->naming == TG_NAMING_HF ? tg_naming_hf_kind(&info->config)
                                                               : TG_HF_NONE};
    TG_TRY(tg_safetensors_open(path, &weights.file));
    tg_status status;
    TG_TRY_GOTO(make_names(&weights), close_weights);
    *out = weights;
    return TG_OK;
close_weights:
    tg_weights_close(&weights);
    return status;
}

void tg_weights_close(tg_weights *weights)
{
    if (!weights)
        return;
    for (size_t i = 0; weights->names && i < weights->file.count; i++)
        free(weights->names[i]);
    free(weights->names);
    free(weights->used);
    tg_safetensors_close(&weights->file);
    *weights = (tg_weights){.file.fd = -1};
}

static const tg_safetensors_entry *find_one(tg_weights *weights, const char *name)
{
    for (size_t i = 0; i < weights->file.count; i++)
        if (strcmp(weights->names[i], name) == 0) {
            weights->used[i] = true;
            return &weights->file.items[i];
        }
    return NULL;
}

size_t tg_weights_find(tg_weights *weights, const tg_vit_config *config, const char *param,
                       const tg_safetensors_entry *out[TG_NAMING_PIECES],
                       char out_missing[TG_NAMING_BYTES])
{
    char names[TG_NAMING_PIECES][TG_NAMING_BYTES];
    size_t count = 1;
    snprintf(names[0], sizeof names[0], "%s", param);
    if (weights->naming == TG_NAMING_HF)
        count = tg_naming_hf(weights->kind, config, param, names);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        out[i] = find_one(weights, names[i]);
        if (!out[i] && found == i)
            memcpy(out_missing, names[i], TG_NAMING_BYTES);
        found += out[i] != NULL;
    }
    return found == count ? count : 0;
}

tg_positions_rule tg_weights_position_rule(const tg_weights *weights, const tg_vit_config *config)
{
    if (weights->naming == TG_NAMING_HF)
        return weights->kind == TG_HF_DINOV2_REG ? TG_POSITIONS_ANTIALIAS : TG_POSITIONS_PLAIN;
    if (weights->dinov2_code && config->reg_tokens == 0)
        return TG_POSITIONS_OFFSET;
    return TG_POSITIONS_ANTIALIAS;
}
