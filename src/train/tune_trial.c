/* One trial: a job is opened with a setting, steps for some time, and is closed again. */
#include "train/tune_parts.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/queue.h"
#include "os/usage.h"
#include "train/pictures.h"

#include <math.h>
#include <stdlib.h>

/* As many generated batches as the loader keeps (data/loader.h: prefetch and one in use). */
enum { GENERATED_BATCHES = 3 };

/* A wish beyond all signals: the first rank's, that the steps have taken long enough. */
enum { TIME_IS_OVER = 1 << 16 };

/* Any small rate: the weights are thrown away. */
#define RATE 1e-4

typedef struct trial {
    const tg_tune_bed *bed;
    tg_train_options options;
    tg_job job;
    tg_pictures pictures[GENERATED_BATCHES];
    uint64_t epoch, batches;
    bool reading; /* an epoch is under way */
    int64_t wait_ns;
    double images; /* of all ranks */
} trial;

/* What a rank tells after the opening. */
typedef struct opening {
    int status; /* tg_status */
    double predicted_bytes;
} opening;

/* And at the end. */
typedef struct account {
    double seconds, wait_s, cpu_s, voluntary, involuntary, loader_images_per_s, rss_bytes,
        elapsed_s, busy_s, pressure_s;
    int stop;
} account;

static tg_status make_pictures(trial *t)
{
    const tg_job *job = &t->job;
    if (t->bed->has_photos)
        return TG_OK;
    for (size_t i = 0; i < GENERATED_BATCHES; i++)
        TG_TRY(tg_pictures_open(
            &job->student.info.config, job->teacher.vit ? &job->teacher.info.config : NULL,
            job->student.info.config.num_classes, job->share,
            GENERATED_BATCHES * (uint64_t)job->comm->rank + i, &t->pictures[i]));
    return TG_OK;
}

static tg_status open_trial(trial *t, double predicted_bytes)
{
    const double room = tg_tune_bed_room(t->bed);
    if (predicted_bytes > room)
        return tg_fail(TG_ERROR_MACHINE, "%.0f MiB are needed, and only %.0f MiB are there",
                       predicted_bytes / 0x1p20, room / 0x1p20);
    TG_TRY(tg_job_open_device(&t->job));
    TG_TRY(tg_job_build(&t->job));
    return make_pictures(t);
}

static void close_trial(trial *t)
{
    tg_loader_close(t->job.loader); /* before the list that it borrows goes its own way */
    t->job.loader = NULL;
    t->job.train = (tg_dataset){0};
    tg_job_close(&t->job);
    for (size_t i = 0; i < GENERATED_BATCHES; i++)
        tg_pictures_close(&t->pictures[i]);
    tg_memory_trim();
}

static tg_status next_batch(trial *t, const tg_batch **out)
{
    tg_loader *loader = t->job.loader;
    tg_status status;
    if (!loader) {
        *out = &t->pictures[t->batches++ % GENERATED_BATCHES].batch;
        return TG_OK;
    }
    const int64_t start = tg_clock_ns();
    do {
        if (!t->reading)
            TG_TRY(tg_loader_start_epoch(loader, t->epoch++, 0));
        status = tg_loader_next(loader, out);
        TG_TRY(status);
        t->reading = status != TG_END;
    } while (status == TG_END);
    t->wait_ns += tg_clock_ns() - start;
    return TG_OK;
}

/* A whole window of micro-batches. */
static tg_status run_step(trial *t, bool over, int *out_stop)
{
    tg_job *job = &t->job;
    const int64_t window = t->options.recipe.grad_accum_steps;
    const tg_batch *batch;
    tg_step_report report;
    for (int64_t i = 0; i < window; i++) {
        TG_TRY(next_batch(t, &batch));
        tg_status status = tg_step_micro(&job->step, batch, t->epoch, i + 1 == window);
        if (job->loader)
            tg_loader_release(job->loader, batch);
        TG_TRY(status);
    }
    int stop = tg_job_stop_wanted(job);
    if (!stop && over)
        stop = TIME_IS_OVER;
    TG_TRY(tg_step_update(&job->step, RATE, stop, &report));
    t->images += (double)report.images;
    *out_stop = report.stop;
    return TG_OK;
}

/* What the workers can give in the long run, from what a photo took them; NaN: none of their own, or no photo. */
static double loader_rate(const trial *t, const tg_loader_stats *before)
{
    tg_loader_stats now;
    if (!t->job.loader || t->job.workers == 0)
        return NAN;
    tg_loader_get_stats(t->job.loader, &now);
    const double photos = (double)(now.decoded - before->decoded);
    const double busy = tg_clock_seconds(now.decode_ns + now.transform_ns - before->decode_ns -
                                         before->transform_ns);
    return photos > 0 && busy > 0 ? t->job.workers * photos / busy : NAN;
}

