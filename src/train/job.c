#include "train/job_parts.h"

#include "base/log.h"
#include "ckpt/state_list.h"
#include "kern/traced.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tg_status tg_job_open_device(tg_job *job)
{
    const tg_train_options *o = job->options;
    job->comm = o->comm ? o->comm : tg_comm_self();
    job->program_bytes = (double)tg_memory_rss_bytes();
    TG_TRY(tg_stream_open_cpu(o->threads, o->cpu_cap, &job->stream));
    job->kern = tg_kern_select(job->stream);
    if (o->output.trace || o->output.trace_last) {
        job->traced = tg_kern_traced(job->stream);
        job->kern = &job->traced;
        TG_TRY(tg_recorder_open(o->threads, tg_train_options_workers(o), &job->recorder));
    }
    job->dtype = TG_F32;
    if (o->recipe.amp && tg_stream_has_bf16(job->stream))
        job->dtype = TG_BF16;
    else if (o->recipe.amp)
        tg_log_warning("--amp: this machine has no bf16 instructions, computing in float32");
    job->workers = tg_train_options_workers(o);
    return TG_OK;
}

/* Gradients, moments and average: one reservation for the life of the job. */
static tg_status open_state(tg_job *job)
{
    const size_t whole = TG_ARENA_ROUND(job->table.elements * sizeof(float));
    const size_t own = TG_ARENA_ROUND(tg_job_own_elements(job) * sizeof(float));
    const bool average = job->options->recipe.model_ema;
    const bool sharded = tg_job_own_elements(job) < job->table.elements;
    const size_t bytes = whole + own * (average ? 3 : 2);
    TG_TRY(tg_arena_init(&job->state_memory, bytes, "optimizer state"));
    job->grads = tg_arena_alloc(&job->state_memory, whole);
    job->m = tg_arena_alloc(&job->state_memory, own);
    job->v = tg_arena_alloc(&job->state_memory, own);
    if (average) {
        job->average = tg_arena_alloc(&job->state_memory, own);
        job->whole_average = sharded ? job->grads : job->average;
        tg_job_pack(job, job->student.params, job->average);
    }
    return TG_OK;
}

static tg_status open_optimizer(tg_job *job)
{
    const tg_recipe *r = &job->options->recipe;
    const tg_optimizer_options options = {.beta1 = r->beta1,
                                          .beta2 = r->beta2,
                                          .eps = r->eps,
                                          .weight_decay = r->weight_decay,
                                          .layer_decay = r->layer_decay,
                                          .clip_grad = r->clip_grad,
                                          .ema_decay = r->model_ema ? r->model_ema_decay : 0};
    TG_TRY(tg_optimizer_init(&job->optimizer, &options, job->kern, job->stream, &job->table,
                             job->student.params, job->m, job->v, job->average));
    double window = (double)job->group_batch * (double)r->grad_accum_steps;
    job->schedule =
        (tg_schedule){.kind = r->sched,
                      .lr = isnan(r->lr) ? 5e-4 * window / 512 : r->lr,
                      .min_lr = r->min_lr,
                      .warmup_lr = r->warmup_lr,
                      .warmup_steps = (int64_t)(r->warmup_epochs * (double)job->steps_per_epoch),
                      .total_steps = job->total_updates};
    return TG_OK;
}

static tg_status open_step(tg_job *job)
{
    const tg_train_options *o = job->options;
    const tg_param *w = tg_param_find(&job->table, "kd_projection.weight");
    const tg_param *b = tg_param_find(&job->table, "kd_projection.bias");
    if (w) {
        job->projection.dw = job->grads + w->offset;
        job->projection.db = job->grads + b->offset;
    }
    job->step = (tg_step){.kern = job->kern,
                          .stream = job->stream,
                          .student = job->student.vit,
                          .teacher = job->teacher.vit,
                          .teacher_class = job->teacher_class,
                          .objective = o->distill.objective,
                          .projection = w ? &job->projection : NULL,
                          .projection_params = w ? job->student.params + w->offset : NULL,
                          .optimizer = &job->optimizer,
                          .arena = &job->arena,
                          .grads = job->grads,
                          .num_classes = job->student.info.config.num_classes,
                          .mean_over = job->group_batch * (size_t)o->recipe.grad_accum_steps,
                          .seed = (uint64_t)o->recipe.seed,
                          .ranks = tg_job_has_ranks(job) ? &job->ranks : NULL};
    TG_TRY(tg_step_narrow(&job->step, &job->table));
    size_t bytes = tg_step_arena_bytes(&job->step, job->share, job->dtype);
    return tg_arena_init(&job->arena, bytes, "step");
}

