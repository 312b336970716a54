#include "ckpt/state.h"

#include "base/log.h"
#include "ckpt/manifest.h"
#include "ckpt/state_list.h"
#include "ckpt/state_record.h"
#include "ckpt/state_tensors.h"
#include "os/file.h"
#include "os/folder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool tg_state_is_better(double score, double best)
{
    return !isnan(score) && (isnan(best) || score > best);
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

tg_status tg_state_check(const char *path)
{
    return tg_manifest_check(path);
}

tg_status tg_state_await(const char *path)
{
    static const char *const NAMES[] = {"manifest.json", "state.json", "state.safetensors",
                                        "model/config.json"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char *file = tg_path_join(path, NAMES[i]);
        bool there = file && tg_file_await(file, TG_FILE_PATIENCE_S);
        int error = errno;
        free(file);
        if (!file)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
        if (!there)
            return tg_fail(TG_ERROR_INPUT, "%s/%s: the first rank sees it, this rank does not: %s",
                           path, NAMES[i], strerror(error));
    }
    return TG_OK;
}

tg_status tg_state_load(const char *path, const tg_state *state, int64_t *out_step,
                        double *out_score)
{
    int64_t step;
    double score;
    TG_TRY(tg_state_record_read(path, state, &step, &score));
    TG_TRY(tg_state_tensors_read(path, state));
    if (out_step)
        *out_step = step;
    if (out_score)
        *out_score = score;
    return TG_OK;
}
