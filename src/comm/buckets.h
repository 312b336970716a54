/* buckets.h - the flat gradient in contiguous ranges, reduced between ranks while backward goes on.
 *
 * Source    Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", 2020
 *           (buckets in the order of backward, a small first one); Rajbhandari et al., "ZeRO", 2020
 *           (stage 1: reduce-scatter, update of this rank's pieces, all-gather of the parameters).
 * Order     backward fills the gradient from its tail; bucket 0 is the tail. Cuts are at multiples of
 *           TG_COMM_GRAIN, the same on every rank, and depend on the sizes alone.
 * Pieces    of each bucket every rank owns one (tg_comm_piece); with sharding a rank's moments, master
 *           copies and average exist for its pieces only, packed in the order of buckets.
 * States    init -> { reduce -> ready... -> finish } (-> gather or send... -> need... ) ... -> done
 * Errors    those of tg_comm; ready keeps the first one for finish.
 * Memory    a few bytes a bucket (heap). Threads: the caller's one.
 */
#ifndef TG_COMM_BUCKETS_H
#define TG_COMM_BUCKETS_H

#include "comm/comm.h"

typedef struct tg_bucket {
    size_t offset, count;         /* in the flat buffer */
    size_t own_offset, own_count; /* this rank's piece, in the flat buffer */
    size_t shard_offset;          /* of that piece in packed storage */
    tg_comm_ticket ticket;
} tg_bucket;

typedef struct tg_buckets {
    tg_comm *comm;
    tg_bucket *items;
    size_t count, elements, own_elements;
    /* the reduction under way */
    tg_comm_work work;
    float *data;
    size_t frontier,
        begun; /* all from `frontier` on is final; buckets below `begun` are on their way */
    tg_status status;
} tg_buckets;

/* first_bytes: of bucket 0, so that reducing begins early; bucket_bytes: of the others; both of fp32. */
tg_status tg_buckets_init(tg_buckets *buckets, tg_comm *comm, size_t elements, size_t first_bytes,
                          size_t bucket_bytes) TG_MUST_CHECK;
void tg_buckets_done(tg_buckets *buckets);

/* The gradients of the backward that begins now are to be reduced: to all ranks, or (scatter) each
 * piece to its owner. grads [elements]. */
void tg_buckets_reduce(tg_buckets *buckets, float *grads, bool scatter, tg_dtype wire);
/* grads[offset, offset + count) is final; ranges come from the tail without gaps. */
void tg_buckets_ready(tg_buckets *buckets, size_t offset, size_t count);
/* Waits until every bucket is reduced. All must be ready. */
tg_status tg_buckets_finish(tg_buckets *buckets) TG_MUST_CHECK;

/* Starts sending this rank's pieces of params [elements] to all, from the head on. */
tg_status tg_buckets_gather(tg_buckets *buckets, float *params) TG_MUST_CHECK;
/* The same for bucket `i` alone, from the head on: its range of the parameters, or whatever stands for it: data
 * [count] with this rank's piece (tg_comm_piece) at its place. It has come when the bucket's ticket is done. */
tg_status tg_buckets_send(tg_buckets *buckets, size_t i, float *data, size_t count) TG_MUST_CHECK;
/* Waits until params [offset, offset + count) has come from all owners. */
tg_status tg_buckets_need(tg_buckets *buckets, size_t offset, size_t count) TG_MUST_CHECK;

#endif
