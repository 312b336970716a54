#include "train/checkpoint.h"

#include "base/log.h"
#include "ckpt/state.h"
#include "ckpt/state_list.h"
#include "ckpt/state_record.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 16, BUFFERS = 4 };

/* The record as ckpt/state.h stores it: the same list for saving and loading. */
static size_t list_fields(tg_train_state *s, tg_state_field out[FIELDS])
{
    const tg_state_field fields[FIELDS] = {
        {"updates", TG_STATE_I64, &s->updates, 0},
        {"applied", TG_STATE_I64, &s->applied, 0},
        {"epoch", TG_STATE_I64, &s->epoch, 0},
        {"position", TG_STATE_U64, &s->position, 0},
        {"best_score", TG_STATE_DOUBLE, &s->best_score, 0},
        {"best_epoch", TG_STATE_I64, &s->best_epoch, 0},
        {"best_top5", TG_STATE_DOUBLE, &s->best_top5, 0},
        {"best_loss", TG_STATE_DOUBLE, &s->best_loss, 0},
        {"best_images", TG_STATE_U64, &s->best_images, 0},
        {"skipped", TG_STATE_U64, &s->skipped, 0},
        {"seed", TG_STATE_I64, &s->seed, 0},
        {"batch_size", TG_STATE_I64, &s->batch_size, 0},
        {"accumulation", TG_STATE_I64, &s->accumulation, 0},
        {"epochs", TG_STATE_I64, &s->epochs, 0},
        {"samples", TG_STATE_I64, &s->samples, 0},
        {"classes", TG_STATE_U64, &s->classes, 0},
    };
    memcpy(out, fields, sizeof fields);
    return FIELDS;
}

static size_t list_buffers(const tg_train_tensors *t, tg_state_buffer out[BUFFERS])
{
    const tg_state_buffer buffers[BUFFERS] = {{"params", t->table, t->params},
                                              {"exp_avg", t->table, t->m},
                                              {"exp_avg_sq", t->table, t->v},
                                              {"average", t->table, t->average}};
    memcpy(out, buffers, sizeof buffers);
    return t->average ? BUFFERS : BUFFERS - 1;
}

tg_status tg_checkpoint_save(const tg_checkpoint_options *options, const tg_train_state *state,
                             const tg_train_tensors *tensors, double score, bool best)
{
    tg_train_state copy = *state;
    tg_state_field fields[FIELDS];
    tg_state_buffer buffers[BUFFERS];
    const tg_state whole = {.buffers = buffers,
                            .buffer_count = list_buffers(tensors, buffers),
                            .fields = fields,
                            .field_count = list_fields(&copy, fields)};
    const tg_state_model model = {.info = tensors->info,
                                  .table = tensors->model_table,
                                  .params = tensors->average ? tensors->average : tensors->params,
                                  .naming = TG_NAMING_TIMM};
    const tg_state_save_options saving = {.folder = options->folder,
                                          .step = state->updates,
                                          .score = score,
                                          .best = best,
                                          .keep = (size_t)options->keep};
    return tg_state_save(&saving, &model, &whole);
}

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

/* The checkpoint that `which` means, from malloc. */
static tg_status find_checkpoint(const tg_checkpoint_options *options, const char *which,
                                 char **out)
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
    if (!folder) {
        *out = strdup(which);
        return *out ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    }
    tg_status status = tg_state_find_last(folder, out);
    if (status == TG_END)
        status = tg_fail(TG_ERROR_INPUT, "--resume %s: there is no whole checkpoint in %s", which,
                         folder);
    free(folder);
    return status;
}

/* What the weights' names and shapes do not tell, and what is saved with the model. */
static tg_status check_model(const char *checkpoint, const tg_model_info *now)
{
    tg_model_info then;
    char *folder = tg_path_join(checkpoint, "model");
    if (!folder)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_model_read_info(folder, &then);
    free(folder);
    TG_TRY(status);
    const tg_vit_config *a = &then.config, *b = &now->config;
    const tg_preprocess *p = &then.preprocess, *q = &now->preprocess;
    const struct {
        const char *what;
        double then, now;
    } same[] = {{"--num-heads", (double)a->num_heads, (double)b->num_heads},
                {"--patch-size", (double)a->patch, (double)b->patch},
                {"--img-size", (double)a->img_h, (double)b->img_h},
                {"--global-pool (token 0, avg 1)", (double)a->pool, (double)b->pool},
                {"--crop-pct", p->crop_pct, q->crop_pct},
                {"--interpolation (bicubic 0, bilinear 1)", p->interpolation, q->interpolation},
                {"--mean, red", (double)p->mean[0], (double)q->mean[0]},
                {"--mean, green", (double)p->mean[1], (double)q->mean[1]},
                {"--mean, blue", (double)p->mean[2], (double)q->mean[2]},
                {"--std, red", (double)p->std[0], (double)q->std[0]},
                {"--std, green", (double)p->std[1], (double)q->std[1]},
                {"--std, blue", (double)p->std[2], (double)q->std[2]}};
    for (size_t i = 0; i < sizeof same / sizeof *same && status == TG_OK; i++)
        if (fabs(same[i].then - same[i].now) > 1e-6 * fabs(same[i].then))
            status =
                tg_fail(TG_ERROR_USAGE,
                        "resume: %s was %g and is now %g, which makes another model of the same "
                        "weights; start a new run with --initial-checkpoint",
                        same[i].what, same[i].then, same[i].now);
    tg_model_info_done(&then);
    return status;
}

tg_status tg_checkpoint_load(const tg_checkpoint_options *options, const char *which,
                             const tg_train_tensors *tensors, tg_train_state *out_state,
                             double *out_score)
{
    tg_train_state state = {0};
    tg_state_field fields[FIELDS];
    tg_state_buffer buffers[BUFFERS];
    const tg_state whole = {.buffers = buffers,
                            .buffer_count = list_buffers(tensors, buffers),
                            .fields = fields,
                            .field_count = list_fields(&state, fields)};
    char *found = NULL;
    int64_t step;
    double score;
    tg_status status = find_checkpoint(options, which, &found);
    if (status != TG_OK)
        return status;
    TG_TRY_GOTO(tg_state_load(found, &whole, NULL), free_path);
    TG_TRY_GOTO(check_model(found, tensors->info), free_path);
    TG_TRY_GOTO(tg_state_record_read(found, &(tg_state){0}, &step, &score), free_path);
    tg_log_info("loaded %s", found);
    *out_state = state;
    *out_score = score;
free_path:
    free(found);
    return status;
}
