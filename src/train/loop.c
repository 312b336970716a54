/* The epochs of a job: windows of micro-batches, records, evaluations, checkpoints. */
#include "train/job_parts.h"

#include "base/log.h"
#include "ckpt/state.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/memory.h"
#include "trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t LONG_WRITING_NS = INT64_C(5000000);

typedef struct window {
    int64_t batches;   /* in it so far */
    uint64_t position; /* after its last batch */
    int64_t wait_ns;   /* for the loader */
    int64_t begin_ns;  /* when the window before ended */
    int64_t step;      /* of the epoch, from 1 */
    double rate;       /* images/s, smoothed; 0: none yet */
} window;

/* TG_END: the run's folder was removed, and is there again, empty, for what can be saved. */
static tg_status check_folder(const tg_job *job)
{
    tg_status status = job->watch->present ? job->watch->present(job->watch->user) : TG_OK;
    if (status == TG_END)
        TG_TRY(tg_folder_make(job->run_path));
    return status;
}

static tg_status leave_removed(tg_job *job)
{
    return tg_fail(
        TG_ERROR_MACHINE,
        "%s was removed while the run was going, with its records and the checkpoints so "
        "far; the state after %lld updates is saved in a new folder of that name, and "
        "--resume auto goes on",
        job->run_path, (long long)job->state.updates);
}

/* Whether the run's folder was removed: the first rank looks. */
static tg_status find_removed(tg_job *job, bool *out)
{
    tg_status folder = tg_job_is_first(job) ? check_folder(job) : TG_OK;
    *out = folder == TG_END;
    return tg_job_follow_first(job, "the run's folder", *out ? TG_OK : folder, out, sizeof *out);
}

/* A checkpoint that cannot be written costs nothing but itself: training goes on. Every rank calls it, and for
 * all it comes out alike. */
static tg_status save_state(tg_job *job, double score, bool best, bool must)
{
    const tg_checkpoint_options options = {job->checkpoint_folder,
                                           job->options->output.checkpoint_hist};
    bool removed;
    TG_TRY(tg_step_settle(&job->step));
    TG_TRY(tg_job_settle_phases(job));
    job->state.applied = job->optimizer.updates;
    TG_TRY(find_removed(job, &removed));
    const tg_train_tensors tensors = tg_job_tensors(job);
    const int64_t begin = tg_clock_ns();
    tg_job_be_patient(job, true);
    tg_status status = tg_checkpoint_save(&options, &job->state, &tensors, score, best);
    tg_job_be_patient(job, false);
    job->saved = status == TG_OK;
    if (job->saved)
        tg_log_info("checkpoint after %lld updates: saved in %.2f s", (long long)job->state.updates,
                    tg_clock_seconds(tg_clock_ns() - begin));
    if (status == TG_OK && removed)
        return leave_removed(job);
    if (status == TG_OK || must || removed || status == TG_ERROR_PEER)
        return status;
    tg_log_warning("checkpoint after %lld updates was not saved: %s (older ones are untouched)",
                   (long long)job->state.updates, tg_error_message());
    return TG_OK;
}

static tg_status save(tg_job *job, double score, bool best, bool must)
{
    const int64_t begin = tg_clock_ns();
    tg_status status = save_state(job, score, best, must);
    tg_wall_span(job->watch->wall, TG_SPAN_CHECKPOINT, begin);
    return status;
}

static const float *exported_params(const tg_job *job)
{
    return job->average ? job->whole_average : job->student.params;
}

/* Nonzero when all ranks leave now: each sees the same. */
static int stop_now(const tg_job *job)
{
    return tg_job_has_ranks(job) ? job->stop : tg_job_stop_wanted(job);
}

static tg_status write_model(tg_job *job)
{
    char *path = tg_path_join(job->run_path, "model");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_model_write(path, &job->student.info, &job->student.table,
                                      exported_params(job), TG_NAMING_TIMM);
    free(path);
    return status;
}

static tg_step_record make_record(const tg_job *job, const window *w, const tg_step_report *report,
                                  double lr, int64_t now)
{
    double total = (double)(now - w->begin_ns) * 1e-9;
    tg_step_record r = {.step = job->state.updates,
                        .epoch = job->state.epoch,
                        .images = (int64_t)report->images,
                        .loss = report->loss,
                        .loss_task = report->task,
                        .loss_kd = report->kd,
                        .lr = lr,
                        .grad_norm = report->grad_norm,
                        .images_per_s = (double)report->images / total,
                        .t_step = total,
                        .t_data = (double)w->wait_ns * 1e-9,
                        .t_teacher = (double)report->phases.teacher_ns * 1e-9,
                        .t_forward = (double)report->phases.forward_ns * 1e-9,
                        .t_backward = (double)report->phases.backward_ns * 1e-9,
                        .t_reduce = (double)report->phases.reduce_ns * 1e-9,
                        .t_optimizer = (double)report->phases.optimizer_ns * 1e-9,
                        .rss_bytes = tg_memory_rss_bytes(),
                        .time = tg_clock_unix(now)};
    r.t_other = fmax(0, total - r.t_data - r.t_teacher - r.t_forward - r.t_backward - r.t_reduce -
                            r.t_optimizer);
    return r;
}

