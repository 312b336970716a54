/* Which checkpoint --resume means. */
#include "train/checkpoint.h"

#include "ckpt/state.h"
#include "ckpt/state_list.h"
#include "os/file.h"

#include <stdlib.h>
#include <string.h>

/* The folder of checkpoints that `path` is or holds, from malloc; NULL when it is neither. */
static tg_status find_checkpoints(const char *path, char **out)
{
    tg_state_list list;
    char *inner = tg_path_join(path, "checkpoints"), *own = strdup(path);
    tg_status status = inner && own ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    *out = NULL;
    if (status == TG_OK && tg_file_exists(inner)) {
        *out = inner;
        inner = NULL;
    } else if (status == TG_OK) {
        status = tg_state_list_read(path, &list);
        if (status == TG_OK && list.count) {
            *out = own;
            own = NULL;
        }
        if (status == TG_OK)
            tg_state_list_done(&list);
        else if (status != TG_ERROR_MACHINE)
            status = TG_OK; /* no folder: what reads it as a checkpoint says so */
    }
    free(inner);
    free(own);
    return status;
}

/* A path that is no folder of checkpoints: a checkpoint, or nothing. */
static tg_status take_path(const char *path, char **out)
{
    char *copy = strdup(path);
    tg_status status =
        copy ? tg_state_check(copy) : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status < 0)
        free(copy);
    else
        *out = copy;
    return status;
}

tg_status tg_checkpoint_find(const tg_checkpoint_options *options, const char *which, char **out)
{
    char *folder;
    if (strcmp(which, "auto") == 0)
        return tg_state_find_last(options->folder, out);
    if (!tg_file_exists(which))
        return tg_fail(TG_ERROR_INPUT,
                       "--resume %s: there is no such folder; give a run directory, a checkpoint "
                       "(RUN/checkpoints/step-N), or auto",
                       which);
    TG_TRY(find_checkpoints(which, &folder));
    if (!folder)
        return take_path(which, out);
    tg_status status = tg_state_find_last(folder, out);
    if (status == TG_END)
        status = tg_fail(TG_ERROR_INPUT, "--resume %s: there is no whole checkpoint in %s", which,
                         folder);
    free(folder);
    return status;
}
