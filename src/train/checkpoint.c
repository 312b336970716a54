#include "train/checkpoint.h"

#include "base/log.h"
#include "ckpt/state.h"
#include "ckpt/state_save.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
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

/* Tensors and record as ckpt/ wants to see them. */
typedef struct view {
    tg_state_field fields[FIELDS];
    tg_state_buffer buffers[BUFFERS];
    float *data[BUFFERS]; /* whole, or packed */
    bool packed[BUFFERS];
    tg_state_piece *pieces; /* of all buffers */
    tg_state state;
} view;

/* mine: of what all ranks have, this one's pieces alone. */
static size_t list_pieces(const tg_train_tensors *t, float *data, bool packed, bool mine,
                          tg_state_piece *out)
{
    if (!packed && !mine) {
        *out = (tg_state_piece){0, t->table->elements, data};
        return 1;
    }
    const tg_buckets *buckets = &t->ranks->buckets;
    for (size_t i = 0; i < buckets->count; i++) {
        const tg_bucket *b = &buckets->items[i];
        out[i] = (tg_state_piece){b->own_offset, b->own_count,
                                  data + (packed ? b->shard_offset : b->own_offset)};
    }
    return buckets->count;
}

/* Ended by view_close, also after an error. */
static tg_status view_open(const tg_train_tensors *t, tg_train_state *record, bool mine, view *out)
{
    static const char *const NAMES[BUFFERS] = {"params", "exp_avg", "exp_avg_sq", "average"};
    float *const data[BUFFERS] = {t->params, t->m, t->v, t->average};
    const size_t each = t->ranks ? t->ranks->buckets.count : 1;
    const size_t count = t->average ? BUFFERS : BUFFERS - 1;
    *out = (view){.pieces = calloc(BUFFERS * each, sizeof *out->pieces)};
    out->state = (tg_state){.buffers = out->buffers,
                            .buffer_count = count,
                            .fields = out->fields,
                            .field_count = list_fields(record, out->fields)};
    if (!out->pieces)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu pieces", BUFFERS * each);
    for (size_t b = 0; b < count; b++) {
        tg_state_piece *pieces = out->pieces + b * each;
        out->data[b] = data[b];
        out->packed[b] = b > 0 && t->ranks && t->ranks->options.shard;
        out->buffers[b] = (tg_state_buffer){
            .name = NAMES[b],
            .table = t->table,
            .pieces = pieces,
            .piece_count = list_pieces(t, data[b], out->packed[b], mine, pieces),
        };
    }
    return TG_OK;
}

static void view_close(view *v)
{
    free(v->pieces);
}

/* What ranks tell each other between the parts of a save. */
typedef struct word {
    int32_t status;
    char reason[764];
    char aside[256]; /* the first rank's: name of the folder being written */
    tg_state_sums sums;
} word;

/* A save under way on this rank. */
typedef struct saving {
    const tg_train_tensors *tensors;
    tg_comm *comm;
    view view;
    tg_state_save save;
    word mine, *all;
} saving;

static bool is_first(const saving *s)
{
    return s->comm->rank == 0;
}

static tg_status fail_as(const saving *s, int rank)
{
    const word *w = &s->all[rank];
    if (s->comm->size == 1)
        return tg_fail((tg_status)w->status, "%s", w->reason);
    return tg_fail((tg_status)w->status, "rank %d on %s: %s", rank, tg_comm_host(s->comm, rank),
                   w->reason);
}

/* The first rank's failure is everyone's; without one all have what each has to say. */
static tg_status agree(saving *s, const char *what, tg_status status)
{
    if (status == TG_ERROR_PEER)
        return status;
    s->mine.status = status < 0 ? status : TG_OK;
    snprintf(s->mine.reason, sizeof s->mine.reason, "%s", status < 0 ? tg_error_message() : "");
    TG_TRY(tg_comm_meet(s->comm, what, &s->mine, sizeof s->mine, s->all));
    for (int r = 0; r < s->comm->size; r++)
        if (s->all[r].status < 0)
            return fail_as(s, r);
    return TG_OK;
}

static tg_status begin(saving *s, const tg_state_save_options *options, const tg_state_model *model)
{
    if (!is_first(s))
        return TG_OK;
    TG_TRY(tg_state_save_begin(options, model, &s->view.state, &s->save));
    const char *path = s->save.aside.temp_path, *slash = strrchr(path, '/');
    snprintf(s->mine.aside, sizeof s->mine.aside, "%s", slash ? slash + 1 : path);
    return TG_OK;
}