static void show_step(tg_job *job, window *w, const tg_step_record *record)
{
    w->rate = w->rate > 0 ? 0.9 * w->rate + 0.1 * record->images_per_s : record->images_per_s;
    if (!job->watch->step)
        return;
    double left = (double)(job->total_updates - job->state.updates) * (double)job->group_batch *
                  (double)job->options->recipe.grad_accum_steps / fmax(w->rate, 1e-9);
    static const tg_straggler_finding nobody = {.rank = -1};
    const tg_straggler_finding *slow = job->phases.rule.ranks ? &job->phases.rule.found : &nobody;
    const tg_train_progress progress = {.epoch = job->state.epoch,
                                        .epochs = job->options->recipe.epochs,
                                        .step = w->step,
                                        .steps_per_epoch = job->steps_per_epoch,
                                        .updates = job->state.updates,
                                        .total_updates = job->total_updates,
                                        .seconds_left = left,
                                        .images_per_s = w->rate,
                                        .slow_rank = slow->rank,
                                        .slow_share = tg_straggler_excess(slow),
                                        .slow_phase = tg_rank_phase_name(slow->phase)};
    job->watch->step(job->watch->user, &progress, record);
}

/* Records are written after a step that ended at end_ns. A disk that is slow is no slow step: from here on it is told
 * apart. Where it is not, the next step begins where this one ended. Returns where it begins. */
static int64_t note_writing(const tg_job *job, int64_t end_ns)
{
    if (tg_clock_ns() - end_ns < LONG_WRITING_NS)
        return end_ns;
    return tg_wall_span(job->watch->wall, TG_SPAN_RECORDS, end_ns);
}

/* Ends a window: update, record, and a checkpoint where one is due. */
static tg_status end_window(tg_job *job, window *w)
{
    double lr = tg_schedule_lr(&job->schedule, job->state.updates);
    tg_step_report report;
    TG_TRY(tg_step_update(&job->step, lr, tg_job_stop_wanted(job), &report));
    job->saved = false;
    job->stop = report.stop;
    if (job->stop && job->watch->stopping)
        job->watch->stopping(job->watch->user, job->stop);
    int64_t now = tg_clock_ns();
    job->state.updates++;
    tg_job_end_recording(job, &report);
    job->state.position = w->position;
    job->state.skipped += report.skipped;
    job->images_done += report.images;
    w->step++;
    if (report.skipped)
        tg_log_warning("update %lld was skipped: the loss or its gradient is not finite",
                       (long long)job->state.updates);
    tg_wall_step(job->watch->wall, job->state.updates, now);
    tg_step_record record = make_record(job, w, &report, lr, now);
    if (tg_job_is_first(job) && tg_metrics_write_step(&job->metrics, &record) != TG_OK)
        tg_log_warning("a step record was lost: %s", tg_error_message());
    tg_job_note_phases(job, &record, report.own_images);
    tg_job_note_timeline(job, &record);
    tg_job_note_operations(job, &record);
    show_step(job, w, &record);
    now = note_writing(job, now);
    if (!job->memory_known) {
        TG_TRY(tg_job_tell_peak(job));
        now = tg_wall_span(job->watch->wall, TG_SPAN_START, now);
    }
    TG_TRY(tg_job_note_workers(job, &record));
    job->train_seconds += record.t_step;
    int64_t every = job->options->output.checkpoint_steps;
    if (every > 0 && job->state.updates % every == 0) {
        TG_TRY(save(job, NAN, false, false));
        now = tg_clock_ns();
    }
    *w = (window){.step = w->step, .rate = w->rate, .begin_ns = now};
    return TG_OK;
}

static bool enough(const tg_job *job)
{
    int64_t limit = job->options->output.max_steps;
    return limit > 0 && job->state.updates >= limit;
}

/* Whether a batch is the last of its window: the same on every rank. */
static bool is_last(const tg_job *job, const window *w, const tg_batch *batch)
{
    uint64_t batches = tg_loader_batches_per_epoch(job->loader);
    uint64_t done = (batch->position + job->group_batch - 1) / job->group_batch;
    return w->batches + 1 >= job->options->recipe.grad_accum_steps || done >= batches;
}

