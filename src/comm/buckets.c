#include "comm/buckets.h"

#include <assert.h>
#include <stdlib.h>

static size_t grains_of(size_t bytes)
{
    size_t elements = bytes / sizeof(float) / TG_COMM_GRAIN * TG_COMM_GRAIN;
    return elements ? elements : TG_COMM_GRAIN;
}

static void cut(tg_buckets *buckets, size_t first, size_t others)
{
    size_t end = buckets->elements, shard = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        tg_bucket *b = &buckets->items[i];
        size_t length = i == 0 ? first : others, begin, stop;
        b->offset = end > length ? end - length : 0;
        b->count = end - b->offset;
        tg_comm_piece(b->count, buckets->comm->size, buckets->comm->rank, &begin, &stop);
        b->own_offset = b->offset + begin;
        b->own_count = stop - begin;
        b->shard_offset = shard;
        shard += b->own_count;
        end = b->offset;
    }
    buckets->own_elements = shard;
}

tg_status tg_buckets_init(tg_buckets *buckets, tg_comm *comm, size_t elements, size_t first_bytes,
                          size_t bucket_bytes)
{
    size_t first = grains_of(first_bytes), others = grains_of(bucket_bytes);
    if (first > elements)
        first = elements;
    assert(elements % TG_COMM_GRAIN == 0 && elements > 0);
    *buckets = (tg_buckets){.comm = comm, .elements = elements};
    buckets->count = 1 + (elements - first + others - 1) / others;
    buckets->items = calloc(buckets->count, sizeof *buckets->items);
    if (!buckets->items)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu buckets", buckets->count);
    cut(buckets, first, others);
    return TG_OK;
}

void tg_buckets_done(tg_buckets *buckets)
{
    if (!buckets)
        return;
    free(buckets->items);
    *buckets = (tg_buckets){0};
}

void tg_buckets_reduce(tg_buckets *buckets, float *grads, bool scatter, tg_dtype wire)
{
    buckets->work = (tg_comm_work){.kind = scatter ? TG_COMM_REDUCE_SCATTER : TG_COMM_ALL_REDUCE,
                                   .what = "gradients",
                                   .wire = wire};
    buckets->data = grads;
    buckets->frontier = buckets->elements;
    buckets->begun = 0;
    buckets->status = TG_OK;
}

void tg_buckets_ready(tg_buckets *buckets, size_t offset, size_t count)
{
    assert(offset + count == buckets->frontier);
    buckets->frontier = offset;
    while (buckets->status == TG_OK && buckets->begun < buckets->count &&
           buckets->items[buckets->begun].offset >= offset) {
        tg_bucket *b = &buckets->items[buckets->begun++];
        buckets->work.data = buckets->data + b->offset;
        buckets->work.count = b->count;
        buckets->status = tg_comm_begin(buckets->comm, &buckets->work, &b->ticket);
    }
}

tg_status tg_buckets_finish(tg_buckets *buckets)
{
    if (buckets->status < 0)
        return buckets->status;
    assert(buckets->begun == buckets->count);
    return tg_comm_wait(buckets->comm, buckets->items[buckets->count - 1].ticket);
}

tg_status tg_buckets_send(tg_buckets *buckets, size_t i, float *data, size_t count)
{
    const tg_comm_work work = {.kind = TG_COMM_ALL_GATHER,
                               .what = "parameters",
                               .data = data,
                               .count = count,
                               .wire = TG_F32};
    return tg_comm_begin(buckets->comm, &work, &buckets->items[i].ticket);
}

tg_status tg_buckets_gather(tg_buckets *buckets, float *params)
{
    for (size_t i = buckets->count; i-- > 0;) {
        const tg_bucket *b = &buckets->items[i];
        TG_TRY(tg_buckets_send(buckets, i, params + b->offset, b->count));
    }
    return TG_OK;
}

/* Collectives finish in the order in which they began: the last bucket of the range is the one. */
tg_status tg_buckets_need(tg_buckets *buckets, size_t offset, size_t count)
{
    for (size_t i = 0; i < buckets->count; i++) {
        const tg_bucket *b = &buckets->items[i];
        if (count && b->offset < offset + count)
            return tg_comm_wait(buckets->comm, b->ticket);
    }
    return TG_OK;
}
