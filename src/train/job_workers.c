/* --workers auto: trials of numbers of loader workers within the steps of a job (worker_trials.h). Data do not depend on
 * workers, so training is what it is with any fixed number. All ranks try the same number at the same steps, tell each
 * other what came of it, and so choose alike. */
#include "train/job_parts.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/file.h"
#include "os/queue.h"
#include "os/usage.h"
#include "train/worker_trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps before the first trial: the first does what is done once, the others tell how long one takes. */
enum { WARM_STEPS = 3 };

/* Of the memory there is, decoding of all workers that are tried may take so much. */
static const double DECODING_SHARE = 0.1, DECODING_BYTES_PER_PX = 5;

typedef enum stage { WARMING, TRYING, WATCHING, RESTING } stage;

/* What a rank has used so far. */
typedef struct reading {
    tg_usage all, compute;
    tg_queue queue;
    tg_loader_stats loader;
} reading;

/* Of a rank's timed steps; NaN: not known. */
typedef struct account {
    double seconds, wait_s, whole_s; /* whole: those that do not count, too */
    double voluntary, involuntary, compute_voluntary, compute_involuntary;
    double busy_s, pressure_s; /* ran or waited for a core; of the machine */
    double photos, making_s;   /* that the workers made, and how long they took for them together */
} account;

struct tg_auto_workers {
    stage stage;
    tg_worker_trials trials;
    tg_worker_watch watch;
    tg_tune_file file;
    const char *reason;
    int cores, searches;
    int64_t seen, done, images; /* steps of this process; of the trial, and its timed photos */
    bool waits_for_epoch,
        open; /* open: `begin` is of a timed step, and its end has not been read */
    reading begin;
    account mine;
};

static reading read_now(const tg_job *job)
{
    reading r = {
        .all = tg_usage_read(), .compute = tg_usage_read_thread(), .queue = tg_queue_read("")};
    tg_loader_get_stats(job->loader, &r.loader);
    return r;
}

static void close_segment(tg_job *job, tg_auto_workers *a)
{
    if (!a->open)
        return;
    const reading begin = a->begin, end = read_now(job);
    account *m = &a->mine;
    a->open = false;
    m->voluntary += (double)(end.all.voluntary - begin.all.voluntary);
    m->involuntary += (double)(end.all.involuntary - begin.all.involuntary);
    m->compute_voluntary += (double)(end.compute.voluntary - begin.compute.voluntary);
    m->compute_involuntary += (double)(end.compute.involuntary - begin.compute.involuntary);
    m->busy_s += tg_queue_busy_s(&begin.queue, &end.queue);
    m->pressure_s += tg_queue_pressure_s(&begin.queue, &end.queue);
    m->photos += (double)(end.loader.decoded - begin.loader.decoded);
    m->making_s += tg_clock_seconds(end.loader.decode_ns + end.loader.transform_ns -
                                    begin.loader.decode_ns - begin.loader.transform_ns);
}

static void set_workers(const tg_job *job, int workers)
{
    if (tg_loader_set_workers(job->loader, workers) < 0) {
        tg_log_own_warning("workers: %s", tg_error_message());
        tg_error_clear();
    }
}

static void begin_trial(tg_job *job, int workers)
{
    tg_auto_workers *a = job->auto_workers;
    set_workers(job, workers);
    a->done = a->images = 0;
    a->open = false;
    a->waits_for_epoch = a->trials.by_epoch;
    a->mine = (account){0};
}

