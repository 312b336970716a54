#include "train/checkpoint.h"

#include "base/log.h"
#include "ckpt/state.h"

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

tg_status tg_checkpoint_load(const tg_checkpoint_options *options, const char *which,
                             const tg_train_tensors *tensors, tg_train_state *out_state)
{
    tg_train_state state = {0};
    tg_state_field fields[FIELDS];
    tg_state_buffer buffers[BUFFERS];
    const tg_state whole = {.buffers = buffers,
                            .buffer_count = list_buffers(tensors, buffers),
                            .fields = fields,
                            .field_count = list_fields(&state, fields)};
    char *found = NULL;
    if (strcmp(which, "auto") == 0) {
        tg_status status = tg_state_find_last(options->folder, &found);
        if (status != TG_OK)
            return status;
        which = found;
    }
    tg_status status = tg_state_load(which, &whole, NULL);
    if (status == TG_OK) {
        tg_log_info("loaded %s", which);
        *out_state = state;
    }
    free(found);
    return status;
}
