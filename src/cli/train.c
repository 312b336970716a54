/* tagine train and tagine distill: from options to a finished run directory. */
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options_idle.h"
#include "cli/options_train.h"
#include "cli/same_options.h"
#include "cli/signal.h"
#include "cli/train_session.h"
#include "os/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tg_command_group TRAIN_GROUP_LIST[] = {TG_TRAIN_GROUPS};
static const tg_command_group DISTILL_GROUP_LIST[] = {TG_DISTILL_GROUP, TG_TRAIN_GROUPS};

/* Written with the memory of the first step, which is looked at next. */
static void note_plan(tg_train_session *s, const tg_train_progress *p)
{
    const int64_t limit = s->options->output.max_steps;
    s->info.plan = (tg_run_plan){
        .epochs = p->epochs,
        .steps_per_epoch = p->steps_per_epoch,
        .total_steps = limit > 0 && limit < p->total_updates ? limit : p->total_updates};
}

static void show_step(void *user, const tg_train_progress *p, const tg_step_record *record)
{
    note_plan(user, p);
    tg_train_session_show(user, record->step);
    tg_observer_look(&((tg_train_session *)user)->observer);
    char what[64];
    tg_text note = {0};
    snprintf(what, sizeof what, "epoch %lld/%lld", (long long)p->epoch + 1, (long long)p->epochs);
    tg_text_append_format(&note, "loss %.3f  %.1f images/s  ", record->loss, p->images_per_s);
    tg_console_append_duration(&note, p->seconds_left);
    tg_text_append_string(&note, " left");
    if (p->slow_rank >= 0 && p->slow_share > 0)
        tg_text_append_format(&note, "  rank %d slow: +%.0f %% in %s", p->slow_rank,
                              100 * p->slow_share, p->slow_phase);
    tg_console_progress(what, (uint64_t)p->step, (uint64_t)p->steps_per_epoch,
                        tg_text_string(&note));
    tg_text_done(&note);
}

static void show_evaluating(void *user, uint64_t done, uint64_t total)
{
    tg_train_session_show(user, 0);
    tg_observer_look(&((tg_train_session *)user)->observer);
    tg_console_progress("evaluating", done, total, "");
}

/* What another rank was asked by signal counts as asked of this one. */
static void adopt_stop(void *user, int stop)
{
    (void)user;
    tg_signal_adopt(stop);
}

static int stop_wanted(void *user)
{
    (void)user;
    return tg_signal_stop();
}

static void show_evaluation(void *user, const char *what, int64_t epoch, const tg_evaluation *e)
{
    tg_train_session *s = user;
    tg_console_progress_clear();
    if (strcmp(what, "teacher") == 0)
        tg_train_session_keep_teacher(s, e);
    if (strcmp(what, "student") == 0)
        tg_log_info("epoch %lld/%lld  validation: top-1 %.2f %%  top-5 %.2f %%  loss %.4f  (%llu "
                    "photos)",
                    (long long)epoch, (long long)s->options->recipe.epochs, e->top1, e->top5,
                    e->loss, (unsigned long long)e->images);
}

static void print_json(const char *path, const tg_train_result *r, tg_text *out)
{
    tg_json_writer w = tg_json_writer_init(out);
    tg_json_begin_object(&w, NULL);
    tg_json_put_string(&w, "output", path);
    tg_json_put_uint(&w, "parameters", r->parameters);
    tg_json_put_int(&w, "epochs", r->epochs);
    tg_json_put_int(&w, "steps", r->updates);
    tg_json_put_double(&w, "train_s", r->seconds);
    tg_json_put_double(&w, "images_per_s", r->images_per_s);
    if (r->evaluation.images) {
        tg_json_put_double(&w, "val_top1", r->evaluation.top1);
        tg_json_put_double(&w, "val_top5", r->evaluation.top5);
        tg_json_put_double(&w, "val_loss", r->evaluation.loss);
    }
    if (r->teacher.images)
        tg_json_put_double(&w, "teacher_top1", r->teacher.top1);
    tg_json_end_object(&w);
    tg_text_append_char(out, '\n');
}

static void print_result(const char *path, const tg_train_result *r, tg_text *out)
{
    tg_text_append_format(out, "%lld update%s in ", (long long)r->updates,
                          r->updates == 1 ? "" : "s");
    tg_console_append_duration(out, r->seconds);
    tg_text_append_format(out, ", %.1f images/s\n", r->images_per_s);
    if (r->evaluation.images)
        tg_text_append_format(out, "best top-1 %.2f %% of %llu validation photos\n",
                              r->evaluation.top1, (unsigned long long)r->evaluation.images);
    tg_text_append_format(out, "model: %s/model\n", path);
}

