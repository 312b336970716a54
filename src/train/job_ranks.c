/* A job that several ranks do together: what is dealt out, what must be equal, who writes. */
#include "train/job_parts.h"

#include "base/hash.h"
#include "kern/level.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Work whose length differs between ranks: writing, above all. */
#define PATIENCE 20

tg_status tg_job_open_ranks(tg_job *job)
{
    const tg_recipe *r = &job->options->recipe;
    const size_t size = (size_t)job->comm->size;
    job->group_batch = (size_t)(r->global_batch_size ? r->global_batch_size : r->batch_size) *
                       (r->global_batch_size ? 1 : size);
    if (job->group_batch < size)
        return tg_fail(TG_ERROR_USAGE, "--global-batch-size %zu is too little for %zu ranks",
                       job->group_batch, size);
    if (!tg_job_has_ranks(job))
        return TG_OK;
    return tg_ranks_open(&job->ranks, job->comm, &job->options->ranks, job->table.elements);
}

static bool sharded(const tg_job *job)
{
    return tg_job_has_ranks(job) && job->ranks.options.shard;
}

size_t tg_job_own_elements(const tg_job *job)
{
    return sharded(job) ? job->ranks.buckets.own_elements : job->table.elements;
}

void tg_job_pack(const tg_job *job, const float *whole, float *out_packed)
{
    if (sharded(job))
        tg_ranks_pack(&job->ranks, job->stream, whole, out_packed);
    else
        tg_stream_copy(job->stream, out_packed, whole, job->table.elements * sizeof *whole);
}

tg_status tg_job_gather_model(tg_job *job)
{
    if (!sharded(job))
        return TG_OK;
    TG_TRY(tg_step_settle(&job->step));
    if (!job->average)
        return tg_ranks_complete(&job->ranks, job->student.params);
    return tg_ranks_gather(&job->ranks, job->stream, job->average, job->whole_average);
}

tg_train_tensors tg_job_tensors(tg_job *job)
{
    return (tg_train_tensors){.info = &job->student.info,
                              .model_table = &job->student.table,
                              .table = &job->table,
                              .params = job->student.params,
                              .m = job->m,
                              .v = job->v,
                              .average = job->average,
                              .ranks = tg_job_has_ranks(job) ? &job->ranks : NULL,
                              .together = tg_job_has_ranks(job) && job->together,
                              .stream = job->stream,
                              .scratch = job->grads};
}

/* A file with a word that no other file has, held open by the first rank. */
typedef struct token {
    char name[128]; /* in the run's directory */
    uint64_t word;
} token;

static tg_status place_token(const tg_job *job, char **out_path, int *out_fd, token *out)
{
    char *beside = tg_path_join(job->run_path, "ranks");
    tg_status status = beside ? tg_temp_create(beside, false, out_path, out_fd)
                              : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    free(beside);
    TG_TRY(status);
    const int64_t now = tg_clock_ns();
    out->word = tg_hash(tg_hash(TG_HASH_START, &now, sizeof now), *out_path, strlen(*out_path));
    snprintf(out->name, sizeof out->name, "%s", strrchr(*out_path, '/') + 1);
    if (write(*out_fd, &out->word, sizeof out->word) == (ssize_t)sizeof out->word &&
        tg_fd_sync(*out_fd) == 0)
        return TG_OK;
    return tg_fail_errno("write", *out_path);
}

/* Whether the first rank's token lies in what this rank knows as the run's directory. */
static bool see_token(const tg_job *job, const token *t)
{
    uint64_t found = 0;
    char *path = tg_path_join(job->run_path, t->name), *bytes = NULL;
    size_t length = 0;
    bool seen = path && tg_file_await(path, TG_FILE_PATIENCE_S) &&
                tg_file_read(path, sizeof found, &bytes, &length) == TG_OK &&
                length == sizeof found;
    if (seen)
        memcpy(&found, bytes, sizeof found);
    tg_error_clear();
    free(bytes);
    free(path);
    return seen && found == t->word;
}

/* All look for the token of the first, and all know of all who sees it. */
static tg_status compare_tokens(tg_job *job, const token *mine)
{
    token *all = calloc((size_t)job->comm->size, sizeof *all);
    bool *seen = calloc((size_t)job->comm->size, sizeof *seen);
    tg_status status =
        all && seen ? TG_OK
                    : tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    TG_TRY_GOTO(status, free_all);
    TG_TRY_GOTO(tg_comm_meet(job->comm, "the run's directory", mine, sizeof *mine, all), free_all);
    const bool see = tg_job_is_first(job) || see_token(job, &all[0]);
    TG_TRY_GOTO(tg_comm_meet(job->comm, "who sees it", &see, sizeof see, seen), free_all);
    job->together = true;
    for (int r = 0; r < job->comm->size; r++)
        job->together = job->together && seen[r];
free_all:
    free(seen);
    free(all);
    return status;
}

