/* Timelines of chosen steps of a job, and what they say of the exchange between ranks. */
#include "train/job_parts.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_traced(const tg_job *job, int64_t step)
{
    const tg_output_choice *o = &job->options->output;
    return job->trace && step >= o->trace_first && step <= o->trace_last;
}

tg_status tg_job_open_trace(tg_job *job)
{
    const int64_t last = job->options->output.trace_last;
    if (last == 0 || job->state.updates >= last)
        return TG_OK;
    tg_status status = tg_step_trace_open(job->comm, &job->trace);
    return tg_comm_agree(job->comm, "timelines", status);
}

void tg_job_begin_recording(tg_job *job)
{
    tg_recorder_begin_step(&job->recorder);
    if (tg_job_has_ranks(job))
        tg_ranks_forget(&job->ranks);
    if (!is_traced(job, job->state.updates + 1))
        return;
    job->trace_cpu_ns = tg_comm_get_traffic(job->comm).cpu_ns;
    tg_step_trace_begin(job->trace);
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
    const int64_t cpu_ns = tg_comm_get_traffic(job->comm).cpu_ns - job->trace_cpu_ns;
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

void tg_job_end_recording(tg_job *job, const tg_step_report *report)
{
    tg_recorder_end_step(&job->recorder);
    if (!is_traced(job, job->state.updates))
        return;
    tg_step_trace_end(job->trace, job->state.updates, tg_job_has_ranks(job) ? &job->ranks : NULL);
    if (tg_job_has_ranks(job))
        log_overlap(job, report);
    if (job->state.updates == job->options->output.trace_last)
        tg_job_close_trace(job);
}

void tg_job_close_trace(tg_job *job)
{
    char reason[TG_ERROR_BYTES]; /* of what may have ended the job: it stays the one on record */
    if (!job->trace)
        return;
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    char *folder = tg_path_join(job->run_path, "trace");
    tg_status status = folder ? tg_step_trace_write(job->trace, folder)
                              : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status < 0) {
        tg_log_warning("the timeline was not written: %s", tg_error_message());
        (void)tg_fail(status, "%s", reason);
    } else {
        tg_log_info("timeline: %s/rank-%d.json.gz", folder, job->comm->rank);
    }
    free(folder);
    tg_step_trace_close(job->trace);
    job->trace = NULL;
}
