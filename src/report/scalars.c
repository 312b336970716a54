#include "report/scalars.h"

#include "report/live.h"

#include <math.h>
#include <stdio.h>

tg_status tg_scalars_step(tg_event_file *file, const tg_step_record *step, double unix_s)
{
    double phases[TG_LIVE_PHASES];
    char tag[64];
    tg_event_file_add(file, "loss/total", step->loss);
    tg_event_file_add(file, "loss/task", step->loss_task);
    tg_event_file_add(file, "loss/kd", step->loss_kd);
    tg_event_file_add(file, "train/lr", step->lr);
    tg_event_file_add(file, "train/grad_norm", step->grad_norm);
    tg_event_file_add(file, "train/images_per_s", step->images_per_s);
    tg_event_file_add(file, "train/epoch", (double)step->epoch);
    tg_event_file_add(file, "train/rss_bytes", (double)step->rss_bytes);
    tg_event_file_add(file, "step/seconds", step->t_step);
    tg_live_step_phases(step, phases);
    for (int p = 0; p < TG_LIVE_PHASES; p++) {
        snprintf(tag, sizeof tag, "step/%s", tg_live_phase_name((tg_live_phase)p));
        tg_event_file_add(file, tag, phases[p]);
    }
    return tg_event_file_end(file, step->step, isnan(step->time) ? unix_s : step->time);
}

tg_status tg_scalars_eval(tg_event_file *file, const tg_eval_record *eval, int64_t step,
                          double unix_s)
{
    tg_event_file_add(file, "val/top1", eval->val_top1);
    tg_event_file_add(file, "val/top5", eval->val_top5);
    tg_event_file_add(file, "val/loss", eval->val_loss);
    return tg_event_file_end(file, step, isnan(eval->time) ? unix_s : eval->time);
}

static void add(tg_event_file *file, const char *host, const char *what, double value)
{
    char tag[120];
    snprintf(tag, sizeof tag, "machine %.60s/%s", host, what);
    tg_event_file_add(file, tag, isfinite(value) ? value : NAN);
}

tg_status tg_scalars_sample(tg_event_file *file, const char *host, size_t cores,
                            const tg_system_sample *sample, int64_t step)
{
    static const struct {
        const char *name;
        int metric;
    } METRICS[] = {
        {"threads_running", TG_SYSTEM_RUNNING},
        {"memory_used_bytes", TG_SYSTEM_MEMORY_USED_BYTES},
        {"job_rss_bytes", TG_SYSTEM_JOB_RSS_BYTES},
        {"disk_read_bytes_per_s", TG_SYSTEM_DISK_READ_BYTES},
        {"disk_written_bytes_per_s", TG_SYSTEM_DISK_WRITTEN_BYTES},
        {"net_received_bytes_per_s", TG_SYSTEM_NET_RECEIVED_BYTES},
        {"net_sent_bytes_per_s", TG_SYSTEM_NET_SENT_BYTES},
        {"compute_cores", TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_CPU)},
        {"compute_pushed_aside_per_s", TG_SYSTEM_ROLE(TG_ROLE_COMPUTE, TG_SYSTEM_INVOLUNTARY)},
        {"loader_cores", TG_SYSTEM_ROLE(TG_ROLE_LOADER, TG_SYSTEM_CPU)},
    };
    const tg_system_host shape = {.core_count = cores};
    add(file, host, "cores_busy", tg_system_busy(&shape, sample));
    for (size_t m = 0; m < sizeof METRICS / sizeof METRICS[0]; m++)
        add(file, host, METRICS[m].name, sample->values[METRICS[m].metric]);
    return tg_event_file_end(file, step, sample->time);
}
