/* system.h - system/HOST.jsonl: what a machine did while a job ran on it, one line a sample.
 *
 *   {"host":"a","cores":2,"metrics":["running","memory_used_bytes",...]}                   a head
 *   {"time":1772000000.512,"seconds":0.5,"user":[93,100],"system":[2,0],"iowait":[0,0],"steal":[0,0],"values":[3,...]}
 *
 * Head      names the columns of `values` for the samples behind it; each start of a job writes one. Columns that a
 *           reader does not know are passed over, those that are missing are unknown.
 * Cores     whole percents of the interval, by the kernel's number of the core; null: unknown, or not there.
 * Unknown   null in the file, NaN here; never 0. "none" in the file (a limit that is not set) is INFINITY here.
 * Time      `time` is where the interval ends, as tg_clock_unix says it; `seconds` comes from the monotonic clock.
 * Merging   neighbours can be made one (tg_system_merge): means weighted by time, so that a file or a picture of a long
 *           run stays in bounds and still covers all of it.
 *
 * Errors, torn lines: run/lines.h. Memory: a sample owns its cores. Threads: one at a time per writer.
 */
#ifndef TG_RUN_SYSTEM_H
#define TG_RUN_SYSTEM_H

#include "run/lines.h"

#include <stddef.h>
#include <stdint.h>

/* The threads of a job's processes by what they do: their names say it (os/thread_name.h). */
typedef enum tg_system_role {
    TG_ROLE_COMPUTE,
    TG_ROLE_LOADER,
    TG_ROLE_COMMUNICATION,
    TG_ROLE_OTHER,
    TG_ROLES
} tg_system_role;

/* All but TG_SYSTEM_MEMORY_* and the like are means over the interval. */
typedef enum tg_system_metric {
    TG_SYSTEM_RUNNING, /* threads that run or wait for a core, of the whole machine, this one left out */
    TG_SYSTEM_BLOCKED,            /* threads that wait for a disk */
    TG_SYSTEM_MEMORY_TOTAL_BYTES, /* of the machine */
    TG_SYSTEM_MEMORY_USED_BYTES,  /* without caches that can be given back */
    TG_SYSTEM_MEMORY_CACHE_BYTES,
    TG_SYSTEM_SWAP_USED_BYTES,
    TG_SYSTEM_GROUP_LIMIT_BYTES, /* least memory limit along the cgroup path; none: INFINITY */
    TG_SYSTEM_GROUP_USED_BYTES,  /* in the group of that limit, without cache */
    TG_SYSTEM_GROUP_QUOTA_CORES, /* least CPU quota along the path; none: INFINITY */
    TG_SYSTEM_GROUP_THROTTLED,   /* share of the enforcement periods in which it was used up */
    TG_SYSTEM_GROUP_THROTTLED_S, /* seconds a second that threads were held back, summed over cores */
    TG_SYSTEM_PRESSURE_CPU,      /* share of the time in which something waited (PSI "some") */
    TG_SYSTEM_PRESSURE_MEMORY,
    TG_SYSTEM_PRESSURE_IO,
    TG_SYSTEM_DISK_READ_BYTES, /* a second, of all whole disks */
    TG_SYSTEM_DISK_WRITTEN_BYTES,
    TG_SYSTEM_DISK_BUSY,          /* share of the time of the busiest disk */
    TG_SYSTEM_NET_RECEIVED_BYTES, /* a second, loopback left out */
    TG_SYSTEM_NET_SENT_BYTES,
    TG_SYSTEM_FAULTS,        /* page faults a second */
    TG_SYSTEM_MAJOR_FAULTS,  /* those that wait for a disk */
    TG_SYSTEM_SWITCHES,      /* context switches a second of the whole machine */
    TG_SYSTEM_FREQUENCY_MHZ, /* mean of the cores */
    TG_SYSTEM_JOB_PROCESSES, /* of the job on this machine */
    TG_SYSTEM_JOB_RSS_BYTES,
    TG_SYSTEM_JOB_READ_BYTES, /* a second, from disks for the job's processes */
    TG_SYSTEM_MONITOR_CPU,    /* cores that the monitor itself takes */
    /* of each role, in the order of tg_system_role: TG_SYSTEM_ROLE(role, TG_SYSTEM_THREADS) ... */
    TG_SYSTEM_FIRST_ROLE,
    TG_SYSTEM_METRICS = TG_SYSTEM_FIRST_ROLE + 5 * TG_ROLES
} tg_system_metric;

