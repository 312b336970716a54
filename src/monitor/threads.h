/* threads.h - /proc/PID/task: what the threads of a job's processes took of the cores, by what they do.
 *
 * Role      by the thread's name (os/thread_name.h); the first thread of a process computes. Others, MPI's among them,
 *           are "other". The monitor's own are left out: they have a value of their own.
 * Taken     schedstat: nanoseconds on a core, and waiting for one; where the kernel keeps none, ticks of stat, and no
 *           waiting. status: switches. What a thread did between the last sample and its end is lost.
 * Files     those of up to TG_THREADS_OPEN threads stay open, so that a job keeps its own; beyond, each is opened anew.
 * Errors none (source.h); TG_ERROR_MACHINE for memory at open, later a thread without memory is passed over.
 */
#ifndef TG_MONITOR_THREADS_H
#define TG_MONITOR_THREADS_H

#include "monitor/source.h"
#include "run/system.h"

#include <stdint.h>

enum { TG_THREADS_OPEN = 64 };

typedef struct tg_thread_counts {
    double cpu_s, wait_s, voluntary, involuntary; /* since the thread began; NaN: unknown */
} tg_thread_counts;

/* Of a schedstat; false, and nothing is written, where it is none. */
bool tg_schedstat_parse(const char *schedstat, tg_thread_counts *out);
/* cpu_s of a stat, with so many ticks a second. */
bool tg_thread_stat_parse(const char *stat, double ticks_hz, tg_thread_counts *out);
/* The switches of a status; NaN where it has none. */
void tg_thread_status_parse(const char *status, tg_thread_counts *out);
/* TG_ROLES: one of the monitor's own. first: of its process. */
int tg_thread_role(const char *name, bool first);

typedef struct tg_job_thread tg_job_thread;

typedef struct tg_job_process {
    int64_t pid;
    void *folder; /* DIR of its threads; NULL: not to be seen, or gone */
    tg_source statm, io;
    tg_job_thread *threads; /* by id */
    size_t count, capacity;
    double read_bytes; /* before */
} tg_job_process;

typedef struct tg_threads {
    const char *root; /* borrowed */
    tg_job_process *processes;
    size_t process_count, open_count;
    double ticks_hz, page_bytes;
    bool begun; /* a sample was taken before: threads that come now are new */
} tg_threads;

tg_status tg_threads_open(const char *root, const int64_t *pids, size_t count,
                          tg_threads *out) TG_MUST_CHECK;
/* Values of the job and of its roles; without processes all stay unknown. */
void tg_threads_take(tg_threads *threads, tg_text *text, double seconds, tg_system_sample *out);
void tg_threads_close(tg_threads *threads);

#endif