/* Takes batches to the end of the epoch. TG_END: the epoch is complete; TG_OK: stopped early. */
static tg_status run_epoch(tg_job *job)
{
    window w = {.begin_ns = tg_clock_ns()};
    const bool whole = job->state.position == 0;
    const uint64_t images_before = job->images_done;
    int64_t accumulation = job->options->recipe.grad_accum_steps;
    w.step = (int64_t)(job->state.position / job->group_batch) / accumulation;
    tg_job_begin_epoch_workers(job);
    TG_TRY(tg_loader_start_epoch(job->loader, (uint64_t)job->state.epoch, job->state.position));
    for (;;) {
        const tg_batch *batch;
        if (w.batches == 0) {
            tg_job_begin_recording(job);
            tg_job_begin_step_workers(job);
        }
        int64_t asked = tg_clock_ns();
        tg_status status = tg_loader_next(job->loader, &batch);
        TG_TRY(status);
        w.wait_ns += tg_clock_ns() - asked;
        tg_trace_end(&(tg_trace_key){.name = "data",
                                     .phase = "data",
                                     .group = tg_loader_workers(job->loader) == 0},
                     asked, 0, 0);
        if (status == TG_END)
            break;
        if (enough(job)) { /* resumed for the evaluation alone */
            tg_loader_release(job->loader, batch);
            return TG_OK;
        }
        status =
            tg_step_micro(&job->step, batch, (uint64_t)job->state.epoch, is_last(job, &w, batch));
        w.position = batch->position;
        tg_loader_release(job->loader, batch);
        TG_TRY(status);
        if (++w.batches < accumulation)
            continue;
        TG_TRY(end_window(job, &w));
        if (enough(job) || stop_now(job))
            return TG_OK;
    }
    if (w.batches)
        TG_TRY(end_window(job, &w));
    if (whole && job->images_done == images_before)
        return tg_fail(TG_ERROR_INPUT,
                       "none of the %zu training photos of epoch %lld could be read, the log names "
                       "them",
                       job->train.count, (long long)job->state.epoch + 1);
    return TG_END;
}

/* Scores the model after an epoch, and records it. */
static tg_status evaluate_epoch(tg_job *job, tg_evaluation *out)
{
    tg_evaluation e;
    const int64_t begin = tg_clock_ns();
    TG_TRY(tg_job_gather_model(job));
    TG_TRY(tg_job_evaluate(job, exported_params(job), &e));
    if (job->average) {
        tg_evaluation live;
        TG_TRY(tg_job_evaluate(job, job->student.params, &live));
        tg_log_info("without averaging: top-1 %.2f %%", live.top1);
    }
    const tg_eval_record record = {.epoch = job->state.epoch,
                                   .val_top1 = e.top1,
                                   .val_top5 = e.top5,
                                   .val_loss = e.loss,
                                   .val_images = (int64_t)e.images,
                                   .time = tg_clock_unix(tg_clock_ns())};
    if (tg_job_is_first(job) && tg_metrics_write_eval(&job->metrics, &record) != TG_OK)
        tg_log_warning("an evaluation record was lost: %s", tg_error_message());
    if (job->watch->evaluation)
        job->watch->evaluation(job->watch->user, "student", job->state.epoch, &e);
    if (e.not_finite)
        tg_log_warning("the model's answers to %llu of %llu validation photos are not finite",
                       (unsigned long long)e.not_finite, (unsigned long long)e.images);
    job->last = e;
    *out = e;
    tg_wall_span(job->watch->wall, TG_SPAN_EVALUATION, begin);
    return TG_OK;
}

/* Writes the best model so far. Where that fails it does not become the best, and the next one that
 * beats the best on disk is written. */
static tg_status keep_best(tg_job *job, const tg_evaluation *e, bool must, bool *out_kept)
{
    tg_status status = tg_job_is_first(job) ? write_model(job) : TG_OK;
    *out_kept = status == TG_OK;
    if (status < 0 && !must) {
        tg_log_warning("the best model so far was not written: %s", tg_error_message());
        status = TG_OK;
    }
    TG_TRY(tg_job_follow_first(job, "the best model", status, out_kept, sizeof *out_kept));
    if (!*out_kept)
        return TG_OK;
    job->state.best_score = e->top1;
    job->state.best_epoch = job->state.epoch;
    job->state.best_top5 = e->top5;
    job->state.best_loss = e->loss;
    job->state.best_images = e->images;
    job->best = *e;
    return TG_OK;
}