static tg_status open_records(tg_job *job)
{
    if (!tg_job_is_first(job))
        return TG_OK;
    char *path = tg_path_join(job->run_path, "metrics.jsonl");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    bool resumed = job->state.updates > 0;
    tg_wall_count_dropped(job->watch->wall, job->run_path, job->state.updates);
    tg_status status =
        tg_metrics_open(path, resumed, job->state.updates, job->state.epoch, &job->metrics);
    free(path);
    job->metrics_open = status == TG_OK;
    return status < 0 ? status : tg_job_open_phases(job, resumed);
}

static void log_plan(const tg_job *job)
{
    size_t decay, no_decay;
    tg_optimizer_count(&job->table, &decay, &no_decay);
    tg_log_info("%zu photos to train on, %zu to validate, %zu classes", job->train.count,
                job->val.count, job->student.info.config.num_classes);
    tg_log_info("%s: %zu parameters (weight decay on %zu, none on %zu), %s",
                job->student.info.config.architecture, tg_param_total(&job->student.table), decay,
                no_decay, job->dtype == TG_BF16 ? "bfloat16 compute" : "float32");
    tg_log_info("%d compute thread%s, %d loader worker%s%s, instruction set %s",
                job->options->threads, job->options->threads == 1 ? "" : "s", job->workers,
                job->workers == 1 ? "" : "s",
                job->options->data.workers < 0 ? " (auto: to be measured)" : "",
                tg_cpu_level_name(tg_stream_level(job->stream)));
    if (tg_job_has_ranks(job))
        tg_log_info(
            "%d ranks (%s), %zu photos a step together, at most %zu on this one; state of the "
            "optimizer %s",
            job->comm->size, job->comm->library, job->group_batch, job->share,
            job->ranks.options.shard ? "in shares (ZeRO stage 1)" : "whole on each");
    if (tg_job_has_ranks(job))
        tg_log_info("checkpoints: %s",
                    job->together ? "every rank writes its pieces of them"
                                  : "the first rank writes them, because not all ranks see its run "
                                    "directory; to resume, each needs a copy");
}

tg_status tg_job_build(tg_job *job)
{
    TG_TRY(tg_job_open_networks(job));
    TG_TRY(tg_job_open_ranks(job));
    TG_TRY(open_state(job));
    TG_TRY(tg_job_open_loader(job));
    TG_TRY(open_optimizer(job));
    return open_step(job);
}

tg_status tg_job_open(tg_job *job)
{
    job->comm = job->options->comm ? job->options->comm : tg_comm_self();
    TG_TRY(tg_job_check_output(job));
    TG_TRY(tg_job_open_device(job));
    TG_TRY(tg_job_open_data(job));
    TG_TRY(tg_job_build(job));
    job->checkpoint_folder = tg_path_join(job->run_path, "checkpoints");
    if (!job->checkpoint_folder)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    return tg_folder_make(job->checkpoint_folder);
}

/* What stands on the run directory. Ranks meet in it, so that it comes after all of them have opened. */
static tg_status take_up(tg_job *job)
{
    TG_TRY(tg_job_look_around(job));
    tg_status status = tg_job_resume(job);
    tg_job_be_patient(job, true); /* each reads its part of a checkpoint */
    status = tg_comm_agree(job->comm, "going on", status);
    tg_job_be_patient(job, false);
    TG_TRY(status);
    TG_TRY(tg_comm_follow(job->comm, "opening the records", open_records(job)));
    log_plan(job);
    return TG_OK;
}

void tg_job_close(tg_job *job)
{
    tg_ranks_close(&job->ranks);
    tg_job_close_monitor(job);
    tg_job_close_trace(job);
    tg_job_close_phases(job);
    if (job->metrics_open)
        tg_metrics_close(&job->metrics);
    free(job->checkpoint_folder);
    tg_job_close_workers(job);
    tg_loader_close(job->loader);
    tg_arena_done(&job->arena);
    tg_optimizer_done(&job->optimizer);
    tg_arena_done(&job->state_memory);
    if (job->projection.weight)
        job->kern->linear.weight_free(job->projection.weight);
    tg_param_table_done(&job->table);
    free(job->teacher_class);
    free(job->teacher_labels);
    tg_network_close(&job->teacher);
    tg_network_close(&job->student);
    tg_dataset_done(&job->val);
    tg_dataset_done(&job->train);
    tg_job_close_operations(job);
    tg_stream_close(job->stream);
    *job = (tg_job){0};
}

int tg_job_stop_wanted(const tg_job *job)
{
    return job->watch->stop ? job->watch->stop(job->watch->user) : 0;
}

static int stop_wanted(void *user)
{
    return tg_job_stop_wanted(user);
}

static void evaluating(void *user, uint64_t done, uint64_t total)
{
    const tg_job *job = user;
    if (job->watch->evaluating)
        job->watch->evaluating(job->watch->user, done, total);
}

