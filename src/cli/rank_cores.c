#include "cli/rank_cores.h"

#include "cli/options_parallel.h"
#include "dev/dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set by people who bind threads themselves. */
static bool threads_are_placed(void)
{
    static const char *const names[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                        "KMP_AFFINITY"};
    for (size_t i = 0; i < TG_COUNT_OF(names); i++)
        if (getenv(names[i]))
            return true;
    return false;
}

static tg_status describe(const tg_comm *comm, tg_rank_cores *c)
{
    tg_text texts = {0};
    c->count = (size_t)comm->size;
    c->ranks = calloc(c->count, sizeof *c->ranks);
    if (!c->ranks)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    for (size_t r = 0; r < c->count; r++) {
        tg_cpu_set_print(&c->places[r].cores, &texts);
        tg_text_append_char(&texts, '\0');
    }
    tg_status status = tg_text_check(&texts, "cores");
    c->texts = texts.data;
    const char *at = c->texts;
    for (size_t r = 0; r < c->count && status == TG_OK; r++, at += strlen(at) + 1)
        c->ranks[r] = (tg_run_rank){.host = tg_comm_host(comm, (int)r),
                                    .cores = at,
                                    .bound = c->places[r].bound,
                                    .threads = c->places[r].threads,
                                    .workers = c->places[r].workers,
                                    .cpu_quota = c->places[r].quota};
    return status;
}

static tg_status divide(const tg_invocation *invocation, tg_comm *comm, const tg_cpu_share *share,
                        tg_cores_workers workers, const void *user, tg_rank_cores *c)
{
    tg_cores_report mine;
    c->reports = calloc((size_t)comm->size, sizeof *c->reports);
    c->places = calloc((size_t)comm->size, sizeof *c->places);
    tg_status status = TG_OK;
    if (!c->reports || !c->places)
        status = tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_cores_report_read(share, &mine);
    mine.placed = threads_are_placed();
    if (invocation->common->threads != TG_OPTION_AUTO_VALUE)
        mine.threads = (int)invocation->common->threads;
    if (status == TG_OK)
        status = tg_cores_share(comm, &mine, workers, user, c->places, c->reports);
    if (status == TG_OK)
        c->threads = c->places[comm->rank].threads;
    return status == TG_OK ? describe(comm, c) : status;
}

tg_status tg_rank_cores_open(const tg_invocation *invocation, tg_comm *comm,
                             tg_cores_workers workers, const void *user, tg_rank_cores *out)
{
    tg_rank_cores c = {.threads = tg_invocation_threads(invocation)};
    tg_cpu_share share;
    tg_status status = TG_OK;
    tg_run_machine_read(0, &c.machine);
    tg_invocation_share(&share);
    if (comm != tg_comm_self())
        status = divide(invocation, comm, &share, workers, user, &c);
    if (c.threads > tg_dev_thread_limit() && invocation->common->threads == TG_OPTION_AUTO_VALUE)
        c.threads = tg_dev_thread_limit();
    if (status < 0)
        tg_rank_cores_close(&c);
    else
        *out = c;
    return status;
}

void tg_rank_cores_log(const tg_rank_cores *c, const tg_comm *comm)
{
    if (c->places)
        tg_cores_log(comm, c->reports, c->places, tg_parallel_unbound());
}

void tg_rank_cores_close(tg_rank_cores *c)
{
    if (!c)
        return;
    free(c->reports);
    free(c->places);
    free(c->ranks);
    free(c->texts);
    *c = (tg_rank_cores){0};
}
