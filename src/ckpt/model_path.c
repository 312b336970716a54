#include "ckpt/model_path.h"

#include "os/file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool holds(const char *folder, const char *name)
{
    char *path = tg_path_join(folder, name);
    bool found = path && tg_file_exists(path);
    free(path);
    return found;
}

/* The folder part of a file's path. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static tg_status fill(const char *path, tg_model_path *out)
{
    if (!is_folder(path)) {
        if (!tg_file_exists(path))
            return tg_fail(TG_ERROR_INPUT, "%s: no such model folder or file", path);
        out->folder = folder_of(path);
        out->weights = strdup(path);
        return TG_OK;
    }
    bool inside = !holds(path, "config.json") && holds(path, "model/config.json");
    out->folder = inside ? tg_path_join(path, "model") : strdup(path);
    if (out->folder)
        out->weights = tg_path_join(out->folder, "model.safetensors");
    return TG_OK;
}

tg_status tg_model_path_find(const char *path, tg_model_path *out)
{
    tg_model_path place = {0};
    tg_status status = fill(path, &place);
    if (status == TG_OK && (!place.folder || !place.weights))
        status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory", path);
    if (status == TG_OK && !holds(place.folder, "config.json"))
        status =
            tg_fail(TG_ERROR_INPUT, "%s: no config.json in %s: not a model", path, place.folder);
    if (status < 0)
        tg_model_path_done(&place);
    else
        *out = place;
    return status;
}

tg_status tg_model_path_check_weights(const tg_model_path *place)
{
    static const char *const OTHERS[] = {"model.safetensors.index.json",
                                         "pytorch_model.bin.index.json", "pytorch_model.bin",
                                         "open_clip_model.safetensors", "model.bin"};
    if (tg_file_exists(place->weights))
        return TG_OK;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (holds(place->folder, OTHERS[i]))
            return tg_fail(
                TG_ERROR_INPUT,
                "%s is not there, but %s is: weights in several files or in PyTorch's .bin "
                "are not read; in Python, load the model and save_pretrained(folder, "
                "max_shard_size=\"100GB\"), or safetensors.torch.save_file(state_dict, "
                "\"model.safetensors\")",
                place->weights, OTHERS[i]);
    return tg_fail(TG_ERROR_INPUT,
                   "%s: there is no such file; a model is its config.json and its "
                   "model.safetensors",
                   place->weights);
}

void tg_model_path_done(tg_model_path *place)
{
    if (!place)
        return;
    free(place->folder);
    free(place->weights);
    *place = (tg_model_path){0};
}
