#include "train/ranks.h"

#include "comm/cost.h"
#include "os/clock.h"
#include "trace/trace.h"

#include <assert.h>
#include <stdlib.h>

/* Records kept for each bucket: two steps, each with gradients and parameters. */
enum { RECORDS = 4 };

/* Elements of the largest bucket, at most. */
static size_t largest_bucket(const tg_ranks_options *options, size_t elements)
{
    const size_t largest = options->bucket_bytes > options->first_bucket_bytes
                               ? options->bucket_bytes
                               : options->first_bucket_bytes;
    const size_t bucket = largest / sizeof(float) + TG_COMM_GRAIN;
    return bucket < elements ? bucket : elements;
}

tg_status tg_ranks_open(tg_ranks *ranks, tg_comm *comm, const tg_ranks_options *options,
                        size_t elements)
{
    *ranks = (tg_ranks){.comm = comm, .options = *options};
    ranks->each = calloc((size_t)comm->size, sizeof *ranks->each);
    if (!ranks->each)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", comm->size);
    TG_TRY(tg_buckets_init(&ranks->buckets, comm, elements, options->first_bucket_bytes,
                           options->bucket_bytes));
    ranks->records = calloc(RECORDS * ranks->buckets.count, sizeof *ranks->records);
    if (!ranks->records)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu buckets", ranks->buckets.count);
    return tg_comm_reserve(comm, largest_bucket(options, elements), options->wire);
}

/* Parcels of all ranks lie side by side, each as long as the longest. 0: the bucket is no longer without them. */
static size_t parcel_floats(const tg_ranks *ranks, const tg_bucket *b)
{
    const int size = ranks->comm->size;
    size_t longest = 0, begin, end;
    for (int r = 0; r < size; r++) {
        tg_comm_piece(b->count, size, r, &begin, &end);
        const size_t n = tg_parcel_length(&ranks->parcels, b->offset + begin, b->offset + end);
        longest = n > longest ? n : longest;
    }
    return longest * (size_t)size < b->count ? longest : 0;
}

tg_status tg_ranks_narrow(tg_ranks *ranks, const tg_parcels *parcels)
{
    assert(ranks->options.shard && !ranks->gathering && !ranks->parcel_floats);
    ranks->parcels = *parcels;
    ranks->parcel_floats = calloc(ranks->buckets.count, sizeof *ranks->parcel_floats);
    if (!ranks->parcel_floats)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu buckets", ranks->buckets.count);
    for (size_t i = 0; i < ranks->buckets.count; i++)
        ranks->parcel_floats[i] = parcel_floats(ranks, &ranks->buckets.items[i]);
    return TG_OK;
}

void tg_ranks_close(tg_ranks *ranks)
{
    if (!ranks)
        return;
    if (ranks->comm)
        tg_comm_quiet(ranks->comm);
    tg_buckets_done(&ranks->buckets);
    tg_parcels_done(&ranks->parcels);
    free(ranks->parcel_floats);
    free(ranks->each);
    free(ranks->records);
    ranks->parcel_floats = NULL;
    ranks->each = NULL;
    ranks->records = NULL;
}

size_t tg_ranks_bytes(const tg_ranks_options *options, size_t elements, int size)
{
    return tg_comm_cost_memory(size, largest_bucket(options, elements), options->wire);
}

size_t tg_ranks_record_room(const tg_ranks *ranks)
{
    return RECORDS * ranks->buckets.count;
}

void tg_ranks_forget(tg_ranks *ranks)
{
    ranks->record_count = 0;
}

/* Of all buckets that have come, from the tail on (gradients) or from the head. */
static void keep_records(tg_ranks *ranks, bool from_head)
{
    const size_t n = ranks->buckets.count;
    for (size_t i = 0; i < n && ranks->record_count < RECORDS * n; i++) {
        const tg_bucket *b = &ranks->buckets.items[from_head ? n - 1 - i : i];
        if (tg_comm_get_record(ranks->comm, b->ticket, &ranks->records[ranks->record_count]))
            ranks->record_count++;
    }
}

