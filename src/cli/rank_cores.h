/* rank_cores.h - the cores that each rank of a job computes on, before anything starts threads. */
#ifndef TG_CLI_RANK_CORES_H
#define TG_CLI_RANK_CORES_H

#include "cli/command.h"
#include "run/run_info.h"
#include "train/cores.h"

typedef struct tg_rank_cores {
    tg_run_machine machine;   /* as this process was started */
    tg_cores_report *reports; /* [size]; NULL, as places: one process without a launcher */
    tg_cores_place *places;
    tg_run_rank *ranks; /* the same for run.json */
    char *texts;        /* what `ranks` points to */
    size_t count;
    int threads; /* of this rank */
} tg_rank_cores;

/* Every rank of `comm` calls it. workers, user: as for tg_cores_share. */
tg_status tg_rank_cores_open(const tg_invocation *invocation, tg_comm *comm,
                             tg_cores_workers workers, const void *user,
                             tg_rank_cores *out) TG_MUST_CHECK;
/* What came of it, in the log; for the first rank. */
void tg_rank_cores_log(const tg_rank_cores *cores, const tg_comm *comm);
void tg_rank_cores_close(tg_rank_cores *cores);

#endif
