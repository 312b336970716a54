/* monitor.h - samples a machine by a thread of its own, into FOLDER/HOST.jsonl (run/system.h), while a job runs.
 *
 * Nothing of it is the job's concern: what fails after the start is a warning said once, and recording is tried again with
 * the next sample; who stops it waits for its thread TG_MONITOR_PATIENCE_S at most, then leaves it where it hangs.
 * Interval  from the monotonic clock. A process that was stopped gets one long sample, not those that it missed. The last
 *           sample is taken at the stop, so that even a short job has one.
 *           control.json of the run directory, looked at once a second at most, may change it while the job runs.
 * Cost      the thread's own CPU time: a column of each sample (monitor_cpu), and in sum what stop returns.
 *
 * Errors  start: TG_ERROR_MACHINE for memory and the thread. Threads one at a time; show is called by the monitor's.
 */
#ifndef TG_MONITOR_MONITOR_H
#define TG_MONITOR_MONITOR_H

#include "monitor/sampler.h"

#define TG_MONITOR_PATIENCE_S 5.0
enum {
    TG_MONITOR_INTERVAL_MS = 500,
    TG_MONITOR_INTERVAL_LEAST_MS = 100,
    TG_MONITOR_INTERVAL_MOST_MS = 60000,
    TG_MONITOR_BUDGET_MIB = 64
};

typedef struct tg_monitor_options {
    tg_sampler_options sampler;
    const char *
        folder; /* of the file, made where it is not there; NULL: none is written. Copied, as host is */
    const char *host;
    int64_t interval_ms; /* 0: nothing is sampled until set otherwise */
    const char *
        control; /* run directory whose control.json (run/control.h) may change the interval; NULL: none. Copied */
    uint64_t budget_bytes;
    void (*show)(void *user, const tg_system_sample *sample, size_t cores, size_t devices);
    void *user;
} tg_monitor_options;

typedef struct tg_monitor_cost {
    double seconds, cpu_s; /* it ran for, and took of a core */
    uint64_t samples, bytes;
} tg_monitor_cost;

typedef struct tg_monitor tg_monitor;

tg_status tg_monitor_start(const tg_monitor_options *options, tg_monitor **out) TG_MUST_CHECK;
/* 0, or within the monitor's range. */
bool tg_monitor_interval_is_good(int64_t interval_ms);
/* From the next sample on. */
void tg_monitor_set_interval(tg_monitor *monitor, int64_t interval_ms);
/* NULL is allowed. *out (may be NULL). */
void tg_monitor_stop(tg_monitor *monitor, tg_monitor_cost *out);
/* "0.12 % of a core, 1.2 MiB" */
void tg_monitor_cost_print(const tg_monitor_cost *cost, tg_text *out);

#endif