/* Before the run directory is made: typing mistakes leave nothing behind. */
static tg_status check_data(const tg_data_choice *choice, const char *output)
{
    const char *ignored;
    if (!choice->data)
        return tg_fail(TG_ERROR_USAGE, "--data is missing: the folder with the photos");
    TG_TRY(tg_data_choice_train_split(choice, &ignored));
    return tg_data_choice_check_output(choice, output);
}

/* The first rank's result, for people or programs. */
static tg_status tell_result(const tg_invocation *invocation, const char *path,
                             const tg_train_result *result)
{
    tg_text text = {0};
    if (invocation->common->json)
        print_json(path, result, &text);
    else
        print_result(path, result, &text);
    tg_status status = tg_console_print(&text);
    tg_text_done(&text);
    return status;
}

static tg_status run_resolved(const tg_invocation *invocation, const tg_train_options *options,
                              const tg_rank_cores *cores)
{
    const char *path = options->output.output;
    tg_train_session s = {.invocation = invocation,
                          .options = options,
                          .cores = cores,
                          .wall = {.begun_ns = tg_process_begun_ns()}};
    tg_train_result result;
    const bool first = options->comm->rank == 0;
    const tg_train_watch watch = {.user = &s,
                                  .opened = first ? tg_train_session_begin
                                                  : tg_train_session_note_beginning,
                                  .subject = first ? tg_train_session_keep_subject : NULL,
                                  .memory = first ? tg_train_session_keep_memory : NULL,
                                  .workers = first ? tg_train_session_keep_workers : NULL,
                                  .step = first ? show_step : NULL,
                                  .evaluation = show_evaluation,
                                  .evaluating = first ? show_evaluating : NULL,
                                  .present = first ? tg_train_session_present : NULL,
                                  .stopping = adopt_stop,
                                  .stop = stop_wanted,
                                  .wall = first ? &s.wall : NULL};
    TG_TRY(tg_comm_agree(options->comm, "data", check_data(&options->data, path)));
    tg_status status = tg_train_session_open(&s, path);
    if (status == TG_OK)
        status = tg_train_job_run(options, path, &watch, &result);
    if (status == TG_ERROR_STOPPED && s.observer.stop_reason[0])
        status = tg_fail_prefix(status, "%s", s.observer.stop_reason);
    tg_console_progress_end();
    tg_train_session_close(&s, status);
    TG_TRY(status);
    return first ? tell_result(invocation, path, &result) : TG_OK;
}

static tg_status run_ranks(const tg_invocation *invocation, tg_train_settings *settings)
{
    tg_comm *comm;
    tg_rank_cores cores = {0};
    TG_TRY(tg_parallel_open(&settings->parallel, &comm));
    settings->train.comm = comm;
    settings->train.ranks = tg_parallel_ranks(&settings->parallel);
    settings->train.stall_s = settings->parallel.stall_s;
    tg_console_open(invocation->common->quiet, invocation->common->verbose);
    tg_status status =
        tg_comm_agree(comm, "the same options", tg_same_options(comm, invocation->options));
    if (status == TG_OK) /* the clock in a folder's name may differ between ranks */
        status = tg_comm_take_first(comm, "output", settings->output, sizeof settings->output);
    if (status == TG_OK)
        status =
            tg_rank_cores_open(invocation, comm, tg_train_workers_beside, &settings->train, &cores);
    if (status == TG_OK) {
        settings->train.threads = cores.threads;
        status = run_resolved(invocation, &settings->train, &cores);
    }
    tg_rank_cores_close(&cores);
    tg_parallel_close(comm, status);
    return status;
}

static tg_status run(const tg_invocation *invocation)
{
    tg_train_settings settings = *(const tg_train_settings *)invocation->settings;
    TG_TRY(tg_observer_check(&settings.observer));
    TG_TRY(tg_train_settings_resolve(&settings, invocation->command->name,
                                     tg_invocation_threads(invocation),
                                     (tg_cpu_level)invocation->common->cpu_isa));
    tg_train_settings_warn_idle(invocation->options, invocation->settings);
    if (settings.train.model.initial_checkpoint &&
        tg_options_source(invocation->options, "model") == TG_OPTION_FROM_DEFAULT)
        settings.train.model.model = NULL; /* a default asks for nothing */
    return run_ranks(invocation, &settings);
}

