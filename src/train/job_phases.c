/* What each rank spends its steps on: told at the next meeting, written by the first rank, and judged. */
#include "train/job_parts.h"

#include "base/log.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>

tg_status tg_job_open_phases(tg_job *job, bool resumed)
{
    const bool several = tg_job_has_ranks(job);
    tg_status status = TG_OK;
    char *path = tg_path_join(job->run_path, "ranks.jsonl");
    if (!path)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (several)
        status = tg_straggler_init(&job->phases.rule, (size_t)job->comm->size);
    if (status == TG_OK && several)
        status = tg_rank_steps_open(path, resumed, job->state.updates, &job->phases.file);
    else if (status == TG_OK)
        status = tg_rank_steps_drop(path, resumed ? job->state.updates : 0);
    free(path);
    return status;
}

void tg_job_close_phases(tg_job *job)
{
    tg_straggler_done(&job->phases.rule);
    tg_rank_steps_close(&job->phases.file);
}

/* "own work of 1.02 s a step, median of the others 1.01 s" */
static void print_own(const tg_straggler_finding *f, tg_text *out)
{
    tg_text_append_string(out, "own work of ");
    tg_straggler_print_seconds(f->own_s, out);
    tg_text_append_string(out, " a step, median of the others ");
    tg_straggler_print_seconds(f->others_s, out);
}

static void say(const tg_job *job, tg_straggler_event event)
{
    const tg_straggler *rule = &job->phases.rule;
    const bool cleared = event == TG_STRAGGLER_CLEARED;
    const tg_straggler_finding *f = cleared ? &rule->rival : &rule->found;
    const char *host = tg_comm_host(job->comm, f->rank);
    tg_text text = {0};
    if (cleared) {
        print_own(f, &text);
        tg_log_info("rank %d on %s is no longer slower than the others: %s", f->rank, host,
                    tg_text_string(&text));
    } else {
        tg_straggler_print(f, host, &text);
        tg_log_warning("slowest rank%s: %s", event == TG_STRAGGLER_CHANGED ? " now" : "",
                       tg_text_string(&text));
    }
    tg_text_done(&text);
}

static double longest(const tg_ranks *ranks)
{
    double seconds = 0;
    for (int r = 0; r < ranks->comm->size; r++)
        seconds = fmax(seconds, ranks->each[r].t_step);
    return seconds;
}

/* What all ranks told of the step before. */
static void take(tg_job *job)
{
    const tg_ranks *ranks = &job->ranks;
    if (ranks->told_step)
        tg_job_judge_step(job, ranks->told_step, longest(ranks));
    if (!ranks->told_step || !tg_job_is_first(job))
        return;
    if (tg_rank_steps_write(&job->phases.file, ranks->told_step, ranks->each,
                            (size_t)job->comm->size) != TG_OK)
        tg_log_warning("a record of the ranks' phases was lost: %s", tg_error_message());
    const tg_straggler_event event = tg_straggler_add(&job->phases.rule, ranks->each);
    if (event != TG_STRAGGLER_NOTHING)
        say(job, event);
}

static int64_t microseconds(double seconds)
{
    return llround(seconds * 1e6);
}

/* In whole microseconds, so that the parts add up and take few digits. */
static tg_rank_step shorten(const tg_step_record *record, size_t own_images)
{
    const double parts[] = {record->t_data,     record->t_teacher, record->t_forward,
                            record->t_backward, record->t_reduce,  record->t_optimizer,
                            record->t_other};
    int64_t us[sizeof parts / sizeof parts[0]], total = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        total += us[i] = microseconds(parts[i]);
    return (tg_rank_step){.images = (int64_t)own_images,
                          .t_step = (double)total / 1e6,
                          .t_data = (double)us[0] / 1e6,
                          .t_teacher = (double)us[1] / 1e6,
                          .t_forward = (double)us[2] / 1e6,
                          .t_backward = (double)us[3] / 1e6,
                          .t_reduce = (double)us[4] / 1e6,
                          .t_optimizer = (double)us[5] / 1e6,
                          .t_other = (double)us[6] / 1e6,
                          .rss_bytes = record->rss_bytes};
}

void tg_job_note_phases(tg_job *job, const tg_step_record *record, size_t own_images)
{
    if (!tg_job_has_ranks(job))
        return;
    take(job);
    job->ranks.own = shorten(record, own_images);
    job->ranks.own_step = record->step;
}

tg_status tg_job_settle_phases(tg_job *job)
{
    if (!tg_job_has_ranks(job))
        return TG_OK;
    TG_TRY(tg_ranks_tell(&job->ranks));
    take(job);
    return TG_OK;
}

void tg_job_sum_up_phases(tg_job *job)
{
    tg_straggler *rule = &job->phases.rule;
    if (!rule->ranks)
        return;
    const tg_straggler_finding f = tg_straggler_whole(rule);
    if (f.rank < 0)
        return;
    const char *host = tg_comm_host(job->comm, f.rank);
    tg_text text = {0};
    if (tg_straggler_excess(&f) >= TG_STRAGGLER_BEGIN) {
        tg_straggler_print(&f, host, &text);
        tg_log_info("slowest rank of the run: %s", tg_text_string(&text));
    } else {
        print_own(&f, &text);
        tg_log_info("ranks were even over the run: at most %s (rank %d on %s)",
                    tg_text_string(&text), f.rank, host);
    }
    tg_text_done(&text);
}