typedef enum tg_system_of_role {
    TG_SYSTEM_THREADS,
    TG_SYSTEM_CPU,         /* cores taken */
    TG_SYSTEM_WAIT,        /* threads that could run and waited for a core (seconds a second) */
    TG_SYSTEM_VOLUNTARY,   /* switches a second: it waited for something */
    TG_SYSTEM_INVOLUNTARY, /* pushed aside */
    TG_SYSTEM_OF_ROLE
} tg_system_of_role;

#define TG_SYSTEM_ROLE(role, of) (TG_SYSTEM_FIRST_ROLE + (int)(role)*TG_SYSTEM_OF_ROLE + (int)(of))

/* "running", "memory_used_bytes", "loader_cpu", ...: as in the file. */
const char *tg_system_metric_name(int metric);
/* "threads", "bytes", "bytes/s", "cores", "share", "1/s", "MHz", "seconds/s". */
const char *tg_system_metric_unit(int metric);

/* Shares 0 to 1 of the interval; NaN: unknown. */
typedef struct tg_system_core {
    float user, system, iowait, steal;
} tg_system_core;

/* An accelerator; NaN: unknown. */
typedef struct tg_system_device {
    float utilisation, memory_utilisation; /* shares 0 to 1; the first as its vendor defines it */
    double memory_used_bytes, memory_total_bytes, power_w;
} tg_system_device;

typedef struct tg_system_sample {
    double time, seconds;
    double values[TG_SYSTEM_METRICS];
    tg_system_core *cores;     /* [core_count of the host] */
    tg_system_device *devices; /* [device_count of the host], NULL where there is none */
} tg_system_sample;

typedef struct tg_system_host {
    char host[256];
    size_t core_count, device_count; /* the most that any sample has */
    tg_system_sample *samples;       /* in the order of time */
    size_t sample_count;
    size_t merged; /* samples of the file in one of these: 1, 2, 4, ... */
} tg_system_host;

/* Busy share of a core: user + system + steal; NaN: unknown. */
float tg_system_core_busy(const tg_system_core *core);
/* Mean busy share of the cores that are known. */
double tg_system_busy(const tg_system_host *host, const tg_system_sample *sample);

/* All of a, [cores] and [devices] long, becomes the mean of a and b, weighted by their seconds; unknown ones leave the
 * other's value. */
void tg_system_merge(tg_system_sample *a, const tg_system_sample *b, size_t cores, size_t devices);

/* The writer keeps a file under `budget_bytes`: when it is full, neighbours are merged. */
typedef struct tg_system_writer {
    tg_lines lines;
    char host[256];
    size_t core_count, device_count;
    uint64_t bytes, budget_bytes;
} tg_system_writer;

/* FOLDER/HOST.jsonl, continued where it is there. */
tg_status tg_system_open(const char *folder, const char *host, size_t cores, size_t devices,
                         uint64_t budget_bytes, tg_system_writer *out) TG_MUST_CHECK;
tg_status tg_system_write(tg_system_writer *writer, const tg_system_sample *sample) TG_MUST_CHECK;
void tg_system_close(tg_system_writer *writer);

/* At most max_samples (>= 2), merged where there are more. *out_bad (may be NULL): lines that were none. */
tg_status tg_system_read(const char *path, size_t max_samples, tg_system_host *out,
                         size_t *out_bad) TG_MUST_CHECK;
void tg_system_host_done(tg_system_host *host);

#endif