/* A wait that began at `begin` is over. */
static void count_wait(tg_ranks *ranks, const char *what, int64_t begin)
{
    ranks->wait_ns += tg_clock_ns() - begin;
    tg_trace_end(&(tg_trace_key){.name = what, .phase = "wait"}, begin, 0, 0);
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

/* What a rank says when all meet. */
typedef struct word {
    tg_ranks_sums sums;
    tg_rank_step own;
} word;

static tg_status meet(tg_ranks *ranks, const char *what, const tg_ranks_sums *sums, word *out_all)
{
    const int64_t begin = tg_clock_ns();
    const word mine = {.sums = *sums, .own = ranks->own};
    tg_status status = tg_comm_meet(ranks->comm, what, &mine, sizeof mine, out_all);
    count_wait(ranks, "meeting", begin);
    TG_TRY(status);
    for (int r = 0; r < ranks->comm->size; r++)
        ranks->each[r] = out_all[r].own;
    ranks->told_step = ranks->own_step;
    ranks->own_step = 0;
    return TG_OK;
}

static word *new_words(const tg_ranks *ranks)
{
    word *all = calloc((size_t)ranks->comm->size, sizeof *all);
    if (!all)
        (void)tg_fail(TG_ERROR_MACHINE, "out of memory for %d ranks", ranks->comm->size);
    return all;
}

static tg_status finish(tg_ranks *ranks)
{
    const int64_t begin = tg_clock_ns();
    tg_status status = tg_buckets_finish(&ranks->buckets);
    count_wait(ranks, "wait for gradients", begin);
    if (status == TG_OK)
        keep_records(ranks, false);
    return status;
}

tg_status tg_ranks_sum(tg_ranks *ranks, const tg_optimizer *optimizer, const float *grads,
                       tg_ranks_sums *sums)
{
    tg_ranks_sums mine = *sums, total = {0};
    word *all = new_words(ranks);
    if (!all)
        return TG_ERROR_MACHINE;
    tg_status status = finish(ranks);
    if (status == TG_OK) {
        mine.squares = own_squares(ranks, optimizer, grads);
        status = meet(ranks, "end of step", &mine, all);
    }
    for (int r = 0; r < ranks->comm->size && status == TG_OK; r++) {
        total.images += all[r].sums.images;
        total.task += all[r].sums.task;
        total.kd += all[r].sums.kd;
        total.squares += all[r].sums.squares;
        total.stop = total.stop ? total.stop : all[r].sums.stop;
        total.keep = total.keep > all[r].sums.keep ? total.keep : all[r].sums.keep;
    }
    free(all);
    TG_TRY(status);
    *sums = total;
    return TG_OK;
}

tg_status tg_ranks_tell(tg_ranks *ranks)
{
    static const tg_ranks_sums none = {0};
    ranks->told_step = 0;
    if (!ranks->own_step)
        return TG_OK;
    word *all = new_words(ranks);
    if (!all)
        return TG_ERROR_MACHINE;
    const int64_t waited = ranks->wait_ns; /* this is in no step's time */
    tg_status status = meet(ranks, "phases", &none, all);
    ranks->wait_ns = waited;
    free(all);
    return status;
}

static void update_piece(const tg_bucket *b, const tg_optimizer *optimizer, const float *grads,
                         double grad_scale, double lr)
{
    float *average = optimizer->average ? optimizer->average + b->shard_offset : NULL;
    if (b->own_count)
        tg_optimizer_update_range(optimizer, b->own_offset, b->own_count, grads + b->own_offset,
                                  optimizer->m + b->shard_offset, optimizer->v + b->shard_offset,
                                  average, grad_scale, lr);
}

static size_t floats_of(const tg_ranks *ranks, size_t bucket)
{
    return ranks->parcel_floats ? ranks->parcel_floats[bucket] : 0;
}

/* This rank's piece of bucket `i` to all. Its gradients, where parcels go, have been used. */
static tg_status send(tg_ranks *ranks, size_t i)
{
    const tg_bucket *b = &ranks->buckets.items[i];
    const size_t floats = floats_of(ranks, i);
    if (!floats)
        return tg_buckets_send(&ranks->buckets, i, ranks->params + b->offset, b->count);
    float *area = ranks->area + b->offset;
    tg_parcel_pack(&ranks->parcels, ranks->params, b->own_offset, b->own_offset + b->own_count,
                   area + (size_t)ranks->comm->rank * floats);
    return tg_buckets_send(&ranks->buckets, i, area, floats * (size_t)ranks->comm->size);
}

tg_status tg_ranks_update(tg_ranks *ranks, tg_optimizer *optimizer, float *grads, double grad_scale,
                          double lr)
{
    assert(!ranks->gathering);
    tg_optimizer_begin_step(optimizer);
    if (!ranks->options.shard) {
        tg_optimizer_update_range(optimizer, 0, optimizer->elements, grads, optimizer->m,
                                  optimizer->v, optimizer->average, grad_scale, lr);
        return TG_OK;
    }
    ranks->params = optimizer->params;
    ranks->area = grads;
    ranks->coming = ranks->buckets.count;
    ranks->gathering = true;
    ranks->rounded = ranks->parcel_floats != NULL;
    for (size_t i = ranks->buckets.count; i-- > 0;) {
        update_piece(&ranks->buckets.items[i], optimizer, grads, grad_scale, lr);
        TG_TRY(send(ranks, i));
    }
    return TG_OK;
}

static void unpack(tg_ranks *ranks, size_t i)
{
    const tg_bucket *b = &ranks->buckets.items[i];
    const size_t floats = floats_of(ranks, i);
    const int size = ranks->comm->size;
    size_t begin, end;
    for (int r = 0; r < size && floats; r++) {
        tg_comm_piece(b->count, size, r, &begin, &end);
        if (r != ranks->comm->rank)
            tg_parcel_unpack(&ranks->parcels, ranks->area + b->offset + (size_t)r * floats,
                             b->offset + begin, b->offset + end, ranks->params);
    }
}

static tg_status receive(tg_ranks *ranks, size_t i)
{
    const int64_t begin = tg_clock_ns();
    tg_status status = tg_comm_wait(ranks->comm, ranks->buckets.items[i].ticket);
    count_wait(ranks, "wait for parameters", begin);
    if (status == TG_OK)
        unpack(ranks, i);
    return status;
}

tg_status tg_ranks_need(tg_ranks *ranks, size_t offset, size_t count)
{
    const tg_bucket *buckets = ranks->buckets.items;
    if (!ranks->gathering)
        return TG_OK;
    for (; ranks->coming && buckets[ranks->coming - 1].offset < offset + count; ranks->coming--)
        TG_TRY(receive(ranks, ranks->coming - 1));
    if (offset + count == ranks->buckets.elements) {
        keep_records(ranks, true);
        ranks->gathering = false;
        if (ranks->rounded)
            tg_parcels_clear_padding(&ranks->parcels, ranks->area);
    }
    return TG_OK;
}

tg_status tg_ranks_complete(tg_ranks *ranks, float *params)
{
    assert(!ranks->gathering);
    if (!ranks->rounded)
        return TG_OK;
    TG_TRY(tg_buckets_gather(&ranks->buckets, params));
    TG_TRY(tg_buckets_need(&ranks->buckets, 0, ranks->buckets.elements));
    ranks->rounded = false;
    return TG_OK;
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
