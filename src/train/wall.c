#include "train/wall.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/file.h"
#include "run/metrics.h"

#include <math.h>
#include <stdlib.h>

static void write(tg_wall *wall, tg_span_kind kind, double time, double seconds, int64_t step)
{
    const tg_span span = {.kind = kind, .time = time, .seconds = seconds, .step = step};
    if (tg_spans_write(&wall->file, &span) != TG_OK)
        tg_log_warning("a span (%s) was lost: %s", tg_span_kind_name(kind), tg_error_message());
}

static void add_dropped(void *user, const tg_step_record *step, const tg_eval_record *eval)
{
    tg_wall_dropped *d = user;
    (void)eval;
    if (!step || step->step <= d->last_step)
        return;
    d->count++;
    d->seconds += isnan(step->t_step) ? 0 : step->t_step;
    d->until = fmax(d->until, step->time);
}

void tg_wall_count_dropped(tg_wall *wall, const char *run_path, int64_t last_step)
{
    if (!wall)
        return;
    wall->dropped = (tg_wall_dropped){.last_step = last_step, .until = NAN};
    char *path = tg_path_join(run_path, "metrics.jsonl");
    if (!path || tg_metrics_read(path, add_dropped, &wall->dropped, NULL) < 0)
        tg_error_clear(); /* absent */
    free(path);
}

tg_status tg_wall_open(tg_wall *wall, const char *run_path, bool resume, int64_t last_step)
{
    if (!wall)
        return TG_OK;
    char *path = tg_path_join(run_path, "spans.jsonl");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    tg_status status = tg_spans_open(path, resume, &wall->file);
    free(path);
    TG_TRY(status);
    wall->open = true;
    wall->step = last_step;
    wall->until_ns = wall->begun_ns;
    write(wall, TG_SPAN_ATTEMPT, tg_clock_unix(wall->begun_ns), NAN, last_step);
    const tg_wall_dropped *d = &wall->dropped;
    if (resume && d->count)
        write(wall, TG_SPAN_DROPPED, d->until - d->seconds, d->seconds, d->count);
    return TG_OK;
}

void tg_wall_step(tg_wall *wall, int64_t step, int64_t end_ns)
{
    if (!wall)
        return;
    wall->step = step;
    wall->until_ns = end_ns;
}

int64_t tg_wall_span(tg_wall *wall, tg_span_kind kind, int64_t begin_ns)
{
    const int64_t now = tg_clock_ns();
    if (!wall || !wall->open)
        return now;
    if (!begin_ns)
        begin_ns = wall->until_ns;
    write(wall, kind, tg_clock_unix(begin_ns), tg_clock_seconds(now - begin_ns), wall->step);
    wall->until_ns = now;
    return now;
}

void tg_wall_close(tg_wall *wall)
{
    if (!wall || !wall->open)
        return;
    const int64_t now = tg_wall_span(wall, TG_SPAN_FINISH, 0);
    write(wall, TG_SPAN_END, tg_clock_unix(now), 0, wall->step);
    tg_spans_close(&wall->file);
    wall->open = false;
}
