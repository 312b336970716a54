#include "report/dashboards.h"

#include "base/log.h"
#include "report/prometheus.h"
#include "report/scalars.h"

#include <math.h>
#include <stdlib.h>

/* Machines have a record so often. */
#define SAMPLE_S 5.0

static void take_step(void *user, const tg_step_record *step)
{
    tg_dashboards *d = user;
    if (step->step < d->first_step)
        return;
    d->step = step->step;
    if (d->tensorboard && d->status == TG_OK)
        d->status = tg_scalars_step(&d->events, step, d->looked_at);
}

static void take_eval(void *user, const tg_eval_record *eval)
{
    tg_dashboards *d = user;
    if (d->tensorboard && d->status == TG_OK && d->step)
        d->status = tg_scalars_eval(&d->events, eval, d->step, d->looked_at);
}

static void take_samples(tg_dashboards *d)
{
    if (!d->tensorboard || d->looked_at - d->sampled_at < SAMPLE_S)
        return;
    d->sampled_at = d->looked_at;
    for (size_t h = 0; h < d->live->host_count && d->status == TG_OK; h++) {
        const tg_live_host *host = &d->live->hosts[h];
        if (host->sample.seconds > 0 && host->sample.time > d->begin)
            d->status = tg_scalars_sample(&d->events, host->head.host, host->head.cores,
                                          &host->sample, d->step);
    }
}

static void give_up(const char **dashboard, const char *what)
{
    tg_log_warning("%s: nothing more is written: %s", what, tg_error_message());
    tg_error_clear();
    *dashboard = NULL;
}

void tg_dashboards_open(const char *run, const char *tensorboard, const char *prometheus,
                        int64_t first_step, double now, tg_dashboards *out)
{
    const tg_live_visit visit = {.user = out, .step = take_step, .eval = take_eval};
    *out = (tg_dashboards){.tensorboard = tensorboard,
                           .prometheus = prometheus,
                           .first_step = first_step,
                           .begin = now};
    if (!tensorboard && !prometheus)
        return;
    if (tensorboard && tg_event_file_open(tensorboard, now, first_step, &out->events) < 0)
        give_up(&out->tensorboard, "TensorBoard");
    tg_live *live = malloc(sizeof *live);
    if (live && tg_live_open(run, &visit, live) == TG_OK) {
        out->live = live;
        return;
    }
    tg_log_warning("dashboards: %s", live ? tg_error_message() : "out of memory");
    free(live);
}

void tg_dashboards_look(tg_dashboards *d, double now, bool force)
{
    if (!d->live || (!d->tensorboard && !d->prometheus) ||
        (!force && now - d->looked_at < TG_DASHBOARDS_S))
        return;
    d->looked_at = now;
    d->status = TG_OK;
    if (tg_live_look(d->live, now, NULL) < 0) {
        tg_log_warning("dashboards: %s", tg_error_message());
        tg_error_clear();
        return;
    }
    take_samples(d);
    if (d->status < 0)
        give_up(&d->tensorboard, "TensorBoard");
    if (d->prometheus && tg_prometheus_write(d->live, d->prometheus) < 0)
        give_up(&d->prometheus, "Prometheus");
}

void tg_dashboards_close(tg_dashboards *d)
{
    if (!d->live)
        return;
    tg_live_close(d->live);
    free(d->live);
    tg_event_file_close(&d->events);
    *d = (tg_dashboards){0};
}