/* Of all ranks, the same on each. */
static tg_tune_point combine(const tg_job *job, const account *all, int workers)
{
    const tg_auto_workers *a = job->auto_workers;
    tg_tune_point p = {.workers = workers,
                       .trials = 1,
                       .step = job->state.updates - a->trials.timed + 1,
                       .steps = a->trials.timed,
                       .images = a->images,
                       .seconds = fmax(all[0].seconds, 1e-9),
                       .noise = NAN,
                       .run_queue = 0,
                       .pressure = 0};
    for (int r = 0; r < job->comm->size; r++) {
        const account *m = &all[r];
        p.wait_share = fmax(p.wait_share, m->wait_s / p.seconds);
        p.loader_images_per_s += workers * m->photos / m->making_s; /* NaN without photos */
        p.voluntary_per_s += m->voluntary / p.seconds;
        p.involuntary_per_s += m->involuntary / p.seconds;
        p.compute_voluntary_per_s += m->compute_voluntary / p.seconds;
        p.compute_involuntary_per_s += m->compute_involuntary / p.seconds;
        p.run_queue = isnan(m->busy_s) ? NAN : fmax(p.run_queue, m->busy_s / p.seconds);
        p.pressure = isnan(m->pressure_s) ? NAN : fmax(p.pressure, m->pressure_s / p.seconds);
    }
    p.images_per_s = (double)a->images / p.seconds;
    if (workers == 0)
        p.loader_images_per_s = NAN;
    if (p.loader_images_per_s < p.images_per_s) /* it lived on batches that lay ready */
        p.images_per_s = p.loader_images_per_s;
    return p;
}

static void log_rates(const tg_tune_search_record *s)
{
    tg_text line = {0};
    for (size_t i = 0; i < s->point_count; i++)
        tg_text_append_format(&line, "%s%d: %.1f", i ? ", " : "", s->points[i].workers,
                              s->points[i].images_per_s);
    tg_log_info("workers: images/s by number %s (medians of %zu trials in all)",
                tg_text_string(&line), s->trial_count);
    tg_log_info("workers: going on with %s; trials took %lld steps, %.1f s of training, and cost "
                "%.1f s",
                s->why, (long long)s->steps, s->seconds, s->cost_s);
    tg_text_done(&line);
}

/* The file is the first rank's; without it the job goes on as well. */
static void record(tg_job *job, const tg_tune_search_record *search)
{
    tg_auto_workers *a = job->auto_workers;
    if (!tg_job_is_first(job))
        return;
    char *path = tg_path_join(job->run_path, "tune.json");
    tg_status status = path ? tg_tune_append(&a->file, search)
                            : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status == TG_OK)
        status = tg_tune_write(path, &a->file);
    free(path);
    if (status < 0) {
        tg_log_warning("trials of workers were not written: %s", tg_error_message());
        tg_error_clear();
    }
}

static void tell(const tg_job *job)
{
    if (job->watch->workers)
        job->watch->workers(job->watch->user, tg_loader_workers(job->loader));
}

static void decide(tg_job *job)
{
    tg_auto_workers *a = job->auto_workers;
    tg_tune_search_record *s = calloc(1, sizeof *s);
    a->stage = RESTING; /* as it is, where memory is short */
    if (!s)
        return;
    s->time = tg_clock_unix(tg_clock_ns());
    s->step = job->state.updates;
    s->threads = job->options->threads;
    s->cores = a->cores;
    s->ranks = job->comm->size;
    s->batch_size = (int64_t)job->group_batch;
    snprintf(s->reason, sizeof s->reason, "%s", a->reason);
    tg_worker_trials_decide(&a->trials, s);
    set_workers(job, s->chosen);
    log_rates(s);
    record(job, s);
    tell(job);
    tg_worker_watch_begin(&a->watch, tg_tune_chosen(s)->wait_share, ++a->searches);
    a->stage = WATCHING;
    free(s);
}