/* *out_scored: no evaluation failed, so what failed is the saving. */
static tg_status finish_epoch(tg_job *job, bool last, bool *out_scored)
{
    int64_t interval = job->options->output.eval_interval;
    tg_evaluation e = {.top1 = NAN};
    bool best = false;
    bool due = last || (interval > 0 && job->state.epoch % interval == 0);
    *out_scored = false;
    if (job->val.count && due)
        TG_TRY(evaluate_epoch(job, &e));
    *out_scored = true;
    double score = e.not_finite ? NAN : e.top1; /* NaN is never the best */
    bool removed;
    TG_TRY(find_removed(job, &removed));
    if (removed)
        return save(job, score, false, true);
    if (tg_state_is_better(score, job->state.best_score)) {
        const int64_t begin = tg_clock_ns();
        TG_TRY(keep_best(job, &e, last, &best));
        tg_wall_span(job->watch->wall, TG_SPAN_CHECKPOINT, begin);
    }
    return save(job, score, best, last);
}

/* Saved once is saved: a second time would have no score to go with it. */
static tg_status leave_stopped(tg_job *job)
{
    if (!job->saved)
        TG_TRY(save(job, NAN, false, true));
    return tg_fail(
        TG_ERROR_STOPPED,
        "stopped on request after %lld updates; everything is saved in %s: the same command with "
        "--output %s --resume auto goes on",
        (long long)job->state.updates, job->run_path, job->run_path);
}

/* The epoch that could not be scored is kept; a resume scores it first. */
static tg_status leave_unscored(tg_job *job, tg_status status)
{
    char reason[TG_ERROR_BYTES];
    if (tg_job_has_ranks(job) && !tg_comm_agreed(job->comm))
        return status; /* only this rank would come to save */
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    if (save(job, NAN, false, true) < 0)
        tg_log_warning("the epoch was not saved either: %s", tg_error_message());
    return tg_fail(status, "%s", reason);
}

/* Without a best evaluation the last weights are the model; not when they have diverged: an update
 * that is not finite is skipped, so the weights alone may not show it. */
static tg_status write_unscored(tg_job *job)
{
    const float *params = exported_params(job);
    bool learned = job->optimizer.updates > 0 || job->state.updates == 0;
    bool finite = learned && job->last.not_finite == 0;
    for (size_t i = 0, n = tg_param_total(&job->student.table); i < n && finite; i++)
        finite = isfinite(params[i]);
    if (!finite)
        return tg_fail(TG_ERROR_FAILED,
                       "the weights, their gradients or the model's answers are not finite after "
                       "%lld updates, and "
                       "no evaluation was better: no model is written. A lower --lr or "
                       "--clip-grad 1 usually helps",
                       (long long)job->state.updates);
    TG_TRY(write_model(job));
    if (job->last.skipped && !job->last.images)
        return tg_fail(TG_ERROR_INPUT,
                       "none of the %llu validation photos could be read, the log names them: the "
                       "model is written, but nothing is known of its accuracy",
                       (unsigned long long)job->last.skipped);
    return TG_OK;
}

static tg_status finish_unscored(tg_job *job)
{
    bool written = true;
    TG_TRY(tg_step_settle(&job->step));
    TG_TRY(tg_job_gather_model(job));
    tg_status status = tg_job_is_first(job) ? write_unscored(job) : TG_OK;
    return tg_job_follow_first(job, "the model", status, &written, sizeof written);
}

tg_status tg_job_train(tg_job *job)
{
    bool complete = true, scored;
    tg_wall_span(job->watch->wall, TG_SPAN_START, 0);
    while (job->state.epoch < job->options->recipe.epochs && complete &&
           (!enough(job) || job->owes_evaluation)) {
        tg_status status = run_epoch(job);
        tg_job_end_epoch_workers(job);
        tg_recorder_end_step(&job->recorder); /* of a step that found no batch */
        TG_TRY(status);
        uint64_t end = job->state.position;
        complete = status == TG_END;
        if (complete) {
            job->saved = false;
            job->state.epoch++;
            job->state.position = 0;
        } else if (!enough(job)) {
            return leave_stopped(job);
        }
        bool last = job->state.epoch == job->options->recipe.epochs || enough(job);
        job->owes_evaluation = false;
        status = finish_epoch(job, last, &scored);
        if (status < 0 && !scored && complete) { /* a resume evaluates this epoch first */
            job->state.epoch--;
            job->state.position = end;
        }
        if (status == TG_ERROR_STOPPED || (status == TG_OK && stop_now(job) && !last))
            return leave_stopped(job);
        if (status < 0)
            return scored ? status : leave_unscored(job, status);
    }
    return job->state.best_epoch < 0 ? finish_unscored(job) : TG_OK;
}
