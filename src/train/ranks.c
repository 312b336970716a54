#include "train/ranks.h"

#include "comm/host/host.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>

tg_status tg_ranks_open(tg_ranks *ranks, tg_comm *comm, const tg_ranks_options *options,
                        size_t elements)
{
    *ranks = (tg_ranks){.comm = comm, .options = *options};
    return tg_buckets_init(&ranks->buckets, comm, elements, options->first_bucket_bytes,
                           options->bucket_bytes);
}

void tg_ranks_close(tg_ranks *ranks)
{
    if (ranks)
        tg_buckets_done(&ranks->buckets);
}

size_t tg_ranks_bytes(const tg_ranks_options *options, size_t elements, int size)
{
    const size_t largest = options->bucket_bytes > options->first_bucket_bytes
                               ? options->bucket_bytes
                               : options->first_bucket_bytes;
    const size_t bucket = largest / sizeof(float) + TG_COMM_GRAIN;
    return tg_host_bytes(size, bucket < elements ? bucket : elements, options->wire);
}

void tg_ranks_reduce(tg_ranks *ranks, float *grads)
{
    tg_buckets_reduce(&ranks->buckets, grads, ranks->options.shard, ranks->options.wire);
}

void tg_ranks_ready(void *user, size_t offset, size_t count)
{
    tg_ranks *ranks = user;
    tg_buckets_ready(&ranks->buckets, offset, count);
}

/* Of this rank's pieces, bucket by bucket. */
static double own_squares(const tg_ranks *ranks, const tg_optimizer *optimizer, const float *grads)
{
    double sum = 0;
    for (size_t i = 0; i < ranks->buckets.count; i++) {
        const tg_bucket *b = &ranks->buckets.items[i];
        if (b->own_count)
            sum += optimizer->kern->optim.sum_squares(optimizer->stream, b->own_count,
                                                      grads + b->own_offset);
    }
    return sum;
}

tg_status tg_ranks_sum(tg_ranks *ranks, const tg_optimizer *optimizer, const float *grads,
                       tg_ranks_sums *sums)
{
    int64_t begin = tg_clock_ns();
    const int size = ranks->comm->size;
    tg_ranks_sums mine = *sums, total = {0}, *all = calloc((size_t)size, sizeof *all);
    if (!all)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", size);
    tg_status status = tg_buckets_finish(&ranks->buckets);
    if (status == TG_OK) {
        mine.squares = own_squares(ranks, optimizer, grads);
        status = tg_comm_meet(ranks->comm, "end of step", &mine, sizeof mine, all);
    }
    for (int r = 0; r < size && status == TG_OK; r++) {
        total.images += all[r].images;
        total.task += all[r].task;
        total.kd += all[r].kd;
        total.squares += all[r].squares;
        total.stop = total.stop ? total.stop : all[r].stop;
    }
    free(all);
    ranks->wait_ns += tg_clock_ns() - begin;
    TG_TRY(status);
    *sums = total;
    return TG_OK;
}

static void update_shard(tg_ranks *ranks, tg_optimizer *optimizer, const float *grads,
                         double grad_scale, double lr)
{
    for (size_t i = 0; i < ranks->buckets.count; i++) {
        const tg_bucket *b = &ranks->buckets.items[i];
        float *average = optimizer->average ? optimizer->average + b->shard_offset : NULL;
        if (b->own_count)
            tg_optimizer_update_range(optimizer, b->own_offset, b->own_count, grads + b->own_offset,
                                      optimizer->m + b->shard_offset,
                                      optimizer->v + b->shard_offset, average, grad_scale, lr);
    }
}

tg_status tg_ranks_update(tg_ranks *ranks, tg_optimizer *optimizer, const float *grads,
                          double grad_scale, double lr)
{
    if (ranks
            ->gathering) /* nobody ran a forward since: the pieces of one update before those of the next */
        TG_TRY(tg_buckets_need(&ranks->buckets, 0, ranks->buckets.elements));
    tg_optimizer_begin_step(optimizer);
    if (!ranks->options.shard) {
        tg_optimizer_update_range(optimizer, 0, optimizer->elements, grads, optimizer->m,
                                  optimizer->v, optimizer->average, grad_scale, lr);
        return TG_OK;
    }
    update_shard(ranks, optimizer, grads, grad_scale, lr);
    ranks->gathering = true;
    return tg_buckets_gather(&ranks->buckets, optimizer->params);
}

tg_status tg_ranks_need(tg_ranks *ranks, size_t offset, size_t count)
{
    if (!ranks->gathering)
        return TG_OK;
    int64_t begin = tg_clock_ns();
    tg_status status = tg_buckets_need(&ranks->buckets, offset, count);
    ranks->wait_ns += tg_clock_ns() - begin;
    if (offset + count == ranks->buckets.elements)
        ranks->gathering = false;
    return status;
}

void tg_ranks_pack(const tg_ranks *ranks, tg_stream *stream, const float *whole, float *out_packed)
{
    for (size_t i = 0; i < ranks->buckets.count; i++) {
        const tg_bucket *b = &ranks->buckets.items[i];
        tg_stream_copy(stream, out_packed + b->shard_offset, whole + b->own_offset,
                       b->own_count * sizeof *whole);
    }
}

tg_status tg_ranks_gather(tg_ranks *ranks, tg_stream *stream, const float *packed, float *out_whole)
{
    assert(!ranks->gathering);
    for (size_t i = 0; i < ranks->buckets.count; i++) {
        const tg_bucket *b = &ranks->buckets.items[i];
        tg_stream_copy(stream, out_whole + b->own_offset, packed + b->shard_offset,
                       b->own_count * sizeof *packed);
    }
    TG_TRY(tg_buckets_gather(&ranks->buckets, out_whole));
    return tg_buckets_need(&ranks->buckets, 0, ranks->buckets.elements);
}