static tg_status end_trial(tg_job *job)
{
    tg_auto_workers *a = job->auto_workers;
    int workers;
    close_segment(job, a);
    account *all = calloc((size_t)job->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    tg_status status = tg_comm_meet(job->comm, "workers", &a->mine, sizeof a->mine, all);
    if (status == TG_OK && tg_worker_trials_next(&a->trials, &workers)) {
        const tg_tune_point point = combine(job, all, workers);
        tg_worker_trials_add(&a->trials, &point, a->done, all[0].whole_s);
    }
    free(all);
    TG_TRY(status);
    if (tg_worker_trials_next(&a->trials, &workers))
        begin_trial(job, workers);
    else
        decide(job);
    return TG_OK;
}

/* What ranks agree on before the first trial. */
typedef struct setting {
    double step_s;
    int cores, most;
} setting;

static setting own_setting(const tg_job *job, double step_s)
{
    tg_cpu_share share;
    const int threads = job->options->threads;
    tg_cpu_share_read("", 0, 0, &share);
    int cores = share.cpus / tg_job_ranks_here(job->comm); /* bound, all of share is its own */
    cores = cores > threads ? cores : threads < share.cpus ? threads : share.cpus;
    const double room = DECODING_SHARE * job->memory.available_bytes /
                        fmax(DECODING_BYTES_PER_PX * tg_job_photo_px(&job->train), 1);
    return (setting){
        .step_s = step_s, .cores = cores, .most = room < cores && room > 0 ? (int)room : cores};
}

static tg_status agree(tg_job *job, double step_s, setting *out)
{
    const setting mine = own_setting(job, step_s);
    setting *all = calloc((size_t)job->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    tg_status status = tg_comm_meet(job->comm, "workers", &mine, sizeof mine, all);
    *out = mine;
    for (int r = 0; r < job->comm->size && status == TG_OK; r++) {
        out->cores = all[r].cores < out->cores ? all[r].cores : out->cores;
        out->most = all[r].most < out->most ? all[r].most : out->most;
    }
    out->step_s = all[0].step_s;
    free(all);
    return status;
}

static int64_t steps_left(const tg_job *job)
{
    const int64_t limit = job->options->output.max_steps;
    const int64_t end = limit > 0 && limit < job->total_updates ? limit : job->total_updates;
    return end - job->state.updates;
}

/* Trials begin with the next step, or with the next epoch. */
static tg_status begin_search(tg_job *job, double step_s, const char *reason)
{
    tg_auto_workers *a = job->auto_workers;
    const int64_t window = job->options->recipe.grad_accum_steps;
    setting s = {0};
    int workers = 0;
    TG_TRY(agree(job, step_s, &s));
    const tg_worker_plan plan = {.first = tg_loader_workers(job->loader),
                                 .most = s.most,
                                 .left = steps_left(job),
                                 .epoch = job->steps_per_epoch,
                                 .settle = (TG_WORKERS_SETTLE + window - 1) / window,
                                 .step_s = s.step_s};
    a->reason = reason;
    a->cores = s.cores;
    if (!tg_worker_trials_begin(&a->trials, &plan)) {
        tg_log_info("workers: %d by rule: too few steps are left to measure", plan.first);
        a->stage = RESTING;
        return TG_OK;
    }
    a->stage = TRYING;
    if (tg_worker_trials_next(&a->trials, &workers))
        begin_trial(job, workers);
    return TG_OK;
}

static tg_status warm(tg_job *job, const tg_step_record *step)
{
    tg_auto_workers *a = job->auto_workers;
    if (++a->seen > 1)
        a->mine.seconds += step->t_step;
    if (a->seen < WARM_STEPS)
        return TG_OK;
    return begin_search(job, a->mine.seconds / (WARM_STEPS - 1), "start");
}

static tg_status try_step(tg_job *job, const tg_step_record *step)
{
    tg_auto_workers *a = job->auto_workers;
    if (a->waits_for_epoch)
        return TG_OK;
    a->mine.whole_s += step->t_step;
    if (a->done++ < a->trials.settle)
        return TG_OK;
    a->mine.seconds += step->t_step;
    a->mine.wait_s += step->t_data;
    a->images += step->images;
    return a->done == a->trials.settle + a->trials.timed ? end_trial(job) : TG_OK;
}

/* With several ranks, of what all have told of the step before: each of them sees the same. */
static tg_status watch_step(tg_job *job, const tg_step_record *step)
{
    tg_auto_workers *a = job->auto_workers;
    double step_s = step->t_step, wait_s = step->t_data;
    if (tg_job_has_ranks(job)) {
        step_s = job->ranks.told_step ? job->ranks.each[0].t_step : 0;
        wait_s = 0;
        for (int r = 0; r < job->comm->size && job->ranks.told_step; r++)
            wait_s = fmax(wait_s, job->ranks.each[r].t_data);
    }
    if (!tg_worker_watch_add(&a->watch, step_s, wait_s))
        return TG_OK;
    tg_log_info("workers: photos are waited for more than before: trying numbers again");
    return begin_search(job, step_s, "wait");
}

tg_status tg_job_note_workers(tg_job *job, const tg_step_record *step)
{
    if (!job->auto_workers || job->auto_workers->stage == RESTING)
        return TG_OK;
    switch (job->auto_workers->stage) {
    case WARMING:
        return warm(job, step);
    case TRYING:
        return try_step(job, step);
    default:
        return watch_step(job, step);
    }
}

/* A trial that an epoch's beginning interrupts, with no batch ready, is begun anew, or is whole epochs. */
void tg_job_begin_epoch_workers(tg_job *job)
{
    tg_auto_workers *a = job->auto_workers;
    if (!a || a->stage != TRYING)
        return;
    if (!a->trials.by_epoch)
        begin_trial(job, tg_loader_workers(job->loader));
    else if (job->state.position == 0)
        a->waits_for_epoch = false;
}

void tg_job_begin_step_workers(tg_job *job)
{
    tg_auto_workers *a = job->auto_workers;
    if (!a || a->stage != TRYING || a->waits_for_epoch || a->open || a->done < a->trials.settle)
        return;
    a->begin = read_now(job);
    a->open = true;
}

void tg_job_end_epoch_workers(tg_job *job)
{
    if (job->auto_workers)
        close_segment(job, job->auto_workers);
}

/* What a run that goes on has chosen before. */
typedef struct recorded {
    int workers, threads, ranks; /* workers -1: nothing */
    int64_t batch_size;
    double wait_share;
} recorded;

static recorded read_recorded(tg_job *job)
{
    tg_auto_workers *a = job->auto_workers;
    recorded r = {.workers = -1};
    char *path = tg_path_join(job->run_path, "tune.json");
    if (path && tg_file_exists(path) && tg_tune_read(path, &a->file) < 0)
        tg_log_warning("trials of workers so far are forgotten: %s", tg_error_message());
    tg_error_clear();
    free(path);
    const tg_tune_search_record *s = tg_tune_last(&a->file);
    const tg_tune_point *chosen = s ? tg_tune_chosen(s) : NULL;
    if (chosen)
        r = (recorded){.workers = s->chosen,
                       .threads = s->threads,
                       .ranks = s->ranks,
                       .batch_size = s->batch_size,
                       .wait_share = chosen->wait_share};
    return r;
}

tg_status tg_job_open_workers(tg_job *job)
{
    recorded r = {.workers = -1};
    if (job->options->data.workers >= 0)
        return TG_OK;
    job->auto_workers = calloc(1, sizeof *job->auto_workers);
    TG_TRY(tg_comm_agree(job->comm, "loader workers",
                         job->auto_workers
                             ? TG_OK
                             : tg_fail(TG_ERROR_MACHINE, "out of memory for trials of workers")));
    if (job->state.updates == 0)
        return TG_OK;
    if (tg_job_is_first(job))
        r = read_recorded(job);
    TG_TRY(tg_comm_take_first(job->comm, "workers", &r, sizeof r));
    if (r.workers < 0 || r.threads != job->options->threads || r.ranks != job->comm->size ||
        r.batch_size != (int64_t)job->group_batch)
        return TG_OK;
    set_workers(job, r.workers);
    tell(job);
    tg_worker_watch_begin(&job->auto_workers->watch, r.wait_share, 1);
    job->auto_workers->searches = 1;
    job->auto_workers->stage = WATCHING;
    tg_log_info("workers: going on with %d, as measured before (tune.json)", r.workers);
    return TG_OK;
}

void tg_job_close_workers(tg_job *job)
{
    if (job->auto_workers)
        tg_tune_done(&job->auto_workers->file);
    free(job->auto_workers);
    job->auto_workers = NULL;
}
