/* use.h - what the steps of a run and the machines under them came to, in the few numbers that rules compare.
 *
 * Steps     those of the last TG_USE_STEPS, without the first one of each start, which warms up, and without stalls (beyond
 *           five medians, StepOutlier's business). Parts are means, so that they add up to step_s.
 * Machines  samples taken while those steps ran (all, where the records have no times).
 * Device    what computes: the accelerators where there are any; else the cores that the job's compute threads have,
 *           so that its use is the cores that they take over the number of them.
 * Unknown   NaN. A value that is unknown in more than half of the time is unknown, and so are its percentiles.
 *
 * The overlap model (tg_use_predict). A rank's loader threads work beside its compute threads on the same cores. Of a step
 * they need `loader_core_s` seconds of a core; compute needs `compute_core_s`, and takes `compute_s` where nobody takes its
 * cores away: the step without waiting for photos, less the part of it in which a compute thread could run and had no core
 * (cpu wait w of each of T threads, which wait for one another: 1 - (1 - w)^T of the step, at most 1.4 loader_core_s,
 * beyond which it is others that have the cores). With n loader threads, and s cores more than compute threads, the step
 * takes the longest of
 *     compute_s + d                                    compute, delayed by the loaders that have no core of their own
 *     loader_core_s / n                                loaders alone
 *     (compute_core_s + loader_core_s) / cores         all that the cores have to do
 * where d = 0 for n <= s, else 1.4 (loader_core_s - s compute_s) / min(n - s, T), at most max(1, (n - s) / T) compute_s:
 * each loader takes turns with one compute thread, so that few of them on cores that all compute delay more than as many
 * as there are threads. The model does not know memory bandwidth, disks, and how other programs share the cores.
 */
#ifndef TG_DIAGNOSE_USE_H
#define TG_DIAGNOSE_USE_H

#include "run/history.h"

#include <stddef.h>

enum { TG_USE_STEPS = 2000, TG_USE_STEPS_LEAST = 20, TG_USE_SAMPLES_LEAST = 10 };

/* Of the first rank; seconds, means over `steps` of them. */
typedef struct tg_use_steps {
    size_t steps; /* 0: too few (below TG_USE_STEPS_LEAST), and all else is NaN */
    int64_t first_step, last_step;
    double begin, end; /* wall time; NaN: the records have none */
    double step_s, median_s, images;
    double data_s, teacher_s, forward_s, backward_s, exchange_s, optimizer_s, other_s;
} tg_use_steps;

tg_use_steps tg_use_of_steps(const tg_history *history);

/* A value over time, weighted by the samples' seconds. */
typedef struct tg_use_spread {
    double mean, p5, p50, p95, most;
    size_t samples; /* that know it */
    double seconds;
} tg_use_spread;

/* A value of one sample; NaN: unknown. */
typedef double (*tg_use_value)(const tg_system_host *host, const tg_system_sample *sample,
                               const void *user);

/* Of the samples in [begin, end] of one host (NaN: no such bound). TG_ERROR_MACHINE for memory. */
tg_status tg_use_spread_of(const tg_system_host *host, double begin, double end, tg_use_value value,
                           const void *user, tg_use_spread *out) TG_MUST_CHECK;
/* Mean of one metric, as the above; NaN: unknown. */
double tg_use_mean(const tg_system_host *host, double begin, double end, int metric);

/* Values of a sample: user is NULL, but for the last, which takes an int, a tg_system_metric. */
double tg_use_cpu(const tg_system_host *host, const tg_system_sample *sample, const void *user);
double tg_use_device(const tg_system_host *host, const tg_system_sample *sample, const void *user);
/* Memory of the accelerators as a share of theirs; else of the job as a share of what it may have. */
double tg_use_memory(const tg_system_host *host, const tg_system_sample *sample, const void *user);
double tg_use_iowait(const tg_system_host *host, const tg_system_sample *sample, const void *user);
double tg_use_metric(const tg_system_host *host, const tg_system_sample *sample, const void *user);

/* The share of the time in which `is_so` of a sample; NaN where it is known too rarely. */
typedef int (*tg_use_question)(const tg_system_host *host, const tg_system_sample *sample,
                               const void *user); /* 1 yes, 0 no, -1 unknown */
double tg_use_share(const tg_system_host *host, double begin, double end, tg_use_question is_so,
                    const void *user);

/* A rank, the first one's, on its machine; NaN: unknown. */
typedef struct tg_use_rank {
    tg_use_steps steps;
    const tg_system_host *host; /* that the first rank ran on; NULL: no samples of it */
    double threads, workers;    /* of a rank, as they ran */
    double cores;               /* for each rank of that machine: its usable cores over its ranks */
    double ranks_here;
    double loader_core_s;  /* of a core a step, of this rank's loader threads */
    double compute_core_s; /* likewise of its compute threads */
    double loader_busy;    /* share of the time that a loader thread works */
    double
        compute_wait; /* share of a compute thread's time in which it could run and had no core */
    double compute_s; /* of a step, undisturbed (above); without samples: step_s - data_s */
} tg_use_rank;

tg_use_rank tg_use_of_rank(const tg_history *history);

/* Step time with so many loader threads, 1 or more; NaN: loader_core_s or cores are unknown. Never less than
 * compute_s. */
double tg_use_predict(const tg_use_rank *use, double workers);
/* The least number of loader threads that keeps the step within 2 % of the best, or 0 when unknown. */
double tg_use_best_workers(const tg_use_rank *use);

/* "the job's accelerators" or "the cores that the compute threads have", for sentences. */
const char *tg_use_device_name(const tg_history *history);

#endif
