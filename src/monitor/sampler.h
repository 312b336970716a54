/* sampler.h - one look at a machine, and what changed since the one before.
 *
 * Opened, it has looked once already: the first sample is of the time since then. Moments are tg_clock_ns, given by the
 * caller, so that neither a clock that is set nor a process that was stopped makes more of it than one interval of that
 * length; one is never shorter than a millisecond.
 * What a source does not say is NaN (run/system.h). What costs more than it changes (limits, frequencies) is read every
 * few seconds and said again in between.
 *
 * Errors  TG_ERROR_MACHINE for memory. Threads one at a time. Memory heap, some KiB and what /proc's texts take.
 */
#ifndef TG_MONITOR_SAMPLER_H
#define TG_MONITOR_SAMPLER_H

#include "run/system.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_sampler_options {
    const char *root;    /* before /proc and /sys; borrowed to the end; "" for the real tree */
    const int64_t *pids; /* the job's processes on this machine; copied */
    size_t pid_count;    /* 0: none, values of the job are unknown */
} tg_sampler_options;

typedef struct tg_sampler tg_sampler;

tg_status tg_sampler_open(const tg_sampler_options *options, int64_t now_ns,
                          tg_sampler **out) TG_MUST_CHECK;
size_t tg_sampler_cores(const tg_sampler *sampler);
/* A sample of this sampler's cores and of `devices` devices, all unknown, whose arrays are the caller's
 * (tg_system_sample_done of run/system_line.h). */
tg_status tg_sampler_make(const tg_sampler *sampler, size_t devices,
                          tg_system_sample *out) TG_MUST_CHECK;
/* Overwrites all of `out` but the values of devices. */
void tg_sampler_take(tg_sampler *sampler, int64_t now_ns, tg_system_sample *out);
void tg_sampler_close(tg_sampler *sampler);

#endif
