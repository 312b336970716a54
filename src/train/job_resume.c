/* How a job begins: what its folder may hold, and going on from a checkpoint. */
#include "train/job_parts.h"

#include "base/hash.h"
#include "base/log.h"
#include "ckpt/state.h"
#include "ckpt/state_list.h"
#include "os/document.h"
#include "os/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* FNV-1a over the names and their ends: equal lists, equal numbers. */
static uint64_t class_hash(const tg_job *job)
{
    uint64_t hash = TG_HASH_START;
    const tg_model_info *info = &job->student.info;
    for (size_t i = 0; i < info->class_count; i++)
        hash = tg_hash(hash, info->class_names[i], strlen(info->class_names[i]) + 1);
    return hash;
}

/* The path with every link followed, from malloc; NULL where there is nothing. */
static char *real_path(const char *folder, const char *name)
{
    char *path = tg_path_join(folder, name), *real = path ? realpath(path, NULL) : NULL;
    free(path);
    return real;
}

/* True when `path` is `folder` or lies in it. Both with every link followed; NULL lies nowhere. */
static bool lies_in(const char *path, const char *folder)
{
    size_t length = folder ? strlen(folder) : 0;
    return path && folder && strncmp(path, folder, length) == 0 &&
           (path[length] == 0 || path[length] == '/');
}

tg_status tg_job_check_output(const tg_job *job)
{
    const tg_train_options *o = job->options;
    const char *const sources[] = {o->distill.teacher, o->model.model, o->model.initial_checkpoint};
    char *model = real_path(job->run_path, "model");
    tg_status status = TG_OK;
    for (size_t i = 0; model && i < sizeof sources / sizeof *sources && status == TG_OK; i++) {
        char *source =
            sources[i] && tg_network_is_path(sources[i]) ? realpath(sources[i], NULL) : NULL;
        if (lies_in(source, model))
            status = tg_fail(TG_ERROR_USAGE,
                             "%s is where this run would write its own model, and replace it; give "
                             "another --output",
                             sources[i]);
        free(source);
    }
    if (model && status == TG_OK)
        status = tg_model_check_replace(model);
    free(model);
    return status;
}

/* A name in the run directory whose file or folder is there; a file counts when it holds something. */
static bool holds(const tg_job *job, const char *name)
{
    struct stat st;
    char *path = tg_path_join(job->run_path, name);
    bool there = path && stat(path, &st) == 0 && (S_ISDIR(st.st_mode) || st.st_size > 0);
    free(path);
    return there;
}

/* A model that no checkpoint stands behind: a start would replace it. */
static tg_status refuse_lone_model(const tg_job *job)
{
    if (!holds(job, "model"))
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE,
                   "%s holds a model, and no checkpoint to go on from: a start would replace it; "
                   "give another --output, or move the model away",
                   job->run_path);
}

/* Whether the folder's own record is of a run that was killed or failed: the model in it is then that run's
 * and worth no more than its checkpoints would be, and a job that is started again by itself goes on. */
static bool ended_badly(const tg_job *job)
{
    char *path = tg_path_join(job->run_path, "run.json");
    tg_json json;
    tg_json_node root, code;
    int64_t value = 0;
    bool bad = false;
    if (path && tg_file_exists(path) && tg_json_read(path, &json) == TG_OK) {
        root = tg_json_root(&json);
        bad = tg_json_find(&root, "exit", &code) &&
              (tg_json_node_kind(&code) == TG_JSON_NULL ||
               (tg_json_as_int(&code, &value) == TG_OK && value != 0));
        tg_json_done(&json);
    }
    tg_error_clear();
    free(path);
    return bad;
}

/* A fresh start beside what an earlier run left would make two runs in one folder: a later --resume auto
 * would take the wrong checkpoint, the model and the records would be replaced. */
static tg_status refuse_used_folder(const tg_job *job)
{
    tg_state_list list;
    TG_TRY(tg_state_list_read(job->checkpoint_folder, &list));
    size_t count = list.count;
    tg_state_list_done(&list);
    if (count > 0)
        return tg_fail(TG_ERROR_USAGE,
                       "%s holds %zu checkpoints of an earlier run; --resume auto goes on with it, "
                       "and another --output starts afresh",
                       job->checkpoint_folder, count);
    TG_TRY(refuse_lone_model(job));
    if (holds(job, "metrics.jsonl"))
        return tg_fail(
            TG_ERROR_USAGE,
            "%s holds the records of an earlier run that left no checkpoint; --resume auto "
            "begins it anew, and another --output keeps them",
            job->run_path);
    return TG_OK;
}

/* --resume with a path: whether it is this run's own. */
static bool is_own(const tg_job *job, const char *which)
{
    char *run = realpath(job->run_path, NULL), *path = realpath(which, NULL);
    bool own = lies_in(path, run);
    free(run);
    free(path);
    return own;
}

static tg_status fail_changed(const char *what, const char *option, int64_t then, int64_t now)
{
    char remedy[96] = "";
    if (option)
        snprintf(remedy, sizeof remedy, "give %s %lld to go on, or ", option, (long long)then);
    return tg_fail(TG_ERROR_USAGE,
                   "resume: %s was %lld and is now %lld, so the run cannot go on where it "
                   "stopped; %sstart a new one with --initial-checkpoint",
                   what, (long long)then, (long long)now, remedy);
}

