/* What each kind of operation took, over all steps: trace/operations-rank-N.json, written now and then. */
#include "train/job_parts.h"

#include "base/log.h"
#include "kern/peak.h"
#include "os/file.h"
#include "os/folder.h"

#include <stdio.h>
#include <stdlib.h>

/* The peak takes at most this share of the time that the steps took; shorter jobs do without. */
static const double PEAK_SHARE = 0.01, PEAK_LEAST_S = 0.05, PEAK_MOST_S = 2;

static char *path_of(const tg_job *job)
{
    char name[64];
    snprintf(name, sizeof name, "trace/operations-rank-%d.json", job->comm->rank);
    return tg_path_join(job->run_path, name);
}

/* Without it the job would train as well, so that nothing here ends it; nor is the reason lost why it may be ending. */
static void write_operations(tg_job *job)
{
    char reason[TG_ERROR_BYTES];
    snprintf(reason, sizeof reason, "%s", tg_error_message());
    char *path = path_of(job);
    tg_status status =
        path ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory for the path of the operations");
    if (status == TG_OK)
        status = tg_recorder_write(&job->recorder, path, job->comm->rank);
    if (status < 0) {
        tg_log_warning("what operations took was not written: %s", tg_error_message());
        (void)tg_fail(status, "%s", reason);
    }
    free(path);
}

tg_status tg_job_open_operations(tg_job *job)
{
    if (!job->recorder.compute)
        return TG_OK;
    char *folder = tg_path_join(job->run_path, "trace"), *path = path_of(job);
    tg_status status = folder && path ? tg_folder_make(folder)
                                      : tg_fail(TG_ERROR_MACHINE, "out of memory for a path");
    if (status == TG_OK && job->state.updates > 0 && tg_recorder_resume(&job->recorder, path) < 0)
        tg_log_warning("what operations took so far is forgotten: %s", tg_error_message());
    free(path);
    free(folder);
    return tg_comm_agree(job->comm, "the record of operations", status);
}

void tg_job_note_operations(tg_job *job, const tg_step_record *record)
{
    tg_recorder_count_step(&job->recorder, record->step, record->t_step,
                           tg_job_has_ranks(job) ? &job->ranks : NULL);
    if (tg_recorder_is_due(&job->recorder))
        write_operations(job);
}

static void measure_peak(tg_job *job)
{
    double budget_s = PEAK_SHARE * job->train_seconds;
    tg_peak peak;
    if (!job->complete || budget_s < PEAK_LEAST_S)
        return;
    budget_s = budget_s < PEAK_MOST_S ? budget_s : PEAK_MOST_S;
    if (tg_kern_peak_within(job->stream, job->dtype, budget_s, &peak) < 0)
        tg_log_warning("the best matrix product was not measured: %s", tg_error_message());
    else if (job->dtype == TG_BF16)
        job->recorder.now.peak_flops_bf16 = peak.flops_per_s;
    else
        job->recorder.now.peak_flops_f32 = peak.flops_per_s;
}

void tg_job_close_operations(tg_job *job)
{
    if (job->recorder.now.steps > 0 && job->run_path) {
        measure_peak(job);
        write_operations(job);
    }
    tg_recorder_close(&job->recorder);
}