static tg_status run_distill(const tg_invocation *invocation)
{
    if (!((const tg_train_settings *)invocation->settings)->train.distill.teacher)
        return tg_fail(TG_ERROR_USAGE, "--teacher is missing: the model folder to learn from");
    return run(invocation);
}

static const tg_command_note FILES[] = {
    {"OUTPUT, or runs/COMMAND-TIME", "The run directory"},
    {"OUTPUT/model/", "The model of the best evaluation, or the last where nothing was evaluated"},
    {"OUTPUT/job.yaml", "Every option as resolved; --config reads it"},
    {"OUTPUT/run.json", "The machine, what ran on it and how it ended"},
    {"OUTPUT/metrics.jsonl", "A line for each step and each evaluation"},
    {"OUTPUT/ranks.jsonl", "With several ranks: what each spent each step on"},
    {"OUTPUT/spans.jsonl", "What the time went to besides steps; tagine profile adds it up"},
    {"OUTPUT/tune.json", "With --workers auto: numbers of workers tried, and why one was taken"},
    {"OUTPUT/trace/rank-N.json.gz",
     "Timelines of --trace-steps and of outliers, which Perfetto opens"},
    {"OUTPUT/tensorboard/", "Event files of --tensorboard"},
    {"OUTPUT/log/rank-N.log", "The log of each rank; of one alone, rank-0.log"},
    {"OUTPUT/findings.json", "What rules found; diagnose shows it"},
    {"OUTPUT/checkpoints/",
     "step-N, and the links last and best: what a stopped run needs to go on"},
    {"OUTPUT/failure", "Why the run failed, if it did"},
    {"OUTPUT/lock", "Held while a job runs here"},
    {0},
};

static const tg_command_note TRAIN_EXAMPLES[] = {
    {"tagine train --data photos --img-size 32 --patch-size 8 --embed-dim 96 --depth 4 --epochs 2 "
     "--output runs/teacher",
     "A small network from fresh weights, on 32 px pictures"},
    {"tagine train --data photos --initial-checkpoint runs/teacher --epochs 1 --lr 1e-4 --output "
     "runs/tuned",
     "Go on from a trained model, or one from timm, as a new run"},
    {"tagine train --config runs/teacher/job.yaml --output runs/teacher --resume auto --epochs 3",
     "Go on with a run where it stopped, here for an epoch more"},
    {0},
};

const tg_command tg_command_train = {
    .name = "train",
    .arguments = "",
    .summary = "Train or fine-tune a vision transformer on labelled photos",
    .description =
        "Trains --model on the photos of --data: an architecture name starts from fresh weights, "
        "a\n"
        "model folder is fine-tuned (a new class count gets a new head). Everything the job "
        "leaves\n"
        "behind is in --output: records, checkpoints, and the finished model in OUTPUT/model.\n\n"
        "SIGINT, SIGTERM and SIGHUP save and leave; --resume auto goes on at the exact photo.",
    .examples = TRAIN_EXAMPLES,
    .files = FILES,
    .see_also = "distill, eval, plan, data check, bench train",
    .groups = TRAIN_GROUP_LIST,
    .group_count = TG_COUNT_OF(TRAIN_GROUP_LIST),
    .settings_bytes = sizeof(tg_train_settings),
    .run = run,
};

static const tg_command_note DISTILL_EXAMPLES[] = {
    {"tagine distill --data photos --teacher runs/teacher --img-size 32 --patch-size 8 --embed-dim "
     "48 --depth 2 --epochs 2 --output runs/student",
     "A student of half the teacher's width"},
    {0},
};

const tg_command tg_command_distill = {
    .name = "distill",
    .arguments = "",
    .summary = "Train a small student from a frozen teacher",
    .description =
        "Trains --model (the student) to say what --teacher says, mixed with the labels by\n"
        "--kd-alpha: 0 labels alone, 1 the teacher alone (no labels needed). The teacher sees the\n"
        "same crop and flip at its own size, mean and std. Its accuracy on the validation photos\n"
        "is shown at the start, and every record holds both loss terms.",
    .examples = DISTILL_EXAMPLES,
    .files = FILES,
    .see_also = "train, eval, bench distill",
    .groups = DISTILL_GROUP_LIST,
    .group_count = TG_COUNT_OF(DISTILL_GROUP_LIST),
    .settings_bytes = sizeof(tg_train_settings),
    .run = run_distill,
};
