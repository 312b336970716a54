/* cpu.h - how many cores, and how much memory, this process may really use.
 *
 * A container or a scheduler grants a share of the machine; the host's size says nothing. The share
 * is the least of
 *   - the affinity mask (sched_getaffinity),
 *   - cgroup v2 cpu.max and cgroup v1 cpu.cfs_quota_us / cpu.cfs_period_us, of every group from
 * this process's own up to the root of the hierarchy that is visible here (v1, v2 and hybrid),
 *   - what the caller passes as the scheduler's share (SLURM_CPUS_PER_TASK),
 * a quota rounded down to whole cores (threads that meet at barriers gain nothing from half a core
 * and are throttled for it), and at least 1. Memory limits (memory.max, memory.high,
 * memory.limit_in_bytes) are looked up along the same paths.
 * A file that is absent counts as no limit, never as 0.
 *
 * Errors  none: what cannot be read is no limit. Memory none that is kept. Threads reentrant.
 */
#ifndef TG_OS_CPU_H
#define TG_OS_CPU_H

#include <stddef.h>
#include <stdint.h>

typedef struct tg_cpu_share {
    int cpus;                    /* the answer, >= 1 */
    int affinity;                /* cores in the affinity mask */
    double quota;                /* cores by cgroup quota, e.g. 1.5; 0: none */
    uint64_t quota_group;        /* the same number for processes that have this quota together */
    int scheduler;               /* as passed in; 0: none */
    uint64_t memory_limit_bytes; /* by cgroup; 0: none */
    int cgroup_version;          /* 2, 1 (v1 or hybrid with limits there), 0 none found */
} tg_cpu_share;

/* `root` is put before /proc and /sys ("" for the real ones; tests give a tree of copies).
 * `affinity` > 0 replaces the real mask's count; `scheduler` <= 0 means none. */
void tg_cpu_share_read(const char *root, int affinity, int scheduler, tg_cpu_share *out);

/* "model name" of /proc/cpuinfo, cut to fit; "unknown" when it does not say. */
void tg_cpu_model(const char *root, char *out, size_t size);

#endif
