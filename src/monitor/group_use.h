/* group_use.h - control groups: limits of memory and CPU along this process's path, what is used of them, and throttling.
 *
 * Limits  the least along the path counts, and changes: the path is looked through again every few seconds ("slow"). No
 *         limit is INFINITY; a controller that is not to be seen leaves everything of it unknown.
 * Used    by the group of the least memory limit (this process's own without one): all less pages of files that can be
 *         given back. How many of these there are is read when slow, because that costs the kernel most.
 * Held    back by CPU quotas: of all groups of the path that have one, the share of the worst, and the sum of the time.
 *
 * Errors none (source.h).
 */
#ifndef TG_MONITOR_GROUP_USE_H
#define TG_MONITOR_GROUP_USE_H

#include "monitor/source.h"
#include "os/cgroup.h"
#include "run/system.h"

enum { TG_GROUP_QUOTAS = 8 };

/* How often threads of a group were held back since it began; NaN: unknown. */
typedef struct tg_group_throttle {
    double periods, throttled, seconds;
} tg_group_throttle;

/* A cpu.stat of either version. */
tg_group_throttle tg_group_throttle_parse(const char *cpu_stat, int version);
/* cpu.max of version 2 in cores: "200000 100000" is 2; INFINITY for "max"; NaN for what is neither. */
double tg_group_quota_parse(const char *cpu_max);
/* A memory limit or a quota in microseconds: INFINITY for "max", "-1" and version 1's 2^63; NaN for no number. */
double tg_group_limit_parse(const char *text);
/* Pages of files that a memory.stat of either version counts; NaN: it does not. */
double tg_group_file_bytes(const char *memory_stat, int version);

typedef struct tg_group_quota {
    tg_cgroup group;
    tg_source cpu_stat;
    tg_group_throttle before;
} tg_group_quota;

typedef struct tg_group_use {
    const char *root; /* borrowed */
    tg_cgroup cpu, memory;
    tg_group_quota *quotas; /* [TG_GROUP_QUOTAS] */
    size_t quota_count;
    tg_source used;
    tg_cgroup used_group;
    double quota_cores, limit_bytes, file_bytes; /* as of the last slow look */
} tg_group_use;

tg_status tg_group_use_open(const char *root, tg_group_use *out) TG_MUST_CHECK;
void tg_group_use_take(tg_group_use *use, tg_text *text, double seconds, bool slow,
                       tg_system_sample *out);
void tg_group_use_close(tg_group_use *use);

#endif
