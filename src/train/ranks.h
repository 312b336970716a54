/* ranks.h - an optimizer step shared by many ranks.
 *
 *   backward of the window's last micro-batch -> buckets on their way, one by one
 *   all buckets there -> sums over ranks (photos, losses, gradient norm, wish to stop) -> one verdict
 *   update: every rank all of it, or (sharded, ZeRO stage 1) each rank its pieces, from the head on, and each
 *   bucket's piece goes to the others at once, while the next forward asks for them layer by layer
 *
 * Equal     ranks that share a batch compute what one rank computes on all of it, to rounding: sums
 *           over ranks are made in their order, so the same number of ranks gives the same bits, and
 *           sharded or not gives the same bits too.
 * Shards    a rank's pieces of the flat buffer (comm/buckets.h), packed: moments and weight average
 *           have tg_buckets.own_elements elements when sharded.
 * Narrow    sharded, what the step reads as bf16 alone may travel as bf16 (tg_ranks_narrow; train/parcels.h). Other
 *           ranks' pieces of such tensors are then rounded here, which the step does not see. Whoever wants the
 *           parameters themselves, to save or to export them, calls tg_ranks_complete.
 * Phases    what each rank spent its last step on travels with the sums of the next one, so that all know
 *           who is slow without a message of its own.
 * Traced    (trace/trace.h) waits, of the phase "wait": "wait for gradients", "wait for parameters", "meeting".
 * Errors    TG_ERROR_PEER and TG_ERROR_MACHINE of comm/.
 */
#ifndef TG_TRAIN_RANKS_H
#define TG_TRAIN_RANKS_H

#include "comm/buckets.h"
#include "optim/optimizer.h"
#include "run/rank_steps.h"
#include "train/parcels.h"

typedef struct tg_ranks_options {
    size_t first_bucket_bytes, bucket_bytes;
    tg_dtype wire; /* of gradients on their way: TG_F32 or TG_BF16 */
    bool shard;    /* ZeRO stage 1 */
} tg_ranks_options;

typedef struct tg_ranks {
    tg_comm *comm; /* borrowed */
    tg_buckets buckets;
    tg_ranks_options options;
    bool gathering; /* parameters of the last update may still be on their way */
    size_t coming;  /* then: buckets below `coming`, which is the head's side, are */
    tg_parcels parcels;
    size_t *
        parcel_floats; /* [buckets], of each rank's parcel; 0: the bucket travels as it is; NULL: all do */
    float *params,
        *area;        /* of the last update; area: where parcels are, the bucket's place in it */
    bool rounded;     /* others' pieces of params are not what their owners have */
    int64_t wait_ns;  /* waited for other ranks since the caller last took it */
    int64_t own_step; /* the step that `own` is of, set by the caller; 0: nothing to tell */
    tg_rank_step own;
    int64_t told_step;  /* the step that `each` is of, after a meeting; 0: of none */
    tg_rank_step *each; /* [size] */
    tg_comm_record
        *records; /* of collectives waited for since tg_ranks_forget, in their order; heap */
    size_t record_count;
} tg_ranks;

/* What ranks add up at the end of a window. */
typedef struct tg_ranks_sums {
    double images, task, kd; /* photos, and sums of losses over them */
    double squares;          /* of the gradient, each element once */
    int stop;                /* in: a wish to stop here; out: the first rank's that has one */
    int64_t keep; /* in: steps up to this one are to be kept as timelines; out: the furthest wish */
} tg_ranks_sums;

/* Takes the memory of its collectives as well (tg_comm_reserve). */
tg_status tg_ranks_open(tg_ranks *ranks, tg_comm *comm, const tg_ranks_options *options,
                        size_t elements) TG_MUST_CHECK;
/* From now on the tensors that `parcels` calls narrow, of the whole table, travel as bf16. Takes parcels over, also
 * when it fails. Sharded; before the first update. */
tg_status tg_ranks_narrow(tg_ranks *ranks, const tg_parcels *parcels) TG_MUST_CHECK;
/* Waits until nothing comes or goes: to be called before the memory of parameters, gradients and shares
 * is given back, after errors too. */
void tg_ranks_close(tg_ranks *ranks);
/* At most what exchanging a flat buffer of `elements` between `size` ranks keeps (tg_comm_bytes). */
size_t tg_ranks_bytes(const tg_ranks_options *options, size_t elements, int size);

/* Begins ranks->records anew: the gradients of a step, and the parameters whose forward waited for them. There
 * is room for two steps; what comes beyond is not kept. */
void tg_ranks_forget(tg_ranks *ranks);
/* How many there are at most. */
size_t tg_ranks_record_room(const tg_ranks *ranks);

/* The backward that begins now is the window's last: its gradients go out as they become final. */
void tg_ranks_reduce(tg_ranks *ranks, float *grads);
/* A tg_vit_range_ready; user: the tg_ranks. */
void tg_ranks_ready(void *user, size_t offset, size_t count);
/* Waits for all gradients, then makes *sums everyone's. */
tg_status tg_ranks_sum(tg_ranks *ranks, const tg_optimizer *optimizer, const float *grads,
                       tg_ranks_sums *sums) TG_MUST_CHECK;
/* Makes `own` everyone's when the last meeting did not yet; every rank calls it or none. */
tg_status tg_ranks_tell(tg_ranks *ranks) TG_MUST_CHECK;
/* The update of one step from the reduced gradients; every rank calls it or none, and all parameters of the one
 * before have been needed. Narrow: grads hold parcels from now on until all parameters have come. */
tg_status tg_ranks_update(tg_ranks *ranks, tg_optimizer *optimizer, float *grads, double grad_scale,
                          double lr) TG_MUST_CHECK;
/* Waits until params [offset, offset + count) of the last update are here. */
tg_status tg_ranks_need(tg_ranks *ranks, size_t offset, size_t count) TG_MUST_CHECK;
/* Makes all of params what their owners have, to the bit. Every rank calls it, with no parameters on their way
 * (tg_step_settle); costs nothing where they are so already. Prepared copies stay right. */
tg_status tg_ranks_complete(tg_ranks *ranks, float *params) TG_MUST_CHECK;

/* Copies this rank's pieces of a flat buffer to packed storage. */
void tg_ranks_pack(const tg_ranks *ranks, tg_stream *stream, const float *whole, float *out_packed);
/* The pieces of all ranks, each where it belongs: out_whole [elements], aligned as tg_comm_work's.
 * Every rank calls it, with no parameters on their way (tg_step_settle). */
tg_status tg_ranks_gather(tg_ranks *ranks, tg_stream *stream, const float *packed,
                          float *out_whole) TG_MUST_CHECK;

#endif
