/* A collective is a list of turns, each a message from one peer and one to another, the same on all ranks: in turn
 * (part, d) every rank sends to the d-th after it and gets from the d-th before it, so that each link carries one
 * message each way. A rank goes on when what it should have by then has come. */
#include "comm/host/boxes.h"
#include "comm/host/peers.h"

#include <stdlib.h>
#include <string.h>

/* Turns whose receives are posted; a peer that is ahead is so by less. */
enum { RECEIVES_AHEAD = 32 };

/* Tag 0 is control's; a collective has one tag a phase, and they come round again long after. */
static int tag_of(const tg_host_exchange *x, const tg_host_message *m)
{
    return 2 + (int)(x->ticket % 16000) * 2 + m->gather;
}

/* Elements of one message. */
static size_t part_elements(const tg_host_exchange *x, bool gather)
{
    return TG_HOST_MESSAGE_BYTES / (gather ? sizeof(float) : tg_dtype_bytes(x->work.wire));
}

static size_t parts_of(const tg_host_exchange *x, size_t elements, bool gather)
{
    return (elements + part_elements(x, gather) - 1) / part_elements(x, gather);
}

static bool has_sums(const tg_host_exchange *x)
{
    return x->work.kind == TG_COMM_REDUCE_SCATTER || x->work.kind == TG_COMM_ALL_REDUCE;
}

