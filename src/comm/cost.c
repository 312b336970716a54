#include "comm/cost.h"

#include "comm/host/host.h"

static bool has_sums(const tg_comm_work *work)
{
    return work->kind == TG_COMM_REDUCE_SCATTER || work->kind == TG_COMM_ALL_REDUCE;
}

static bool has_gather(const tg_comm_work *work)
{
    return work->kind == TG_COMM_ALL_GATHER || work->kind == TG_COMM_ALL_REDUCE;
}

static size_t messages_of(size_t bytes)
{
    return (bytes + TG_HOST_MESSAGE_BYTES - 1) / TG_HOST_MESSAGE_BYTES;
}

size_t tg_comm_cost_messages(const tg_comm_work *work, int size)
{
    const size_t peers = (size_t)size - 1;
    size_t begin, end, messages = 0;
    if (work->kind == TG_COMM_MEET)
        return peers;
    tg_comm_piece(work->count, size, 0, &begin, &end); /* no piece is larger */
    if (has_sums(work))
        messages += messages_of((end - begin) * tg_dtype_bytes(work->wire));
    if (has_gather(work))
        messages += messages_of((end - begin) * sizeof(float));
    return peers * messages;
}

size_t tg_comm_cost_bytes(const tg_comm_work *work, int size, int rank)
{
    size_t begin, end, bytes = 0;
    tg_comm_piece(work->count, size, rank, &begin, &end);
    if (has_sums(work))
        bytes += (work->count - (end - begin)) * tg_dtype_bytes(work->wire);
    if (has_gather(work))
        bytes += (end - begin) * sizeof(float) * ((size_t)size - 1);
    return bytes;
}

size_t tg_comm_cost_memory(int size, size_t count, tg_dtype wire)
{
    return tg_host_bytes(size, count, wire);
}
