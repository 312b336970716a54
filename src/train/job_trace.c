/* Timelines of a job: of chosen steps, of steps that took much longer than their like with those around them, and of those
 * that somebody asked for while it ran. What the exchange between ranks did in chosen ones. */
#include "train/job_parts.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After the k-th outlier that was kept, so many times 2^k steps pass before the next one is: they are spread over the run. */
enum { OUTLIER_PAUSE = 16, MOST_DOUBLED = 20, KEPT_BEFORE = 1, KEPT_AFTER = 2 };
/* The file is written so often, and so that writing takes at most one part in WRITE_SHARE of the time. */
enum { WRITE_SHARE = 200 };
static const int64_t WRITE_NS = INT64_C(1000000000), LOOK_NS = INT64_C(200000000);
enum { MOST_ASKED = 1000 }; /* steps at once */

static bool is_chosen(const tg_job *job, int64_t step)
{
    const tg_output_choice *o = &job->options->output;
    return job->timeline.file && step >= o->trace_first && step <= o->trace_last;
}

/* NULL: no memory. */
static char *path_in(const tg_job *job, const char *folder)
{
    char name[64];
    snprintf(name, sizeof name, "%s/rank-%d.json.gz", folder, job->comm->rank);
    return tg_path_join(job->run_path, name);
}

/* What an earlier process of this run has kept stays, beside what this one will keep. */
static tg_status put_aside(const tg_job *job)
{
    char *path = path_in(job, "trace"), *earlier = path_in(job, "trace/earlier"),
         *folder = tg_path_join(job->run_path, "trace/earlier");
    tg_status status =
        path && earlier && folder ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status == TG_OK && tg_file_exists(path)) {
        status = tg_folder_make(folder);
        if (status == TG_OK && rename(path, earlier) != 0)
            status = tg_fail(TG_ERROR_MACHINE, "cannot rename %s to %s: %s", path, earlier,
                             strerror(errno));
    }
    free(folder);
    free(earlier);
    free(path);
    return status;
}

static tg_status make_windows(tg_job *job)
{
    const size_t room = tg_job_has_ranks(job) ? tg_ranks_record_room(&job->ranks) : 0;
    for (size_t i = 0; i < TG_JOB_WINDOWS && room; i++) {
        job->timeline.windows[i].records = calloc(room, sizeof(tg_comm_record));
        if (!job->timeline.windows[i].records)
            return tg_fail(TG_ERROR_MACHINE, "out of memory for the exchanges of a step");
    }
    return TG_OK;
}

tg_status tg_job_open_trace(tg_job *job)
{
    if (!job->recorder.compute)
        return TG_OK;
    const tg_step_trace_options options = {.comm = job->comm,
                                           .compute = job->recorder.compute,
                                           .loader = job->recorder.loader,
                                           .threads = job->options->threads,
                                           .budget_bytes =
                                               (size_t)job->options->output.trace_budget_mib << 20};
    tg_status status = put_aside(job);
    status = tg_comm_agree(job->comm, "the folder of timelines", status);
    if (status == TG_OK)
        status = tg_step_trace_open(&options, &job->timeline.file);
    if (status == TG_OK)
        status = make_windows(job);
    if (tg_job_is_first(job))
        tg_control_follow(job->run_path, &job->timeline.control);
    return tg_comm_agree(job->comm, "timelines", status);
}

/* Whether somebody asks for timelines: the first rank looks, now and then, and tells the others with the next meeting. */
static void look_for_wishes(tg_job *job)
{
    tg_job_timeline *t = &job->timeline;
    const int64_t now = tg_clock_ns();
    tg_control asked;
    if (!t->file || !tg_job_is_first(job) || now - t->asked_ns < LOOK_NS)
        return;
    t->asked_ns = now;
    if (!tg_control_poll(&t->control, &asked) || asked.trace_request == t->request ||
        asked.trace_steps < 1)
        return;
    t->request = asked.trace_request;
    const int64_t steps = asked.trace_steps < MOST_ASKED ? asked.trace_steps : MOST_ASKED;
    tg_log_info("steps %lld to %lld are kept as timelines in trace/: somebody asks for them",
                (long long)job->state.updates + 1, (long long)(job->state.updates + steps));
    tg_job_trace_until(job, job->state.updates + steps);
}

void tg_job_begin_recording(tg_job *job)
{
    look_for_wishes(job);
    job->step.keep = job->timeline.keep_until;
    tg_recorder_begin_step(&job->recorder);
    if (tg_job_has_ranks(job))
        tg_ranks_forget(&job->ranks);
    job->timeline.exchange_cpu_ns = tg_comm_get_traffic(job->comm).cpu_ns;
    job->timeline.begin_ns = tg_clock_ns();
}