static tg_status join(saving *s, const tg_state_save_options *options, const tg_state_model *model)
{
    if (is_first(s))
        return TG_OK;
    char *aside = tg_path_join(options->folder, s->all[0].aside);
    tg_status status = aside ? tg_state_save_join(options, model, &s->view.state, aside, &s->save)
                             : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(aside);
    return status;
}

static tg_status write_pieces(saving *s)
{
    for (size_t b = 0; b < s->view.state.buffer_count; b++)
        for (size_t i = 0; i < s->view.buffers[b].piece_count; i++)
            TG_TRY(tg_state_save_write(&s->save, b, &s->view.buffers[b].pieces[i]));
    return TG_OK;
}

/* Every rank takes part in every gathering, also after the first one's disk has failed. */
static tg_status write_gathered(saving *s)
{
    const tg_train_tensors *t = s->tensors;
    tg_status status = TG_OK;
    if (t->ranks)
        TG_TRY(tg_ranks_complete(t->ranks, t->params));
    for (size_t b = 0; b < s->view.state.buffer_count; b++) {
        float *whole = s->view.data[b];
        if (s->view.packed[b]) {
            TG_TRY(tg_ranks_gather(t->ranks, t->stream, whole, t->scratch));
            whole = t->scratch;
        }
        const tg_state_piece piece = {0, t->table->elements, whole};
        if (is_first(s) && status == TG_OK)
            status = tg_state_save_write(&s->save, b, &piece);
    }
    return status;
}

/* From the folder aside to all bytes on disk. */
static tg_status write_tensors(saving *s, const tg_state_save_options *options,
                               const tg_state_model *model)
{
    if (!s->tensors->together) {
        TG_TRY(write_gathered(s));
        return is_first(s) ? tg_state_save_sync(&s->save, &s->mine.sums) : TG_OK;
    }
    TG_TRY(join(s, options, model));
    TG_TRY(write_pieces(s));
    return tg_state_save_sync(&s->save, &s->mine.sums);
}

static tg_status finish(saving *s)
{
    tg_state_sums sums = {0};
    for (int r = 0; r < s->comm->size; r++)
        tg_state_sums_add(&sums, &s->all[r].sums);
    return is_first(s) ? tg_state_save_finish(&s->save, &sums) : TG_OK;
}

tg_status tg_checkpoint_save(const tg_checkpoint_options *options, const tg_train_state *state,
                             const tg_train_tensors *tensors, double score, bool best)
{
    tg_train_state copy = *state;
    saving s = {.tensors = tensors, .comm = tensors->ranks ? tensors->ranks->comm : tg_comm_self()};
    const tg_state_model model = {.info = tensors->info,
                                  .table = tensors->model_table,
                                  .buffer = tensors->average ? BUFFERS - 1 : 0};
    const tg_state_save_options saving_options = {.folder = options->folder,
                                                  .step = state->updates,
                                                  .score = score,
                                                  .best = best,
                                                  .keep = (size_t)options->keep};
    s.all = calloc((size_t)s.comm->size, sizeof *s.all);
    if (!s.all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", s.comm->size);
    tg_status status = view_open(tensors, &copy, tensors->together, &s.view);
    if (status == TG_OK)
        status = begin(&s, &saving_options, &model);
    TG_TRY_GOTO(agree(&s, "beginning a checkpoint", status), discard);
    status = write_tensors(&s, &saving_options, &model);
    TG_TRY_GOTO(agree(&s, "writing a checkpoint", status), discard);
    status = agree(&s, "saving", finish(&s));
discard:
    tg_state_save_discard(&s.save);
    view_close(&s.view);
    free(s.all);
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

tg_status tg_checkpoint_load(const char *path, const tg_train_tensors *tensors,
                             tg_train_state *out_state, double *out_score)
{
    tg_train_state state = {0};
    view v;
    double score;
    tg_status status;
    TG_TRY_GOTO(view_open(tensors, &state, false, &v), close_view);
    TG_TRY_GOTO(tg_state_load(path, &v.state, NULL, &score), close_view);
    TG_TRY_GOTO(check_model(path, tensors->info), close_view);
    tg_log_info("loaded %s", path);
    *out_state = state;
    *out_score = score;
close_view:
    view_close(&v);
    return status;
}
