#include "train/parcels.h"

#include "comm/comm.h"

#include <assert.h>
#include <stdlib.h>

tg_status tg_parcels_init(tg_parcels *parcels, const tg_kern *kern, tg_stream *stream,
                          const tg_param_table *table)
{
    *parcels = (tg_parcels){.kern = kern, .stream = stream, .table = table};
    parcels->narrow = calloc(table->count, sizeof *parcels->narrow);
    if (!parcels->narrow)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu tensors", table->count);
    return TG_OK;
}

void tg_parcels_done(tg_parcels *parcels)
{
    if (!parcels)
        return;
    free(parcels->narrow);
    *parcels = (tg_parcels){0};
}

/* Where the tensor behind tensor `i` begins. */
static size_t next_offset(const tg_param_table *table, size_t i)
{
    return i + 1 < table->count ? table->items[i + 1].offset : table->elements;
}

/* What a range has of one tensor and its padding, and the floats that it takes in a parcel. */
typedef struct part {
    size_t offset, count, floats;
    bool narrow;
} part;

static part part_of(const tg_parcels *parcels, size_t i, size_t begin, size_t end)
{
    const size_t first = parcels->table->items[i].offset, last = next_offset(parcels->table, i);
    const size_t from = first > begin ? first : begin, to = last < end ? last : end;
    part p = {.offset = from, .count = from < to ? to - from : 0, .narrow = parcels->narrow[i]};
    p.floats = p.narrow ? p.count / 2 : p.count;
    return p;
}

size_t tg_parcel_length(const tg_parcels *parcels, size_t begin, size_t end)
{
    size_t floats = 0;
    assert(begin % TG_COMM_GRAIN == 0 && end % TG_COMM_GRAIN == 0);
    for (size_t i = 0; i < parcels->table->count; i++)
        floats += part_of(parcels, i, begin, end).floats;
    return (floats + TG_COMM_GRAIN - 1) / TG_COMM_GRAIN * TG_COMM_GRAIN;
}

void tg_parcel_pack(const tg_parcels *parcels, const float *params, size_t begin, size_t end,
                    float *out)
{
    for (size_t i = 0; i < parcels->table->count; i++) {
        const part p = part_of(parcels, i, begin, end);
        if (p.count)
            parcels->kern->tokens.from_f32(parcels->stream, p.count, params + p.offset,
                                           p.narrow ? TG_BF16 : TG_F32, out);
        out += p.floats;
    }
}

void tg_parcel_unpack(const tg_parcels *parcels, const float *parcel, size_t begin, size_t end,
                      float *out_params)
{
    for (size_t i = 0; i < parcels->table->count; i++) {
        const part p = part_of(parcels, i, begin, end);
        if (p.count)
            parcels->kern->tokens.to_f32(parcels->stream, p.count, parcel,
                                         p.narrow ? TG_BF16 : TG_F32, out_params + p.offset);
        parcel += p.floats;
    }
}

void tg_parcels_clear_padding(const tg_parcels *parcels, float *whole)
{
    for (size_t i = 0; i < parcels->table->count; i++) {
        const tg_param *p = &parcels->table->items[i];
        const size_t end = p->offset + p->count;
        tg_stream_zero(parcels->stream, whole + end,
                       (next_offset(parcels->table, i) - end) * sizeof *whole);
    }
}
