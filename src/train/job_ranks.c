/* A job that several ranks do together: what is dealt out, what must be equal, who writes. */
#include "train/job_parts.h"

#include "base/hash.h"
#include "kern/level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    const tg_buckets *buckets = &job->ranks.buckets;
    if (!sharded(job)) {
        tg_stream_copy(job->stream, out_packed, whole, job->table.elements * sizeof *whole);
        return;
    }
    for (size_t i = 0; i < buckets->count; i++)
        tg_stream_copy(job->stream, out_packed + buckets->items[i].shard_offset,
                       whole + buckets->items[i].own_offset,
                       buckets->items[i].own_count * sizeof *whole);
}

/* The pieces of all ranks, each where it belongs. */
static tg_status gather(tg_job *job, const float *packed, float *out_whole)
{
    tg_buckets *buckets = &job->ranks.buckets;
    for (size_t i = 0; i < buckets->count; i++)
        tg_stream_copy(job->stream, out_whole + buckets->items[i].own_offset,
                       packed + buckets->items[i].shard_offset,
                       buckets->items[i].own_count * sizeof *packed);
    TG_TRY(tg_step_settle(&job->step)); /* parameters travel by the same buckets */
    TG_TRY(tg_buckets_gather(buckets, out_whole));
    return tg_buckets_need(buckets, 0, buckets->elements);
}

tg_status tg_job_gather_average(tg_job *job)
{
    return sharded(job) && job->average ? gather(job, job->average, job->whole_average) : TG_OK;
}

tg_status tg_job_tensors(tg_job *job, bool gathered, tg_train_tensors *out, tg_arena *out_hold)
{
    const size_t bytes = TG_ARENA_ROUND(job->table.elements * sizeof(float));
    *out = (tg_train_tensors){.info = &job->student.info,
                              .model_table = &job->student.table,
                              .table = &job->table,
                              .params = job->student.params,
                              .m = job->m,
                              .v = job->v,
                              .average = job->whole_average};
    if (!sharded(job))
        return TG_OK;
    TG_TRY(tg_arena_init(out_hold, 2 * bytes, "state of all ranks"));
    out->m = tg_arena_alloc(out_hold, bytes);
    out->v = tg_arena_alloc(out_hold, bytes);
    if (!gathered)
        return TG_OK;
    TG_TRY(gather(job, job->m, out->m));
    TG_TRY(gather(job, job->v, out->v));
    return tg_job_gather_average(job);
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

/* What decides how a step comes out and who takes part in which exchange. */
static uint64_t hash_options(const tg_job *job)
{
    const tg_train_options *o = job->options;
    const double values[] = {(double)job->group_batch,
                             (double)o->recipe.grad_accum_steps,
                             (double)o->recipe.epochs,
                             (double)job->total_updates,
                             job->schedule.lr,
                             o->recipe.min_lr,
                             o->recipe.warmup_epochs,
                             o->recipe.weight_decay,
                             o->recipe.beta1,
                             o->recipe.beta2,
                             o->recipe.eps,
                             o->recipe.layer_decay,
                             o->recipe.clip_grad,
                             o->recipe.model_ema ? o->recipe.model_ema_decay : -1,
                             (double)o->recipe.seed,
                             o->distill.objective.kd,
                             o->distill.objective.alpha,
                             o->distill.objective.temperature,
                             o->distill.objective.reduction,
                             (double)o->ranks.bucket_bytes,
                             (double)o->ranks.first_bucket_bytes,
                             o->ranks.wire,
                             o->ranks.shard,
                             (double)o->output.checkpoint_steps,
                             (double)o->output.eval_interval,
                             (double)o->output.max_steps,
                             o->augment.mixup,
                             o->augment.cutmix,
                             o->augment.mixup_prob,
                             o->augment.smoothing};
    return tg_hash(TG_HASH_START, values, sizeof values);
}

typedef struct likeness {
    uint64_t options, train, val, params, teacher, state;
    char arithmetic[96];
} likeness;

static void describe(const tg_job *job, likeness *out)
{
    char library[TG_DEV_LIBRARY_BYTES];
    memset(out, 0, sizeof *out); /* padding is compared too */
    tg_dev_library(library);
    out->options = hash_options(job);
    out->train = hash_data(&job->train);
    out->val = hash_data(&job->val);
    out->params = tg_hash(TG_HASH_START, job->student.params,
                          job->student.table.elements * sizeof *job->student.params);
    if (job->teacher.vit)
        out->teacher = tg_hash(TG_HASH_START, job->teacher.params,
                               job->teacher.table.elements * sizeof *job->teacher.params);
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
        const char *what = a->options != b->options   ? "options"
                           : a->train != b->train     ? "training photos"
                           : a->val != b->val         ? "validation photos"
                           : a->teacher != b->teacher ? "teacher"
                           : a->state != b->state     ? "checkpoint to go on from"
                           : a->params != b->params   ? "weights to start from"
                                                      : NULL;
        if (what)
            status = tg_fail(TG_ERROR_INPUT,
                             "rank %d on %s has other %s than rank 0 on %s; every rank needs the "
                             "same command and the same files",
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

tg_status tg_job_follow_first(tg_job *job, const char *what, tg_status status, bool *inout_answer)
{
    if (!tg_job_has_ranks(job))
        return status;
    bool *all = calloc((size_t)job->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    tg_comm_set_stall(job->comm, PATIENCE * job->options->stall_s);
    status = tg_comm_agree(job->comm, what, status);
    if (status == TG_OK)
        status = tg_comm_meet(job->comm, what, inout_answer, sizeof *inout_answer, all);
    tg_comm_set_stall(job->comm, job->options->stall_s);
    if (status == TG_OK)
        *inout_answer = all[0];
    free(all);
    return status;
}