tg_status tg_job_look_around(tg_job *job)
{
    char *path = NULL;
    int fd = -1;
    token mine = {0};
    if (!tg_job_has_ranks(job))
        return TG_OK;
    tg_status status = tg_job_is_first(job) ? place_token(job, &path, &fd, &mine) : TG_OK;
    status = tg_comm_agree(job->comm, "the run's directory", status);
    if (status == TG_OK)
        status = compare_tokens(job, &mine);
    if (path)
        unlink(path);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static uint64_t hash_data(const tg_dataset *data)
{
    uint64_t h = tg_hash(TG_HASH_START, &data->count, sizeof data->count);
    for (size_t i = 0; i < data->count; i++) {
        const char *name = strrchr(data->samples[i].path, '/');
        name = name ? name : data->samples[i].path;
        h = tg_hash(h, name, strlen(name));
        h = tg_hash(h, &data->samples[i].label, sizeof data->samples[i].label);
    }
    return h;
}

/* What the weights alone do not tell of a network: two with other heads have equal shapes. */
static uint64_t hash_network(const tg_model_info *info)
{
    const tg_vit_config *c = &info->config;
    const tg_preprocess *p = &info->preprocess;
    const double values[] = {c->family,
                             (double)c->img_h,
                             (double)c->img_w,
                             (double)c->patch,
                             (double)c->num_heads,
                             c->class_token,
                             c->dist_token,
                             (double)c->reg_tokens,
                             c->no_embed_class,
                             c->pool,
                             c->gelu,
                             c->norm_eps,
                             c->drop_path,
                             p->width_px,
                             p->height_px,
                             p->crop_pct,
                             p->interpolation,
                             p->crop_mode,
                             p->mean[0],
                             p->mean[1],
                             p->mean[2],
                             p->std[0],
                             p->std[1],
                             p->std[2],
                             p->exif_orientation};
    return tg_hash(TG_HASH_START, values, sizeof values);
}

static uint64_t hash_weights(const tg_network *network)
{
    return tg_hash_large(TG_HASH_START, network->params,
                         network->table.elements * sizeof *network->params);
}

/* Options are compared before the job opens (cli/same_options.h); this is what came of files and machines. */
typedef struct likeness {
    uint64_t train, val, network, params, teacher, state;
    char arithmetic[96];
} likeness;

static void describe(const tg_job *job, likeness *out)
{
    char library[TG_DEV_LIBRARY_BYTES];
    memset(out, 0, sizeof *out); /* padding is compared too */
    tg_dev_library(library);
    out->train = hash_data(&job->train);
    out->val = hash_data(&job->val);
    out->network = hash_network(&job->student.info);
    out->params = hash_weights(&job->student);
    if (job->teacher.vit)
        out->teacher = hash_weights(&job->teacher) ^ hash_network(&job->teacher.info);
    out->state = tg_hash(tg_hash(TG_HASH_START, &job->state.updates, sizeof job->state.updates),
                         &job->state.position, sizeof job->state.position);
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s, %s, %s",
             tg_cpu_level_name(tg_stream_level(job->stream)),
             job->dtype == TG_BF16 ? "bfloat16" : "float32", library);
}

tg_status tg_job_compare_ranks(tg_job *job)
{
    likeness mine, *all;
    if (!tg_job_has_ranks(job))
        return TG_OK;
    describe(job, &mine);
    all = calloc((size_t)job->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    tg_status status = tg_comm_meet(job->comm, "comparing", &mine, sizeof mine, all);
    for (int r = 1; r < job->comm->size && status == TG_OK; r++) {
        const likeness *a = &all[0], *b = &all[r];
        const char *what = a->train != b->train       ? "training photos"
                           : a->val != b->val         ? "validation photos"
                           : a->teacher != b->teacher ? "teacher"
                           : a->state != b->state     ? "checkpoint to go on from"
                           : a->network != b->network ? "model settings"
                           : a->params != b->params   ? "weights to start from"
                                                      : NULL;
        if (what)
            status = tg_fail(TG_ERROR_INPUT,
                             "rank %d on %s has other %s than rank 0 on %s; every rank needs the "
                             "same files",
                             r, tg_comm_host(job->comm, r), what, tg_comm_host(job->comm, 0));
        else if (strcmp(a->arithmetic, b->arithmetic) != 0)
            status = tg_fail(TG_ERROR_INPUT,
                             "rank %d on %s computes with %s, rank 0 on %s with %s: their weights "
                             "would drift apart; --cpu-isa gives all the same instructions",
                             r, tg_comm_host(job->comm, r), b->arithmetic,
                             tg_comm_host(job->comm, 0), a->arithmetic);
    }
    free(all);
    return status;
}

void tg_job_be_patient(tg_job *job, bool patient)
{
    if (tg_job_has_ranks(job))
        tg_comm_set_stall(job->comm, (patient ? PATIENCE : 1) * job->options->stall_s);
}

tg_status tg_job_follow_first(tg_job *job, const char *what, tg_status status, void *inout_answer,
                              size_t bytes)
{
    if (!tg_job_has_ranks(job))
        return status;
    tg_job_be_patient(job, true);
    status = tg_comm_follow(job->comm, what, status);
    if (status == TG_OK)
        status = tg_comm_take_first(job->comm, what, inout_answer, bytes);
    tg_job_be_patient(job, false);
    return status;
}
