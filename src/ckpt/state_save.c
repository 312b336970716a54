#include "ckpt/state_save.h"

#include "base/log.h"
#include "ckpt/config_json.h"
#include "ckpt/manifest.h"
#include "ckpt/state_list.h"
#include "ckpt/state_record.h"
#include "os/file.h"

#include <stdlib.h>

#define MODEL "model"
#define WEIGHTS MODEL "/model.safetensors"

static const tg_safetensors_note WEIGHTS_NOTES[] = {{"format", "pt"}};

static tg_status make_model_folder(const char *aside)
{
    char *path = tg_path_join(aside, MODEL);
    tg_status status =
        path ? tg_folder_make(path) : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    return status;
}

static tg_status open_file(const char *aside, const char *name, tg_state_tensors_plan plan,
                           bool first, tg_state_tensors *out)
{
    char *path = tg_path_join(aside, name);
    plan.path = path;
    tg_status status = path ? tg_state_tensors_open(&plan, first, out)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    return status;
}

static tg_status open_files(tg_state_save *save, const char *aside, bool first)
{
    const tg_state_tensors_plan tensors = {.buffers = save->state->buffers,
                                           .count = save->state->buffer_count};
    const tg_state_tensors_plan weights = {
        .buffers = &save->weights_buffer, .count = 1, .notes = WEIGHTS_NOTES, .note_count = 1};
    TG_TRY(open_file(aside, TG_STATE_TENSORS_FILE, tensors, first, &save->tensors));
    return open_file(aside, WEIGHTS, weights, first, &save->weights);
}

static void init(const tg_state_save_options *options, const tg_state_model *model,
                 const tg_state *state, tg_state_save *out)
{
    *out = (tg_state_save){.options = options,
                           .model = model,
                           .state = state,
                           .weights_buffer = {.name = "", .table = model->table},
                           .aside = {.fd = -1}};
}

static tg_status begin(tg_state_save *save)
{
    const char *folder = save->options->folder;
    TG_TRY(tg_folder_make(folder));
    TG_TRY(tg_temp_clean(folder));
    char *path = tg_state_step_path(folder, save->options->step);
    tg_status status = path ? tg_new_folder_open(path, &save->aside)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    TG_TRY(status);
    TG_TRY(make_model_folder(save->aside.temp_path));
    return open_files(save, save->aside.temp_path, true);
}

/* `out` is pointed into (weights_buffer), so it is filled in its place. */
tg_status tg_state_save_begin(const tg_state_save_options *options, const tg_state_model *model,
                              const tg_state *state, tg_state_save *out)
{
    init(options, model, state, out);
    tg_status status = begin(out);
    if (status < 0)
        tg_state_save_discard(out);
    return status;
}

tg_status tg_state_save_join(const tg_state_save_options *options, const tg_state_model *model,
                             const tg_state *state, const char *aside, tg_state_save *out)
{
    init(options, model, state, out);
    tg_status status = open_files(out, aside, false);
    if (status < 0)
        tg_state_save_discard(out);
    return status;
}

tg_status tg_state_save_write(tg_state_save *save, size_t buffer, const tg_state_piece *piece)
{
    if (buffer == save->model->buffer)
        TG_TRY(tg_state_tensors_write(&save->weights, 0, piece));
    return tg_state_tensors_write(&save->tensors, buffer, piece);
}

tg_status tg_state_save_sync(tg_state_save *save, tg_state_sums *out)
{
    TG_TRY(tg_pieces_commit(&save->weights.file));
    TG_TRY(tg_pieces_commit(&save->tensors.file));
    *out = (tg_state_sums){.state = save->tensors.file.sum, .model = save->weights.file.sum};
    return TG_OK;
}

void tg_state_sums_add(tg_state_sums *sums, const tg_state_sums *other)
{
    tg_pieces_add(&sums->state, &other->state);
    tg_pieces_add(&sums->model, &other->model);
}

static tg_status write_config(const tg_state_save *save, const char *aside)
{
    char *path = tg_path_join(aside, MODEL);
    tg_status status = path ? tg_config_json_write(path, save->model->info, TG_NAMING_TIMM)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(path);
    return status;
}

/* What is left to write once all pieces are there. */
static tg_status complete(tg_state_save *save, const tg_state_sums *all)
{
    const tg_state_save_options *o = save->options;
    const char *aside = save->aside.temp_path;
    const tg_manifest_file known[] = {
        {WEIGHTS, all->model.bytes, all->model.crc},
        {TG_STATE_TENSORS_FILE, all->state.bytes, all->state.crc},
    };
    TG_TRY(tg_pieces_check(&save->weights.file, save->aside.path, &all->model));
    TG_TRY(tg_pieces_check(&save->tensors.file, save->aside.path, &all->state));
    TG_TRY(write_config(save, aside));
    TG_TRY(tg_state_record_write(aside, o->step, o->score, save->state));
    return tg_manifest_write(aside, known, sizeof known / sizeof *known);
}

tg_status tg_state_save_finish(tg_state_save *save, const tg_state_sums *all)
{
    const tg_state_save_options *o = save->options;
    tg_status status;
    TG_TRY_GOTO(complete(save, all), discard);
    TG_TRY(tg_new_folder_commit(&save->aside));
    TG_TRY(tg_state_link(o->folder, "last", o->step));
    if (o->best)
        TG_TRY(tg_state_link(o->folder, "best", o->step));
    if (tg_state_rotate(o->folder, o->keep) < 0) /* this one is safe all the same */
        tg_log_warning("older checkpoints were not removed: %s", tg_error_message());
    return TG_OK;
discard:
    tg_state_save_discard(save);
    return status;
}

void tg_state_save_discard(tg_state_save *save)
{
    tg_pieces_discard(&save->tensors.file);
    tg_pieces_discard(&save->weights.file);
    tg_new_folder_discard(&save->aside);
}
