/* parcels.h - what other ranks have to know of a piece of the updated parameters.
 *
 * Narrow    tensors that the step reads through bf16 copies alone (kern/linear.h) travel as bf16, all
 *           others as they are. The owner keeps its fp32 values and goes on with them; what the others
 *           get makes the same prepared copies as the owner's own, so that all compute with the same bits.
 * Parcel    of params [begin, end): tensor after tensor, each part of one with the padding behind it;
 *           its length depends on the range alone. Padded to TG_COMM_GRAIN.
 * Units     begin and end are multiples of TG_COMM_GRAIN; lengths are in floats, as tg_comm_work's.
 * Memory    a byte a tensor (heap). Threads: those of the stream.
 */
#ifndef TG_TRAIN_PARCELS_H
#define TG_TRAIN_PARCELS_H

#include "kern/kern.h"
#include "tensor/param.h"

typedef struct tg_parcels {
    const tg_kern *kern; /* borrowed, as stream and table */
    tg_stream *stream;
    const tg_param_table *table;
    bool *narrow; /* [table->count], the caller's to set */
} tg_parcels;

/* No tensor is narrow yet. */
tg_status tg_parcels_init(tg_parcels *parcels, const tg_kern *kern, tg_stream *stream,
                          const tg_param_table *table) TG_MUST_CHECK;
void tg_parcels_done(tg_parcels *parcels);

size_t tg_parcel_length(const tg_parcels *parcels, size_t begin, size_t end);
/* out [tg_parcel_length]; the last few floats, which pad it, are not written. */
void tg_parcel_pack(const tg_parcels *parcels, const float *params, size_t begin, size_t end,
                    float *out);
void tg_parcel_unpack(const tg_parcels *parcels, const float *parcel, size_t begin, size_t end,
                      float *out_params);

/* Makes the padding between tensors 0 (tensor/param.h) in a flat buffer that was used otherwise. */
void tg_parcels_clear_padding(const tg_parcels *parcels, float *whole);

#endif