/* Timed steps, after one that is not (seconds < 0: without it). The first rank says when it is enough. */
static tg_status run_steps(trial *t, double seconds, tg_tune_trial *out, account *mine)
{
    const bool first = tg_job_is_first(&t->job);
    tg_loader_stats photos = {0};
    int stop = 0;
    if (seconds >= 0)
        TG_TRY(run_step(t, false, &stop));
    if (stop)
        return tg_fail(TG_ERROR_STOPPED, "stopped by a signal");
    if (t->job.loader)
        tg_loader_get_stats(t->job.loader, &photos);
    const tg_usage before = tg_usage_read();
    const tg_queue queue = tg_queue_read("");
    const int64_t start = tg_clock_ns();
    t->wait_ns = 0;
    t->images = 0;
    for (; !stop; out->steps++) {
        const double so_far = tg_clock_seconds(tg_clock_ns() - start), n = (double)out->steps;
        const bool over = n > 0 ? so_far * (n + 1) / n >= seconds : seconds <= 0;
        TG_TRY(run_step(t, first && over, &stop));
    }
    TG_TRY(tg_step_settle(&t->job.step));
    const tg_usage after = tg_usage_read();
    const tg_queue queued = tg_queue_read("");
    *mine = (account){.seconds = tg_clock_seconds(tg_clock_ns() - start),
                      .wait_s = tg_clock_seconds(t->wait_ns),
                      .cpu_s = tg_clock_seconds(after.user_ns + after.system_ns - before.user_ns -
                                                before.system_ns),
                      .voluntary = (double)(after.voluntary - before.voluntary),
                      .involuntary = (double)(after.involuntary - before.involuntary),
                      .loader_images_per_s = loader_rate(t, &photos),
                      .busy_s = tg_queue_busy_s(&queue, &queued),
                      .pressure_s = tg_queue_pressure_s(&queue, &queued),
                      .rss_bytes = (double)tg_memory_rss_bytes(),
                      .elapsed_s = tg_clock_seconds(tg_clock_ns() - t->bed->start_ns),
                      .stop = stop == TIME_IS_OVER ? tg_job_stop_wanted(&t->job) : stop};
    return TG_OK;
}

static void sum_up(const account *all, int ranks, const trial *t, tg_tune_trial *out)
{
    double cpu_s = 0, wait_s = 0, loader = 0, voluntary = 0, involuntary = 0, busy_s = 0,
           pressure_s = 0;
    for (int r = 0; r < ranks; r++) {
        cpu_s += all[r].cpu_s;
        loader += all[r].loader_images_per_s; /* NaN where any is */
        voluntary += all[r].voluntary;
        involuntary += all[r].involuntary;
        wait_s = fmax(wait_s, all[r].wait_s);
        busy_s = isnan(all[r].busy_s) ? NAN : fmax(busy_s, all[r].busy_s);
        pressure_s = isnan(all[r].pressure_s) ? NAN : fmax(pressure_s, all[r].pressure_s);
        out->rss_bytes = fmax(out->rss_bytes, all[r].rss_bytes);
    }
    out->seconds = all[0].seconds;
    out->images = (int64_t)t->images;
    out->images_per_s = t->images / out->seconds;
    if (loader < out->images_per_s)
        out->images_per_s = loader;
    out->step_s = out->seconds / (double)out->steps;
    out->wait_s = wait_s / (double)out->steps;
    out->loader_images_per_s = loader;
    out->cpu_s_per_image = cpu_s / fmax(t->images, 1);
    out->run_queue = busy_s / out->seconds;
    out->pressure = pressure_s / out->seconds;
    out->voluntary_per_s = voluntary / out->seconds;
    out->involuntary_per_s = involuntary / out->seconds;
}

/* Whether all have opened, and if not, whether memory is why; both are the same on all ranks. */
static tg_status agree_on_opening(tg_comm *comm, tg_status mine, double predicted_bytes,
                                  tg_tune_trial *out)
{
    const opening own = {.status = mine, .predicted_bytes = predicted_bytes};
    opening *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    out->fits = true;
    bool failed = false;
    tg_status status = tg_comm_meet(comm, "opening a trial", &own, sizeof own, all);
    for (int r = 0; r < comm->size && status == TG_OK; r++) {
        out->predicted_bytes = fmax(out->predicted_bytes, all[r].predicted_bytes);
        out->fits = out->fits && all[r].status >= 0;
        failed = failed || (all[r].status < 0 && all[r].status != TG_ERROR_MACHINE);
    }
    free(all);
    if (status == TG_OK && failed)
        status = tg_comm_agree(comm, "opening a trial", mine);
    return status;
}

static tg_status agree_on_account(trial *t, const account *mine, tg_tune_bed *bed,
                                  tg_tune_trial *out)
{
    tg_comm *comm = bed->comm;
    account *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = tg_comm_meet(comm, "a trial", mine, sizeof *mine, all);
    int stop = 0;
    if (status == TG_OK) {
        sum_up(all, comm->size, t, out);
        bed->elapsed_s = all[0].elapsed_s;
        for (int r = 0; r < comm->size; r++)
            stop = stop ? stop : all[r].stop;
    }
    free(all);
    if (stop)
        return tg_fail(TG_ERROR_STOPPED, "stopped by a signal");
    return status;
}

tg_status tg_tune_bed_measure(void *user, const tg_tune_setting *setting, double seconds,
                              tg_tune_trial *out)
{
    tg_tune_bed *bed = user;
    trial t = {.bed = bed, .options = tg_tune_bed_options(bed, setting)};
    tg_tune_trial result = {.setting = *setting};
    account mine = {0};
    double predicted_bytes = 0;
    t.job = (tg_job){
        .options = &t.options, .watch = &bed->watch, .comm = bed->comm, .train = bed->data};
    tg_status status = tg_tune_bed_predict(bed, setting, &predicted_bytes);
    if (status == TG_OK)
        status = open_trial(&t, predicted_bytes);
    if (status == TG_ERROR_MACHINE)
        tg_log_info("batch %lld does not fit: %s", (long long)setting->batch_size,
                    tg_error_message());
    status = agree_on_opening(bed->comm, status, predicted_bytes, &result);
    if (status == TG_OK && result.fits)
        status = run_steps(&t, seconds, &result, &mine);
    if (status == TG_OK && result.fits)
        status = agree_on_account(&t, &mine, bed, &result);
    close_trial(&t);
    if (status == TG_OK)
        *out = result;
    return status;
}