static void log_lines(const tg_text *text)
{
    for (const char *at = tg_text_string(text); *at;) {
        const size_t n = strcspn(at, "\n");
        tg_log_info("%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

/* Numbers of one step in a line; the last step also as a picture. */
static void log_overlap(const tg_job *job, const tg_step_report *report)
{
    const tg_overlap_step step = {.records = job->ranks.records,
                                  .count = job->ranks.record_count,
                                  .backward_begin_ns = report->backward_begin_ns,
                                  .backward_end_ns = report->backward_end_ns};
    const int64_t cpu_ns = tg_comm_get_traffic(job->comm).cpu_ns - job->timeline.exchange_cpu_ns;
    tg_text text = {0};
    tg_text_append_format(&text, "step %lld: ", (long long)job->state.updates);
    tg_overlap_tell(&step, tg_clock_seconds(report->phases.reduce_ns), tg_clock_seconds(cpu_ns),
                    &text);
    if (job->state.updates == job->options->output.trace_last) {
        tg_text_append_char(&text, '\n');
        tg_overlap_draw(&step, &text);
    }
    log_lines(&text);
    tg_text_done(&text);
}

/* The step just done, in place of the oldest one. */
static void note_window(tg_job *job, int64_t end_ns)
{
    tg_job_timeline *t = &job->timeline;
    tg_job_window *w = &t->windows[t->window_count++ % TG_JOB_WINDOWS];
    const int64_t step = job->state.updates;
    const size_t records = w->records ? job->ranks.record_count : 0;
    if (records)
        memcpy(w->records, job->ranks.records, records * sizeof *w->records);
    w->step = (tg_step_window){.step = step,
                               .begin_ns = t->begin_ns,
                               .end_ns = end_ns,
                               .records = w->records,
                               .record_count = records};
    w->added = false;
    w->keep = is_chosen(job, step) || step <= t->keep_until;
}

void tg_job_end_recording(tg_job *job, const tg_step_report *report)
{
    const int64_t end_ns = tg_clock_ns();
    tg_recorder_end_step(&job->recorder);
    if (!job->timeline.file)
        return;
    tg_job_trace_until(job, job->step.keep);
    note_window(job, end_ns);
    if (tg_job_has_ranks(job) && is_chosen(job, job->state.updates))
        log_overlap(job, report);
}

/* Whether one more outlier is kept. One twice as long as any before is; half of all may be of the others, where the last
 * was long enough ago. Room is left for chosen steps. */
static bool wants_outlier(const tg_job *job, int64_t step, double seconds)
{
    const tg_job_timeline *t = &job->timeline;
    const int64_t most = job->options->output.trace_outliers;
    const size_t budget = (size_t)job->options->output.trace_budget_mib << 20;
    const bool usual = t->outliers < (most + 1) / 2 && step >= t->next_outlier;
    return t->outliers < most && (usual || seconds > 2 * t->worst_s) &&
           tg_step_trace_bytes(t->file) < budget / 2;
}

void tg_job_judge_step(tg_job *job, int64_t step, double seconds)
{
    tg_job_timeline *t = &job->timeline;
    if (!t->file || !tg_outlier_add(&t->rule, seconds) || !wants_outlier(job, step, seconds))
        return;
    tg_log_info("step %lld took %.3g s, the usual is %.3g s: kept as a timeline in trace/",
                (long long)step, seconds, t->rule.median);
    t->next_outlier = step + ((int64_t)OUTLIER_PAUSE
                              << (t->outliers < MOST_DOUBLED ? t->outliers : MOST_DOUBLED));
    t->outliers++;
    t->worst_s = seconds > t->worst_s ? seconds : t->worst_s;
    tg_job_trace_until(job, step + KEPT_AFTER);
    for (size_t i = 0; i < TG_JOB_WINDOWS; i++)
        t->windows[i].keep = t->windows[i].keep || t->windows[i].step.step >= step - KEPT_BEFORE;
}

void tg_job_trace_until(tg_job *job, int64_t step)
{
    if (step > job->timeline.keep_until)
        job->timeline.keep_until = step;
}

/* Nothing here ends the job; nor is the reason lost why it may be ending. */
static void write_timeline(tg_job *job)
{
    char reason[TG_ERROR_BYTES];
    const int64_t begin = tg_clock_ns();
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    char *folder = tg_path_join(job->run_path, "trace");
    tg_status status = folder ? tg_step_trace_write(job->timeline.file, folder)
                              : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status < 0) {
        tg_log_warning("the timeline was not written: %s", tg_error_message());
        (void)tg_fail(status, "%s", reason);
    }
    free(folder);
    job->timeline.dirty = false;
    job->timeline.written_ns = tg_clock_ns();
    job->timeline.write_ns = job->timeline.written_ns - begin;
}

/* Those to be kept, oldest first. */
static void add_windows(tg_job *job)
{
    tg_job_timeline *t = &job->timeline;
    for (int64_t i = t->window_count - TG_JOB_WINDOWS; i < t->window_count; i++) {
        tg_job_window *w = &t->windows[(size_t)(i < 0 ? 0 : i) % TG_JOB_WINDOWS];
        if (i < 0 || !w->keep || w->added)
            continue;
        tg_step_trace_add(t->file, &w->step);
        w->added = t->dirty = true;
    }
}

void tg_job_note_timeline(tg_job *job, const tg_step_record *record)
{
    tg_job_timeline *t = &job->timeline;
    const int64_t begin = tg_clock_ns();
    if (!t->file)
        return;
    if (!tg_job_has_ranks(job)) /* others have to be heard first: tg_job_judge_step */
        tg_job_judge_step(job, record->step, record->t_step);
    add_windows(job);
    const int64_t since = begin - t->written_ns;
    const bool last = record->step == job->options->output.trace_last;
    if (t->dirty && (last || (since >= WRITE_NS && since >= WRITE_SHARE * t->write_ns)))
        write_timeline(job);
    if (last)
        tg_log_info("timeline: %s/trace/rank-%d.json.gz", job->run_path, job->comm->rank);
    job->recorder.own_ns += tg_clock_ns() - begin;
}

void tg_job_close_trace(tg_job *job)
{
    tg_job_timeline *t = &job->timeline;
    if (t->file && t->dirty)
        write_timeline(job);
    tg_step_trace_close(t->file);
    for (size_t i = 0; i < TG_JOB_WINDOWS; i++)
        free(t->windows[i].records);
    *t = (tg_job_timeline){0};
}
