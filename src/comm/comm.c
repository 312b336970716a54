#include "comm/comm.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tg_status tg_comm_begin(tg_comm *comm, const tg_comm_work *work, tg_comm_ticket *out)
{
    return comm->ops->begin(comm, work, out);
}

tg_status tg_comm_wait(tg_comm *comm, tg_comm_ticket ticket)
{
    return ticket ? comm->ops->wait(comm, ticket) : TG_OK;
}

tg_status tg_comm_meet(tg_comm *comm, const char *what, const void *mine, size_t bytes,
                       void *out_all)
{
    return comm->ops->meet(comm, what, mine, bytes, out_all);
}

tg_status tg_comm_take_first(tg_comm *comm, const char *what, void *inout_value, size_t bytes)
{
    char *all = calloc((size_t)comm->size, bytes);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    tg_status status = tg_comm_meet(comm, what, inout_value, bytes, all);
    if (status == TG_OK)
        memcpy(inout_value, all, bytes);
    free(all);
    return status;
}

tg_status tg_comm_reserve(tg_comm *comm, size_t count, tg_dtype wire)
{
    return comm->ops->reserve(comm, count, wire);
}

void tg_comm_quiet(tg_comm *comm)
{
    comm->ops->quiet(comm);
}

void tg_comm_set_stall(tg_comm *comm, double seconds)
{
    comm->ops->set_stall(comm, seconds);
}

const char *tg_comm_host(const tg_comm *comm, int rank)
{
    return comm->ops->host(comm, rank);
}

size_t tg_comm_bytes(const tg_comm *comm)
{
    return comm->ops->bytes(comm);
}

tg_comm_traffic tg_comm_get_traffic(const tg_comm *comm)
{
    return comm->ops->traffic(comm);
}

bool tg_comm_lost(tg_comm *comm, int rank)
{
    return rank != comm->rank && comm->ops->lost(comm, rank);
}

bool tg_comm_get_record(tg_comm *comm, tg_comm_ticket ticket, tg_comm_record *out)
{
    return ticket && comm->ops->record(comm, ticket, out);
}

void tg_comm_leave(tg_comm *comm, const char *reason)
{
    comm->ops->leave(comm, reason);
}

void tg_comm_close(tg_comm *comm)
{
    if (comm)
        comm->ops->close(comm);
}

void tg_comm_piece(size_t count, int size, int rank, size_t *out_begin, size_t *out_end)
{
    const size_t grains = (count + TG_COMM_GRAIN - 1) / TG_COMM_GRAIN;
    const size_t each = grains / (size_t)size, more = grains % (size_t)size, r = (size_t)rank;
    size_t begin = (each * r + (r < more ? r : more)) * TG_COMM_GRAIN;
    size_t end = begin + (each + (r < more)) * TG_COMM_GRAIN;
    *out_begin = begin < count ? begin : count;
    *out_end = end < count ? end : count;
}

/* Of the message last recorded. */
static uint64_t fingerprint(void)
{
    return tg_hash(TG_HASH_START, tg_error_message(), strlen(tg_error_message()));
}

bool tg_comm_agreed(const tg_comm *comm)
{
    return comm->agreed && comm->agreed == fingerprint();
}

/* What a rank says of itself when all agree. */
typedef struct verdict {
    int32_t status;
    char reason[1020];
} verdict;

/* The failure of the first rank that has one, for a rank that has none. */
static tg_status adopt(tg_comm *comm, const verdict *all, bool follow)
{
    if (follow && all[0].status < 0)
        return tg_fail((tg_status)all[0].status, "%s", all[0].reason);
    for (int r = 0; r < comm->size; r++)
        if (all[r].status < 0)
            return tg_fail(TG_ERROR_PEER, "rank %d on %s: %s", r, tg_comm_host(comm, r),
                           all[r].reason);
    return TG_OK;
}

static tg_status share_verdict(tg_comm *comm, const char *what, tg_status status, bool follow)
{
    if (comm->size == 1)
        return status;
    char own[TG_ERROR_BYTES]; /* whole, where the others get its beginning */
    verdict mine = {.status = status < 0 ? status : TG_OK};
    snprintf(own, sizeof own, "%s", tg_error_message());
    verdict *all = calloc((size_t)comm->size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to hear %d ranks", comm->size);
    if (mine.status < 0)
        memcpy(mine.reason, own, strnlen(own, sizeof mine.reason - 1));
    tg_status met = tg_comm_meet(comm, what, &mine, sizeof mine, all);
    const bool heard = met == TG_OK;
    if (heard && mine.status == TG_OK)
        met = adopt(comm, all, follow);
    free(all);
    if (mine.status < 0)
        met = tg_fail(mine.status, "%s", own);
    if (met < 0) /* what all know of stays known when they meet again, as to save what they have */
        comm->agreed = heard ? fingerprint() : 0;
    return met;
}

tg_status tg_comm_agree(tg_comm *comm, const char *what, tg_status status)
{
    return share_verdict(comm, what, status, false);
}

tg_status tg_comm_follow(tg_comm *comm, const char *what, tg_status status)
{
    return share_verdict(comm, what, status, true);
}