static tg_status evaluate(tg_job *job, tg_vit *vit, const tg_preprocess *preprocess,
                          const uint32_t *class_of, tg_evaluation *out)
{
    const tg_evaluate_options options = {.batch_size = job->group_batch / (size_t)job->comm->size,
                                         .comm = job->comm,
                                         .workers = job->workers,
                                         .strict = job->options->data.strict,
                                         .preprocess = preprocess,
                                         .class_of = class_of,
                                         .progress = evaluating,
                                         .user = job,
                                         .stop = stop_wanted};
    return tg_evaluate(vit, &job->arena, &job->val, &options, out);
}

tg_status tg_job_evaluate(tg_job *job, const float *params, tg_evaluation *out)
{
    const tg_preprocess *preprocess = &job->student.info.preprocess;
    TG_TRY(tg_step_settle(&job->step));
    if (params == job->student.params)
        return evaluate(job, job->student.vit, preprocess, NULL, out);
    tg_vit *vit =
        NULL; /* the average is scored by a network of its own: training's is not touched */
    tg_status status = tg_vit_new(&job->student.info.config, job->kern, job->stream, job->dtype,
                                  false, params, &vit);
    if (status == TG_OK)
        status = tg_vit_refresh(vit);
    status = tg_comm_agree(job->comm, "a network for the average", status);
    if (status == TG_OK)
        status = evaluate(job, vit, preprocess, NULL, out);
    tg_vit_free(vit);
    return status;
}

tg_status tg_job_evaluate_teacher(tg_job *job, tg_evaluation *out)
{
    return evaluate(job, job->teacher.vit, &job->teacher_preprocess, job->teacher_labels, out);
}

static bool teacher_can_be_scored(const tg_job *job)
{
    return job->teacher.vit && job->val.count && job->teacher.info.config.num_classes &&
           (job->teacher_labels || job->teacher.info.config.num_classes == job->train.class_count);
}

static tg_status score_teacher(tg_job *job)
{
    if (!teacher_can_be_scored(job))
        return TG_OK;
    const int64_t begin = tg_wall_span(job->watch->wall, TG_SPAN_START, 0);
    TG_TRY(tg_job_evaluate_teacher(job, &job->teacher_score));
    tg_wall_span(job->watch->wall, TG_SPAN_EVALUATION, begin);
    if (job->teacher_score.not_finite)
        return tg_fail(TG_ERROR_INPUT,
                       "teacher %s: its answers to %llu of %llu photos are not finite, though its "
                       "weights are: they are too large for its arithmetic",
                       job->options->distill.teacher,
                       (unsigned long long)job->teacher_score.not_finite,
                       (unsigned long long)job->teacher_score.images);
    tg_log_info("teacher on the validation split: top-1 %.2f %%, top-5 %.2f %% of %llu photos",
                job->teacher_score.top1, job->teacher_score.top5,
                (unsigned long long)job->teacher_score.images);
    if (job->watch->evaluation)
        job->watch->evaluation(job->watch->user, "teacher", 0, &job->teacher_score);
    return TG_OK;
}

tg_status tg_train_job_run(const tg_train_options *options, const char *run_path,
                           const tg_train_watch *watch, tg_train_result *out)
{
    tg_job job = {.options = options, .watch = watch, .run_path = run_path};
    tg_status status = tg_job_open(&job);
    status = tg_comm_agree(job.comm, "opening the job", status);
    if (status == TG_OK)
        status = take_up(&job);
    if (status == TG_OK)
        status = tg_comm_agree(job.comm, "the same files", tg_job_compare_ranks(&job));
    const bool alike = status == TG_OK;
    if (alike && watch->opened)
        status = watch->opened(watch->user);
    if (alike && status == TG_OK)
        status = tg_wall_open(watch->wall, run_path, options->output.resume, job.state.updates);
    if (alike)
        status = tg_comm_follow(job.comm, "beginning the records", status);
    if (status == TG_OK)
        status = tg_job_open_monitor(&job);
    if (status == TG_OK) {
        tg_job_tell_subject(&job);
        status = tg_job_tell_memory(&job);
    }
    if (status == TG_OK)
        status = score_teacher(&job);
    if (status == TG_OK)
        status = tg_job_open_trace(&job);
    if (status == TG_OK)
        status = tg_job_open_operations(&job);
    if (status == TG_OK)
        status = tg_job_open_workers(&job);
    if (status == TG_OK)
        status = tg_job_train(&job);
    job.complete = status == TG_OK;
    if (status == TG_OK || status == TG_ERROR_STOPPED)
        tg_job_sum_up_phases(&job);
    if (status == TG_OK)
        *out = (tg_train_result){.evaluation = job.best,
                                 .teacher = job.teacher_score,
                                 .updates = job.state.updates,
                                 .epochs = job.state.epoch,
                                 .parameters = tg_param_total(&job.student.table),
                                 .seconds = job.train_seconds,
                                 .images_per_s =
                                     (double)job.images_done / fmax(job.train_seconds, 1e-9)};
    tg_job_close(&job);
    return status;
}
