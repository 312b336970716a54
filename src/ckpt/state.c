#include "ckpt/state.h"

#include "base/log.h"
#include "ckpt/manifest.h"
#include "ckpt/state_list.h"
#include "ckpt/state_record.h"
#include "ckpt/state_tensors.h"
#include "os/file.h"
#include "os/folder.h"

#include <math.h>
#include <stdlib.h>

bool tg_state_is_better(double score, double best)
{
    return !isnan(score) && (isnan(best) || score > best);
}

static tg_status write_model(const char *folder, const tg_state_model *model)
{
    char *path = tg_path_join(folder, "model");
    tg_status status =
        path ? tg_model_write(path, model->info, model->table, model->params, model->naming)
             : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    return status;
}

static tg_status fill(const char *folder, const tg_state_save_options *options,
                      const tg_state_model *model, const tg_state *state)
{
    TG_TRY(write_model(folder, model));
    TG_TRY(tg_state_tensors_write(folder, state));
    TG_TRY(tg_state_record_write(folder, options->step, options->score, state));
    return tg_manifest_write(folder);
}

static tg_status write_step(const tg_state_save_options *options, const tg_state_model *model,
                            const tg_state *state)
{
    char *path = tg_state_step_path(options->folder, options->step);
    tg_new_folder aside;
    tg_status status = path ? tg_new_folder_open(path, &aside)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    TG_TRY_GOTO(status, free_path);
    status = fill(aside.temp_path, options, model, state);
    if (status == TG_OK)
        status = tg_new_folder_commit(&aside);
    else
        tg_new_folder_discard(&aside);
free_path:
    free(path);
    return status;
}

tg_status tg_state_save(const tg_state_save_options *options, const tg_state_model *model,
                        const tg_state *state)
{
    TG_TRY(tg_folder_make(options->folder));
    TG_TRY(tg_temp_clean(options->folder));
    TG_TRY(write_step(options, model, state));
    TG_TRY(tg_state_link(options->folder, "last", options->step));
    if (options->best)
        TG_TRY(tg_state_link(options->folder, "best", options->step));
    if (tg_state_rotate(options->folder, options->keep) < 0) /* this one is safe all the same */
        tg_log_warning("older checkpoints were not removed: %s", tg_error_message());
    return TG_OK;
}

/* TG_OK: whole; TG_END: not, as the log now says; an error: the machine's, nobody knows. */
static tg_status check_step(const char *path)
{
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_manifest_check(path);
    if (status == TG_OK || status == TG_ERROR_MACHINE)
        return status;
    tg_log_warning("%s is not a whole checkpoint and is passed over: %s", path, tg_error_message());
    return TG_END;
}

tg_status tg_state_find_last(const char *folder, char **out_path)
{
    tg_state_list list;
    TG_TRY(tg_temp_clean(folder));
    TG_TRY(tg_state_list_read(folder, &list));
    const size_t count = list.count;
    tg_status found = TG_END;
    for (size_t i = 0; i < count && found == TG_END; i++) {
        char *path = tg_state_step_path(folder, list.steps[i]);
        found = check_step(path);
        if (found == TG_OK)
            *out_path = path;
        else
            free(path);
    }
    tg_state_list_done(&list);
    if (found == TG_END && count > 0)
        return tg_fail(TG_ERROR_INPUT,
                       "none of the %zu checkpoints in %s is whole, the log says why; restore one, "
                       "or move the folder away to start afresh",
                       count, folder);
    return found;
}

tg_status tg_state_load(const char *path, const tg_state *state, int64_t *out_step)
{
    int64_t step;
    double score;
    TG_TRY(tg_manifest_check(path));
    TG_TRY(tg_state_record_read(path, state, &step, &score));
    TG_TRY(tg_state_tensors_read(path, state));
    if (out_step)
        *out_step = step;
    return TG_OK;
}
