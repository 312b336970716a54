/* The monitor of a job: one for each machine, by the first of the ranks that run there. */
#include "train/job_parts.h"

#include "base/log.h"
#include "os/file.h"
#include "os/process.h"
#include "run/control.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_BYTES = 256 };

/* All ranks' processes, in their order; NULL without memory or a meeting. */
static tg_status meet(tg_job *job, tg_process *out_all)
{
    const tg_process mine = tg_process_self();
    if (!tg_job_has_ranks(job)) {
        out_all[0] = mine;
        return TG_OK;
    }
    return tg_comm_meet(job->comm, "the processes of each machine", &mine, sizeof mine, out_all);
}

static bool is_here(const tg_comm *comm, int rank)
{
    return strcmp(tg_comm_host(comm, rank), tg_comm_host(comm, comm->rank)) == 0;
}

static bool is_first_here(const tg_comm *comm)
{
    for (int r = 0; r < comm->rank; r++)
        if (is_here(comm, r))
            return false;
    return true;
}

/* Of a rank in a container of its own on the same machine the number says nothing here. */
static size_t pids_here(const tg_comm *comm, const tg_process *all, int64_t *out)
{
    size_t count = 0;
    for (int r = 0; r < comm->size; r++)
        if (r == comm->rank || (is_here(comm, r) && all[r].machine == all[comm->rank].machine))
            out[count++] = all[r].pid;
    return count;
}

static void name_host(const tg_job *job, char out[HOST_BYTES])
{
    out[0] = out[HOST_BYTES - 1] = '\0';
    if (tg_job_has_ranks(job))
        strncpy(out, tg_comm_host(job->comm, job->comm->rank), HOST_BYTES - 1);
    else
        (void)gethostname(out, HOST_BYTES - 1);
}

static tg_status start(tg_job *job, const tg_process *all)
{
    const tg_output_choice *o = &job->options->output;
    char host[HOST_BYTES];
    char *folder = tg_path_join(job->run_path, "system");
    int64_t *pids = calloc((size_t)job->comm->size, sizeof *pids);
    tg_status status = folder && pids ? TG_OK : tg_fail(TG_ERROR_MACHINE, "out of memory");
    if (status == TG_OK) {
        name_host(job, host);
        const tg_monitor_options options = {
            .sampler = {.root = "", .pids = pids, .pid_count = pids_here(job->comm, all, pids)},
            .folder = folder,
            .host = host,
            .interval_ms = o->monitor_interval_ms,
            .control = job->run_path,
            .budget_bytes = (uint64_t)o->monitor_budget_mib << 20};
        status = tg_monitor_start(&options, &job->monitor);
    }
    free(pids);
    free(folder);
    return status;
}

tg_status tg_job_open_monitor(tg_job *job)
{
    tg_process *all = calloc((size_t)job->comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", job->comm->size);
    if (tg_job_is_first(job) && tg_control_remove(job->run_path) < 0) /* of an earlier attempt */
        tg_log_warning("%s", tg_error_message());
    tg_status status = meet(job, all);
    if (status == TG_OK && is_first_here(job->comm) && start(job, all) < 0)
        tg_log_own_warning("this machine is not watched: %s", tg_error_message());
    free(all);
    return status;
}

void tg_job_close_monitor(tg_job *job)
{
    tg_monitor_cost cost;
    if (!job->monitor)
        return;
    tg_monitor_stop(job->monitor, &cost);
    job->monitor = NULL;
    if (!cost.samples)
        return;
    tg_text text = {0};
    tg_monitor_cost_print(&cost, &text);
    tg_log_info("monitor: %s", tg_text_string(&text));
    tg_text_done(&text);
}