static tg_status check_resumed(const tg_job *job, const tg_train_state *state)
{
    const tg_recipe *r = &job->options->recipe;
    const struct {
        const char *what, *option; /* NULL: no option brings it back */
        int64_t then, now;
    } same[] = {
        {"--seed", "--seed", state->seed, r->seed},
        {tg_job_has_ranks(job) ? "number of photos a step of all ranks (--global-batch-size)"
                               : "--batch-size",
         "--global-batch-size", state->batch_size, (int64_t)job->group_batch},
        {"--grad-accum-steps", "--grad-accum-steps", state->accumulation, r->grad_accum_steps},
        {"number of training photos", NULL, state->samples, (int64_t)job->train.count}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (same[i].then != same[i].now)
            return fail_changed(same[i].what, same[i].option, same[i].then, same[i].now);
    if (state->classes != class_hash(job))
        return tg_fail(
            TG_ERROR_INPUT,
            "resume: the class names are not those that the run was started with, so its "
            "answers would change their meaning; restore the class folders");
    if (state->epochs != r->epochs)
        tg_log_warning(
            "resume: %lld epochs were planned and now %lld are; the learning rate follows "
            "the new plan from here",
            (long long)state->epochs, (long long)r->epochs);
    return TG_OK;
}

/* The best of another run is not in this one: the first evaluation here is the best again. */
static tg_status forget_best_elsewhere(const tg_job *job, tg_train_state *state)
{
    char *path = tg_path_join(job->run_path, "model");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (state->best_epoch >= 0 && !tg_file_exists(path)) {
        tg_log_info("the best model so far (top-1 %.2f %%) is not in this run; the best is chosen "
                    "anew",
                    state->best_score);
        state->best_score = NAN;
        state->best_epoch = -1;
    }
    free(path);
    return TG_OK;
}

/* What was found. */
typedef struct place {
    bool shared, none; /* shared: the first rank's, for all */
    char path[2046];
} place;

static tg_status find_own(const tg_job *job, const tg_checkpoint_options *options, place *out)
{
    char *path = NULL;
    tg_status status = tg_checkpoint_find(options, job->options->output.resume, &path);
    out->none = status == TG_END;
    if (path && (size_t)snprintf(out->path, sizeof out->path, "%s", path) >= sizeof out->path)
        status = tg_fail(TG_ERROR_USAGE, "%s: too long a path", path);
    free(path);
    return out->none ? TG_OK : status;
}

/* Finds the checkpoint and reads all of it to know that it is whole. Where all ranks see one run directory, and it
 * lies there, the first one does so for all; else each has its own. */
static tg_status find(tg_job *job, const tg_checkpoint_options *options, place *out)
{
    const char *which = job->options->output.resume;
    *out = (place){.shared = job->together && (strcmp(which, "auto") == 0 || is_own(job, which))};
    if (job->together) {
        tg_status status = TG_OK;
        if (tg_job_is_first(job) && out->shared)
            status = find_own(job, options, out);
        TG_TRY(tg_job_follow_first(job, "finding a checkpoint", status, out, sizeof *out));
    }
    if (!out->shared)
        return find_own(job, options, out);
    return out->none || tg_job_is_first(job) ? TG_OK : tg_state_await(out->path);
}

/* TG_END: there is none to go on from. */
static tg_status load(tg_job *job, const tg_checkpoint_options *options, tg_train_state *out_state,
                      double *out_score)
{
    place at;
    TG_TRY(find(job, options, &at));
    if (at.none)
        return TG_END;
    const tg_train_tensors tensors = tg_job_tensors(job);
    return tg_checkpoint_load(at.path, &tensors, out_state, out_score);
}

tg_status tg_job_resume(tg_job *job)
{
    const tg_output_choice *o = &job->options->output;
    const tg_recipe *r = &job->options->recipe;
    job->state = (tg_train_state){.best_score = NAN,
                                  .best_epoch = -1,
                                  .seed = r->seed,
                                  .batch_size = (int64_t)job->group_batch,
                                  .accumulation = r->grad_accum_steps,
                                  .epochs = r->epochs,
                                  .samples = (int64_t)job->train.count,
                                  .classes = class_hash(job)};
    if (!o->resume)
        return refuse_used_folder(job);
    const bool automatic = strcmp(o->resume, "auto") == 0;
    if (!automatic && !is_own(job, o->resume)) /* goes on elsewhere: here it is a start */
        TG_TRY(refuse_used_folder(job));
    const tg_checkpoint_options options = {job->checkpoint_folder, o->checkpoint_hist};
    tg_train_state state;
    double score;
    tg_status status = load(job, &options, &state, &score);
    if (status == TG_END) {
        if (!ended_badly(job))
            TG_TRY(refuse_lone_model(job));
        tg_log_info("nothing to resume in %s: a fresh start", job->checkpoint_folder);
        return TG_OK;
    }
    TG_TRY(status);
    TG_TRY(check_resumed(job, &state));
    state.epochs = r->epochs;
    TG_TRY(forget_best_elsewhere(job, &state));
    job->state = state;
    job->owes_evaluation = job->val.count && isnan(score);
    if (state.best_epoch >= 0)
        job->best = (tg_evaluation){.top1 = state.best_score,
                                    .top5 = state.best_top5,
                                    .loss = state.best_loss,
                                    .images = state.best_images};
    job->optimizer.updates = state.applied;
    TG_TRY(tg_vit_refresh(job->student.vit));
    if (job->step.projection)
        TG_TRY(job->kern->linear.weight_refresh(job->stream, job->projection.weight,
                                                job->step.projection_params));
    tg_log_info("resuming at epoch %lld, photo %llu, after %lld updates", (long long)state.epoch,
                (unsigned long long)state.position, (long long)state.updates);
    return TG_OK;
}
