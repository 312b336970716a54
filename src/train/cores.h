/* cores.h - the cores of a machine among the ranks that run on it.
 *
 * A launcher may bind each rank to cores of its own, or leave all of them on all cores; N ranks that each
 * start a thread for every core would then stand in one another's way. So ranks tell each other what they
 * may use, and those of one machine with the same cores divide them: evenly, without overlap, neighbours in
 * the machine together (os/affinity.h). Ranks whose cores differ already are left as they are.
 *
 * Threads     as asked for (--threads), else one for each core of the rank's part, no more than its
 *             share of the cgroup's quota (divided by the ranks of that cgroup) and of the scheduler.
 * Bound       a rank is bound to its part when every rank that divides the same cores fits into its own:
 *             not where there are more ranks than cores, or where --threads asks for more than a part.
 *
 * Jobs    do not know of one another: two on the same cores divide them among their own ranks each, evenly, so that
 *         each core has one of either. The log says so; who wants them apart gives each cores of its own
 *         (taskset, mpirun --cpu-set, the batch system), which it then divides.
 *
 * Errors  those of comm/; a system that refuses to bind is a warning. Memory none that is kept.
 */
#ifndef TG_TRAIN_CORES_H
#define TG_TRAIN_CORES_H

#include "comm/comm.h"
#include "os/affinity.h"
#include "os/cpu.h"
#include "os/process.h"

/* What a rank may use, as it was started. */
typedef struct tg_cores_report {
    tg_process process;
    uint64_t machine; /* tg_machine_id */
    uint64_t quota_group;
    double quota;           /* cores by cgroup; 0: none */
    int scheduler, threads; /* by the scheduler, by --threads; 0: not said */
    int possible;           /* cores that this process could be given at most */
    bool placed; /* the user's environment binds threads already (OMP_PROC_BIND and the like) */
    tg_cpu_set cores;
} tg_cores_report;

/* Fills all but threads and placed, which the caller sets. */
void tg_cores_report_read(const tg_cpu_share *share, tg_cores_report *out);

/* What a rank gets: `count` of its cores in their order, from `first` on. */
typedef struct tg_cores_part {
    int first, count;
    bool divided; /* among several ranks */
    bool bind;
    int threads;
} tg_cores_part;

/* The same for every rank from the same reports; all: [ranks]. */
tg_cores_part tg_cores_divide(const tg_cores_report *all, int ranks, int rank);

/* What a rank works with in the end. */
typedef struct tg_cores_place {
    tg_cpu_set cores;
    double quota;
    int threads, workers;
    bool bound; /* by this program */
} tg_cores_place;

/* How many loader threads a rank has besides `threads` compute threads. */
typedef int (*tg_cores_workers)(const void *user, int threads);

/* Every rank calls it before it starts threads that compute: divides, binds the calling thread, and
 * tells all. mine->threads 0: as many as the part allows. workers may be NULL: none. out: [size]. */
tg_status tg_cores_share(tg_comm *comm, const tg_cores_report *mine, tg_cores_workers workers,
                         const void *user, tg_cores_place *out,
                         tg_cores_report *out_reports) TG_MUST_CHECK;

/* Log lines on each machine's ranks, cores and quota, machines of the same shape in one line; warnings where
 * threads are more than cores, or ranks are bound to few while more are free; what else of this
 * program runs on the cores of this rank's machine. advice: how this launcher
 * leaves ranks unbound ("--bind-to none"). One rank says it for all. */
void tg_cores_log(const tg_comm *comm, const tg_cores_report *reports, const tg_cores_place *places,
                  const char *advice);

#endif
