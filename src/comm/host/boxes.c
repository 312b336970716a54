#include "comm/host/boxes.h"

#include <string.h>

size_t tg_host_largest_piece(const tg_host_exchange *x, int size)
{
    size_t begin, end;
    tg_comm_piece(x->work.count, size, 0, &begin, &end);
    return end - begin;
}

size_t tg_host_box_bytes(const tg_host_exchange *x, int size)
{
    return size > 1
               ? (size_t)(size - 1) * tg_host_largest_piece(x, size) * tg_dtype_bytes(x->work.wire)
               : 0;
}

char *tg_host_share_of(const tg_host_exchange *x, const tg_transport *t, char *box, int peer)
{
    size_t slot = (size_t)(peer < t->rank ? peer : peer - 1);
    return box + slot * tg_host_largest_piece(x, t->size) * tg_dtype_bytes(x->work.wire);
}

void tg_host_fill_outbox(tg_host_exchange *x, const tg_transport *t)
{
    size_t begin, end;
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank)
            continue;
        uint16_t *out = (uint16_t *)(void *)tg_host_share_of(x, t, x->outbox, r);
        tg_comm_piece(x->work.count, t->size, r, &begin, &end);
        for (size_t i = begin; i < end; i++)
            out[i - begin] = tg_bf16_from_f32(x->work.data[i]);
    }
}

/* own[i] = sum over ranks in their order; `own` holds this rank's share until then. */
static void add_f32(const tg_host_exchange *x, const tg_transport *t, size_t at, size_t n,
                    float *own)
{
    enum { BLOCK = 1024 };
    float sum[BLOCK];
    for (size_t b = 0; b < n; b += BLOCK) {
        size_t m = n - b < BLOCK ? n - b : BLOCK;
        for (int r = 0; r < t->size; r++) {
            const float *from =
                r == t->rank ? own + b
                             : (const float *)(void *)tg_host_share_of(x, t, x->inbox, r) + at + b;
            for (size_t i = 0; i < m; i++)
                sum[i] = r == 0 ? from[i] : sum[i] + from[i];
        }
        memcpy(own + b, sum, m * sizeof *sum);
    }
}

static void add_bf16(const tg_host_exchange *x, const tg_transport *t, size_t at, size_t n,
                     float *own)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int r = 0; r < t->size; r++) {
            uint16_t value =
                r == t->rank
                    ? tg_bf16_from_f32(own[i])
                    : ((const uint16_t *)(void *)tg_host_share_of(x, t, x->inbox, r))[at + i];
            sum = r == 0 ? tg_f32_from_bf16(value) : sum + tg_f32_from_bf16(value);
        }
        own[i] = sum;
    }
}

void tg_host_add(tg_host_exchange *x, const tg_transport *t, size_t at, size_t n)
{
    size_t begin, end;
    tg_comm_piece(x->work.count, t->size, t->rank, &begin, &end);
    if (x->work.wire == TG_BF16)
        add_bf16(x, t, at, n, x->work.data + begin + at);
    else
        add_f32(x, t, at, n, x->work.data + begin + at);
}