static bool has_gather(const tg_host_exchange *x)
{
    return x->work.kind == TG_COMM_ALL_GATHER || x->work.kind == TG_COMM_ALL_REDUCE;
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

/* Parts of the largest piece that are added up; room for one where nothing is. */
static size_t sum_parts(const tg_host_exchange *x, int size)
{
    return 1 + (has_sums(x) ? parts_of(x, tg_host_largest_piece(x, size), false) : 0);
}

static size_t messages_of(const tg_host_exchange *x, int size)
{
    const size_t piece = tg_host_largest_piece(x, size), peers = size > 1 ? (size_t)size - 1 : 0;
    return 2 * peers *
           (1 + (has_sums(x) ? parts_of(x, piece, false) : 0) +
            (has_gather(x) ? parts_of(x, piece, true) : 0));
}

static tg_status reserve(tg_host_exchange *x, const tg_transport *t)
{
    TG_TRY(grow((void **)&x->messages, &x->message_capacity, messages_of(x, t->size),
                sizeof *x->messages));
    TG_TRY(grow((void **)&x->waiting, &x->waiting_capacity, sum_parts(x, t->size),
                sizeof *x->waiting));
    if (!has_sums(x))
        return TG_OK;
    TG_TRY(grow((void **)&x->inbox, &x->inbox_bytes, tg_host_box_bytes(x, t->size), 1));
    if (x->work.wire == TG_BF16)
        TG_TRY(grow((void **)&x->outbox, &x->outbox_bytes, tg_host_box_bytes(x, t->size), 1));
    return TG_OK;
}

tg_status tg_host_exchange_reserve(tg_host_exchange *x, const tg_transport *t, size_t count,
                                   tg_dtype wire)
{
    x->work = (tg_comm_work){.kind = TG_COMM_ALL_REDUCE, .count = count, .wire = wire};
    return reserve(x, t);
}

/* Where a peer's share of this rank's piece goes (receive), or what the peer is sent. */
static char *place_of(const tg_host_exchange *x, const tg_transport *t, bool gather, bool receive,
                      int peer, size_t *out_elements)
{
    size_t begin, end;
    const bool own = receive != gather; /* reducing: own piece comes; gathering: it goes */
    tg_comm_piece(x->work.count, t->size, own ? t->rank : peer, &begin, &end);
    *out_elements = end - begin;
    if (!gather && receive)
        return tg_host_share_of(x, t, x->inbox, peer);
    if (!gather && x->work.wire == TG_BF16)
        return tg_host_share_of(x, t, x->outbox, peer);
    return (char *)(x->work.data + begin);
}

static void list(tg_host_exchange *x, tg_host_message m)
{
    m.done = m.bytes == 0;
    x->open += !m.done;
    x->messages[x->message_count++] = m;
}

/* Part `part` of a run of elements; nothing when the run is shorter. */
static void list_part(tg_host_exchange *x, const tg_transport *t, bool gather, bool receive,
                      size_t part, int peer)
{
    size_t elements;
    char *run = place_of(x, t, gather, receive, peer, &elements);
    const size_t step = part_elements(x, gather), at = part * step;
    const size_t element = TG_HOST_MESSAGE_BYTES / step;
    const size_t n = at >= elements ? 0 : elements - at < step ? elements - at : step;
    list(x, (tg_host_message){.data = n ? run + at * element : NULL,
                              .bytes = n * element,
                              .peer = peer,
                              .part = (int)part,
                              .receive = receive,
                              .gather = gather});
}

static void list_phase(tg_host_exchange *x, const tg_transport *t, bool gather)
{
    const size_t parts = parts_of(x, tg_host_largest_piece(x, t->size), gather);
    for (size_t part = 0; part < parts; part++)
        for (int d = 1; d < t->size; d++) {
            list_part(x, t, gather, true, part, (t->rank + t->size - d) % t->size);
            list_part(x, t, gather, false, part, (t->rank + d) % t->size);
        }
}

static void list_meeting(tg_host_exchange *x, const tg_transport *t)
{
    memcpy((char *)x->all + (size_t)t->rank * x->meet_bytes, x->mine, x->meet_bytes);
    for (int d = 1; d < t->size; d++) {
        int from = (t->rank + t->size - d) % t->size, to = (t->rank + d) % t->size;
        list(x, (tg_host_message){.data = (char *)x->all + (size_t)from * x->meet_bytes,
                                  .bytes = x->meet_bytes,
                                  .peer = from,
                                  .receive = true,
                                  .gather = true});
        list(x, (tg_host_message){.data = (void *)(uintptr_t)x->mine,
                                  .bytes = x->meet_bytes,
                                  .peer = to,
                                  .gather = true});
    }
}

tg_status tg_host_exchange_begin(tg_host_exchange *x, const tg_transport *t)
{
    size_t begin, end;
    x->message_count = x->open = x->front = x->received = x->sent = x->ahead = 0;
    TG_TRY(reserve(x, t));
    tg_comm_piece(x->work.count, t->size, t->rank, &begin, &end);
    for (size_t i = 0; has_sums(x) && i < parts_of(x, end - begin, false); i++)
        x->waiting[i] = t->size - 1;
    if (has_sums(x) && x->work.wire == TG_BF16)
        tg_host_fill_outbox(x, t);
    if (x->work.kind == TG_COMM_MEET)
        list_meeting(x, t);
    if (has_sums(x))
        list_phase(x, t, false);
    if (has_gather(x))
        list_phase(x, t, true);
    return TG_OK;
}

static tg_status post(tg_host_exchange *x, tg_transport *t, tg_host_message *m)
{
    m->posted = true;
    if (m->done)
        return TG_OK;
    int code = m->receive ? t->receive(t, m->data, m->bytes, m->peer, tag_of(x, m), &m->request)
                          : t->send(t, m->data, m->bytes, m->peer, tag_of(x, m), &m->request);
    return code ? tg_host_report_broken(t, x->peers, x, m->peer, m->receive, code) : TG_OK;
}

/* What is gathered comes to where this rank's share of the sum went out from. */
static bool may_receive(const tg_host_exchange *x, const tg_transport *t, const tg_host_message *m)
{
    if (!m->gather || x->work.kind != TG_COMM_ALL_REDUCE || x->work.wire == TG_BF16)
        return true;
    const size_t d = (size_t)((m->peer - t->rank + t->size) % t->size);
    return x->messages[2 * ((size_t)m->part * (size_t)(t->size - 1) + d - 1) + 1].done;
}

/* What is gathered has been added up. */
static bool may_send(const tg_host_exchange *x, const tg_host_message *m)
{
    if (!m->gather || x->work.kind != TG_COMM_ALL_REDUCE || m->done)
        return true;
    return !x->waiting[(size_t)m->part * part_elements(x, true) / part_elements(x, false)];
}

/* Receives are posted well before their messages can come, so that these need no copy. */
static tg_status post_receives(tg_host_exchange *x, tg_transport *t)
{
    for (; 2 * x->received < x->message_count; x->received++) {
        tg_host_message *m = &x->messages[2 * x->received];
        if (x->received - x->front >= RECEIVES_AHEAD || !may_receive(x, t, m))
            return TG_OK;
        TG_TRY(post(x, t, m));
    }
    return TG_OK;
}

static tg_status post_sends(tg_host_exchange *x, tg_transport *t, size_t ahead)
{
    for (; 2 * x->sent < x->message_count; x->sent++) {
        tg_host_message *m = &x->messages[2 * x->sent + 1];
        const bool fits = x->work.kind == TG_COMM_MEET || x->sent == x->front ||
                          ahead + x->ahead + m->bytes <= x->window;
        if (!fits || !may_send(x, m))
            return TG_OK;
        TG_TRY(post(x, t, m));
        x->ahead += m->bytes;
    }
    return TG_OK;
}

/* A message of this rank's piece has come; when its part is complete, it is added up. */
static void arrived(tg_host_exchange *x, const tg_transport *t, const tg_host_message *m)
{
    size_t begin, end;
    if (m->gather || --x->waiting[m->part] > 0)
        return;
    tg_comm_piece(x->work.count, t->size, t->rank, &begin, &end);
    const size_t step = part_elements(x, false), at = (size_t)m->part * step;
    tg_host_add(x, t, at, end - begin - at < step ? end - begin - at : step);
}

static tg_status test(tg_host_exchange *x, tg_transport *t, tg_host_message *m, tg_host_look *out)
{
    int done = 0;
    if (!m->posted || m->done)
        return TG_OK;
    int code = t->test(t, &m->request, &done);
    if (code)
        return tg_host_report_broken(t, x->peers, x, m->peer, m->receive, code);
    if (!done)
        return TG_OK;
    m->done = true;
    x->open--;
    out->moved = true;
    *(m->receive ? &out->received_bytes : &out->sent_bytes) += m->bytes;
    if (m->receive)
        arrived(x, t, m);
    return TG_OK;
}

/* Past the turns that are over. */
static void advance(tg_host_exchange *x)
{
    while (x->front < x->sent && x->front < x->received && x->messages[2 * x->front].done &&
           x->messages[2 * x->front + 1].done) {
        x->ahead -= x->messages[2 * x->front + 1].bytes;
        x->front++;
    }
}

tg_status tg_host_exchange_look(tg_host_exchange *x, tg_transport *t, size_t ahead,
                                tg_host_look *out)
{
    const size_t posted = x->received > x->sent ? x->received : x->sent;
    *out = (tg_host_look){0};
    for (size_t i = 2 * x->front; i < 2 * posted; i++)
        TG_TRY(test(x, t, &x->messages[i], out));
    advance(x);
    TG_TRY(post_receives(x, t));
    TG_TRY(post_sends(x, t, ahead));
    out->done = x->open == 0;
    return TG_OK;
}

size_t tg_host_bytes(int size, size_t count, tg_dtype wire)
{
    const tg_host_exchange x = {.work = {.kind = TG_COMM_ALL_REDUCE, .count = count, .wire = wire}};
    const size_t boxes = tg_host_box_bytes(&x, size) * (wire == TG_BF16 ? 2 : 1);
    return TG_HOST_DEPTH * (boxes + sum_parts(&x, size) * sizeof *x.waiting +
                            messages_of(&x, size) * sizeof *x.messages);
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
