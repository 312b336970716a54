#include "comm/host/peers.h"

#include <stdlib.h>
#include <string.h>

/* Tag 0 is control's; a collective has one tag a phase, and they come round again long after. */
static int tag_of(const tg_host_exchange *x)
{
    return 2 + (int)(x->ticket % 16000) * 2 + x->gathering;
}

static size_t wire_bytes(const tg_host_exchange *x)
{
    return x->work.wire == TG_BF16 && !x->gathering ? 2 : 4;
}

static size_t largest_piece(const tg_host_exchange *x, int size)
{
    size_t begin, end;
    tg_comm_piece(x->work.count, size, 0, &begin, &end);
    return end - begin;
}

/* Elements of one message. */
static size_t part_elements(const tg_host_exchange *x)
{
    return TG_HOST_MESSAGE_BYTES / wire_bytes(x);
}

static size_t parts_of(const tg_host_exchange *x, size_t elements)
{
    return (elements + part_elements(x) - 1) / part_elements(x);
}

static tg_status grow(void **buffer, size_t *capacity, size_t wanted, size_t element)
{
    if (wanted <= *capacity)
        return TG_OK;
    free(*buffer);
    *capacity = 0;
    size_t bytes = (wanted * element + 63) & ~(size_t)63;
    *buffer = aligned_alloc(64, bytes);
    if (!*buffer)
        return tg_fail(TG_ERROR_MACHINE, "out of memory: %zu bytes to exchange with other ranks",
                       bytes);
    *capacity = wanted;
    return TG_OK;
}

/* Place in inbox or outbox of a peer's share. */
static char *box_of(const tg_host_exchange *x, const tg_transport *t, char *box, int peer)
{
    size_t slot = (size_t)(peer < t->rank ? peer : peer - 1);
    return box + slot * largest_piece(x, t->size) * wire_bytes(x);
}

static tg_status post(tg_host_exchange *x, tg_transport *t, bool receive, void *data, size_t bytes,
                      int peer, int part)
{
    tg_host_message *m = &x->messages[x->message_count];
    *m = (tg_host_message){.bytes = bytes, .peer = peer, .part = part, .receive = receive};
    int code = receive ? t->receive(t, data, bytes, peer, tag_of(x), &m->request)
                       : t->send(t, data, bytes, peer, tag_of(x), &m->request);
    x->message_count++;
    x->open++;
    return code ? tg_host_report_broken(t, x->peers, x, peer, receive, code) : TG_OK;
}

/* Part `part` of a contiguous run of elements; nothing when the run is shorter. */
static tg_status post_part(tg_host_exchange *x, tg_transport *t, bool receive, const void *data,
                           size_t elements, size_t part, int peer)
{
    const size_t step = part_elements(x), element = wire_bytes(x), at = part * step;
    if (at >= elements)
        return TG_OK;
    const size_t n = elements - at < step ? elements - at : step;
    const bool sum = receive && !x->gathering;
    return post(x, t, receive, (char *)(uintptr_t)data + at * element, n * element, peer,
                sum ? (int)part : -1);
}

static tg_status reserve(tg_host_exchange *x, const tg_transport *t)
{
    const size_t piece = largest_piece(x, t->size), peers = (size_t)t->size - 1;
    const size_t parts = parts_of(x, piece), meet = x->work.kind == TG_COMM_MEET;
    TG_TRY(grow((void **)&x->messages, &x->message_capacity, 2 * peers * (parts + meet + 1),
                sizeof *x->messages));
    if (x->gathering || x->work.kind == TG_COMM_MEET || x->work.kind == TG_COMM_ALL_GATHER)
        return TG_OK;
    TG_TRY(grow((void **)&x->waiting, &x->waiting_capacity, parts + 1, sizeof *x->waiting));
    TG_TRY(grow((void **)&x->inbox, &x->inbox_bytes, peers * piece * wire_bytes(x), 1));
    if (x->work.wire == TG_BF16)
        TG_TRY(grow((void **)&x->outbox, &x->outbox_bytes, peers * piece * 2, 1));
    return TG_OK;
}

static void make_outbox(tg_host_exchange *x, const tg_transport *t)
{
    size_t begin, end;
    for (int r = 0; r < t->size; r++) {
        if (r == t->rank)
            continue;
        uint16_t *out = (uint16_t *)(void *)box_of(x, t, x->outbox, r);
        tg_comm_piece(x->work.count, t->size, r, &begin, &end);
        for (size_t i = begin; i < end; i++)
            out[i - begin] = tg_bf16_from_f32(x->work.data[i]);
    }
}

/* Where a peer's share of this rank's piece goes (receive), or what the peer is sent. */
static const void *place_of(const tg_host_exchange *x, const tg_transport *t, bool receive,
                            int peer, size_t *out_elements)
{
    size_t begin, end;
    const bool own = receive != x->gathering; /* reducing: own piece comes; gathering: it goes */
    tg_comm_piece(x->work.count, t->size, own ? t->rank : peer, &begin, &end);
    *out_elements = end - begin;
    if (x->gathering)
        return x->work.data + begin;
    if (receive)
        return box_of(x, t, x->inbox, peer);
    return x->work.wire == TG_BF16 ? (const void *)box_of(x, t, x->outbox, peer)
                                   : x->work.data + begin;
}

