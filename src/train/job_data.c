#include "train/job_parts.h"

#include "base/log.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

static tg_status no_labels_check(const tg_job *job)
{
    const tg_objective *o = &job->options->distill.objective;
    if (job->options->distill.teacher && o->kd != TG_KD_NONE && o->alpha >= 1)
        return TG_OK;
    return tg_fail(
        TG_ERROR_INPUT,
        "%s: there are no class folders, and training without labels needs a teacher and "
        "--kd-alpha 1",
        job->options->data.data);
}

static tg_status open_unlabelled(tg_job *job, tg_dataset_options request, const char *reason)
{
    if (no_labels_check(job) != TG_OK)
        return tg_fail_prefix(TG_ERROR_INPUT, "%s", reason);
    const char *val = job->options->data.val_split;
    if (val && *val && strcmp(val, "val") != 0 && strcmp(val, "none") != 0)
        return tg_fail(TG_ERROR_USAGE,
                       "--val-split %s: photos without labels cannot be validated on, and none are "
                       "held out; leave it out (%s)",
                       val, reason);
    request.unlabelled = 1;
    request.val_share = 0;
    TG_TRY(tg_dataset_open(&request, &job->train));
    tg_log_warning("training without labels, from the teacher alone, and without validation: %s",
                   reason);
    return TG_OK;
}

/* Photos without class folders may still be learned from a teacher; any other fault stays one. */
static tg_status open_train(tg_job *job, const tg_dataset_options *request)
{
    bool has_classes;
    tg_status status = tg_dataset_open(request, &job->train);
    if (status != TG_ERROR_INPUT || !job->options->distill.teacher ||
        job->options->distill.objective.alpha < 1)
        return status;
    char reason[TG_ERROR_BYTES];
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    if (tg_dataset_has_classes(request, &has_classes) != TG_OK || has_classes)
        return tg_fail(status, "%s", reason);
    return open_unlabelled(job, *request, reason);
}

static bool has_folder(const char *root, const char *name)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", root, name) < (int)sizeof path &&
           tg_file_exists(path);
}

static tg_status open_val(tg_job *job, tg_dataset_options request)
{
    request.class_names = (const char *const *)job->train.class_names;
    request.class_count = job->train.class_count;
    tg_status status = tg_dataset_open(&request, &job->val);
    if (status == TG_OK)
        return TG_OK;
    const tg_data_choice *choice = &job->options->data;
    if (strcmp(choice->val_split, "val") != 0 || has_folder(choice->data, "val"))
        return status; /* asked for by name, or there and not usable */
    tg_log_warning("no validation split: %s", tg_error_message());
    job->val = (tg_dataset){0};
    tg_error_clear();
    return TG_OK;
}

/* Accuracy on photos that were learned says nothing. Asked for, it may be a test of the program; by
 * mistake ("train+val" beside "val") it must not go unseen. */
static tg_status warn_of_overlap(const tg_job *job)
{
    size_t shared;
    TG_TRY(tg_dataset_count_shared(&job->train, &job->val, &shared));
    if (shared)
        tg_log_warning(
            "%zu of %zu validation photos are training photos as well (--train-split %s, "
            "--val-split %s): accuracy on them says nothing about new photos",
            shared, job->val.count, job->options->data.train_split, job->options->data.val_split);
    return TG_OK;
}

tg_status tg_job_open_data(tg_job *job)
{
    const tg_data_choice *choice = &job->options->data;
    if (!choice->data)
        return tg_fail(TG_ERROR_USAGE, "--data is missing: the folder with the photos");
    double share = 0;
    tg_dataset_options request = {.root = choice->data,
                                  .seed = (uint64_t)job->options->recipe.seed};
    TG_TRY(tg_data_choice_share(choice, &share));
    TG_TRY(tg_data_choice_train_split(choice, &request.split));
    if (share > 0) {
        request.val_share = share;
        TG_TRY(open_train(job, &request));
        request.part = 1;
        return job->train.class_names ? open_val(job, request) : TG_OK;
    }
    TG_TRY(open_train(job, &request));
    if (!choice->val_split || !*choice->val_split || strcmp(choice->val_split, "none") == 0 ||
        !job->train.class_names)
        return TG_OK;
    request.split = choice->val_split;
    TG_TRY(open_val(job, request));
    return warn_of_overlap(job);
}

static tg_status fill_augment(const tg_augment_choice *choice, tg_augment *out)
{
    tg_augment a = tg_augment_default();
    a.scale_min = choice->scale_min;
    a.ratio_min = choice->ratio_min;
    a.ratio_max = 1 / choice->ratio_min;
    a.hflip = choice->hflip;
    a.vflip = choice->vflip;
    a.color_jitter = choice->color_jitter;
    a.reprob = choice->reprob;
    a.reprob_pixel = true;
    a.smoothing = choice->smoothing;
    a.mixup = choice->mixup;
    a.cutmix = choice->cutmix;
    a.mix_prob = choice->mixup_prob;
    a.mix_switch_prob = choice->mixup_switch_prob;
    if (choice->aa && *choice->aa)
        TG_TRY(tg_augment_parse_aa(choice->aa, &a));
    if (choice->no_aug)
        a.mixup = a.cutmix = 0;
    TG_TRY(tg_augment_check(&a));
    *out = a;
    return TG_OK;
}

tg_status tg_job_open_loader(tg_job *job)
{
    const tg_train_options *o = job->options;
    size_t batch = job->group_batch;
    tg_loader_options loading = {
        .batch_size = batch,
        .rank = job->comm->rank,
        .ranks = job->comm->size,
        .workers = job->workers,
        .seed = (uint64_t)o->recipe.seed,
        .train = true,
        .evaluation_view = o->augment.no_aug,
        .drop_last = job->train.count > batch, /* a set smaller than a batch is one batch */
        .preprocess = job->student.info.preprocess,
        .has_teacher = job->teacher.vit != NULL,
        .teacher_preprocess = job->teacher_preprocess,
        .num_classes = job->train.class_names ? job->student.info.config.num_classes : 0,
        .strict = o->data.strict,
        .max_bad_share = o->data.max_bad_share,
        .trace = job->recorder.loader,
    };
    TG_TRY(fill_augment(&o->augment, &loading.augment));
    job->loading = loading;
    job->share = tg_loader_share(&loading);
    if (job->train.count == 0)
        return TG_OK;
    TG_TRY(tg_loader_open(&job->train, &loading, &job->loader));
    int64_t batches = (int64_t)tg_loader_batches_per_epoch(job->loader);
    int64_t window = o->recipe.grad_accum_steps;
    job->steps_per_epoch = (batches + window - 1) / window;
    if (job->steps_per_epoch == 0)
        return tg_fail(TG_ERROR_INPUT, "%s: %zu photos make no batch of %zu", o->data.data,
                       job->train.count, batch);
    job->total_updates = job->steps_per_epoch * o->recipe.epochs;
    return TG_OK;
}