/* Part by part, each from and to every peer, so that both ways of every link are used at once. */
static tg_status post_pieces(tg_host_exchange *x, tg_transport *t)
{
    const size_t parts = parts_of(x, largest_piece(x, t->size));
    size_t elements;
    for (size_t part = 0; part < parts; part++)
        for (int d = 1; d < t->size; d++) {
            int from = (t->rank + t->size - d) % t->size, to = (t->rank + d) % t->size;
            const void *data = place_of(x, t, true, from, &elements);
            TG_TRY(post_part(x, t, true, data, elements, part, from));
            data = place_of(x, t, false, to, &elements);
            TG_TRY(post_part(x, t, false, data, elements, part, to));
        }
    return TG_OK;
}

static tg_status post_reduce(tg_host_exchange *x, tg_transport *t)
{
    size_t begin, end;
    tg_comm_piece(x->work.count, t->size, t->rank, &begin, &end);
    for (size_t i = 0; i < parts_of(x, end - begin); i++)
        x->waiting[i] = t->size - 1;
    if (x->work.wire == TG_BF16)
        make_outbox(x, t);
    return post_pieces(x, t);
}

static tg_status post_meet(tg_host_exchange *x, tg_transport *t)
{
    memcpy((char *)x->all + (size_t)t->rank * x->meet_bytes, x->mine, x->meet_bytes);
    for (int d = 1; d < t->size; d++) {
        int from = (t->rank + t->size - d) % t->size, to = (t->rank + d) % t->size;
        TG_TRY(post(x, t, true, (char *)x->all + (size_t)from * x->meet_bytes, x->meet_bytes, from,
                    -1));
        TG_TRY(post(x, t, false, (void *)(uintptr_t)x->mine, x->meet_bytes, to, -1));
    }
    return TG_OK;
}

static tg_status post_phase(tg_host_exchange *x, tg_transport *t)
{
    x->message_count = x->open = 0;
    TG_TRY(reserve(x, t));
    if (x->work.kind == TG_COMM_MEET)
        return post_meet(x, t);
    return x->gathering ? post_pieces(x, t) : post_reduce(x, t);
}

tg_status tg_host_exchange_reserve(tg_host_exchange *x, const tg_transport *t, size_t count,
                                   tg_dtype wire)
{
    x->work = (tg_comm_work){.kind = TG_COMM_ALL_REDUCE, .count = count, .wire = wire};
    x->gathering = true; /* of float32, which takes the most messages */
    TG_TRY(reserve(x, t));
    x->gathering = false;
    return reserve(x, t);
}

tg_status tg_host_exchange_begin(tg_host_exchange *x, tg_transport *t)
{
    x->gathering = x->work.kind == TG_COMM_ALL_GATHER;
    return post_phase(x, t);
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
                r == t->rank ? own + b : (const float *)(void *)box_of(x, t, x->inbox, r) + at + b;
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
            uint16_t value = r == t->rank
                                 ? tg_bf16_from_f32(own[i])
                                 : ((const uint16_t *)(void *)box_of(x, t, x->inbox, r))[at + i];
            sum = r == 0 ? tg_f32_from_bf16(value) : sum + tg_f32_from_bf16(value);
        }
        own[i] = sum;
    }
}

/* A message of this rank's piece has come; when its part is complete, it is added up. */
static void arrived(tg_host_exchange *x, const tg_transport *t, int part)
{
    size_t begin, end;
    if (part < 0 || --x->waiting[part] > 0)
        return;
    tg_comm_piece(x->work.count, t->size, t->rank, &begin, &end);
    size_t at = (size_t)part * part_elements(x);
    size_t n = end - begin - at < part_elements(x) ? end - begin - at : part_elements(x);
    if (x->work.wire == TG_BF16)
        add_bf16(x, t, at, n, x->work.data + begin + at);
    else
        add_f32(x, t, at, n, x->work.data + begin + at);
}

tg_status tg_host_exchange_look(tg_host_exchange *x, tg_transport *t, tg_host_look *out)
{
    *out = (tg_host_look){0};
    for (size_t i = 0; i < x->message_count; i++) {
        tg_host_message *m = &x->messages[i];
        int done = 0;
        if (m->done)
            continue;
        int code = t->test(t, &m->request, &done);
        if (code)
            return tg_host_report_broken(t, x->peers, x, m->peer, m->receive, code);
        if (!done)
            continue;
        m->done = true;
        x->open--;
        out->moved = true;
        *(m->receive ? &out->received_bytes : &out->sent_bytes) += m->bytes;
        if (m->receive)
            arrived(x, t, m->part);
    }
    if (x->open)
        return TG_OK;
    if (x->work.kind == TG_COMM_ALL_REDUCE && !x->gathering) {
        x->gathering = true;
        return post_phase(x, t);
    }
    out->done = true;
    return TG_OK;
}

size_t tg_host_bytes(int size, size_t count, tg_dtype wire)
{
    tg_host_exchange x = {.work = {.count = count, .wire = wire}};
    const size_t piece = largest_piece(&x, size), peers = size > 1 ? (size_t)size - 1 : 0;
    const size_t boxes = peers * piece * wire_bytes(&x) * (wire == TG_BF16 ? 2 : 1);
    const size_t waiting = (parts_of(&x, piece) + 1) * sizeof *x.waiting;
    x.gathering = true; /* of float32, which takes the most messages */
    const size_t messages = 2 * peers * (parts_of(&x, piece) + 2) * sizeof *x.messages;
    return TG_HOST_DEPTH * (boxes + waiting + messages);
}

size_t tg_host_exchange_bytes(const tg_host_exchange *x)
{
    return x->inbox_bytes + x->outbox_bytes + x->message_capacity * sizeof *x->messages +
           x->waiting_capacity * sizeof *x->waiting;
}

void tg_host_exchange_done(tg_host_exchange *x)
{
    free(x->messages);
    free(x->inbox);
    free(x->outbox);
    free(x->waiting);
    *x = (tg_host_exchange){0};
}
