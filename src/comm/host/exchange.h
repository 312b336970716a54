/* exchange.h - one collective as messages; for comm/host only. Used by the progress thread alone. */
#ifndef TG_COMM_HOST_EXCHANGE_H
#define TG_COMM_HOST_EXCHANGE_H

#include "comm/host/host.h"

typedef struct tg_host_message {
    tg_transport_request request;
    void *data;
    size_t bytes; /* 0: the piece is shorter than the largest, and nothing comes or goes */
    int peer;
    int part; /* of its phase */
    bool receive, gather, posted, done;
} tg_host_message;

/* A collective under way. Buffers are kept from one to the next. */
typedef struct tg_host_exchange {
    tg_comm_work work;
    const struct tg_host_peer *peers; /* [size], for what is said of them (peers.h) */
    const void *mine;                 /* TG_COMM_MEET: [bytes], and where all go: [size][bytes] */
    void *all;
    size_t meet_bytes;
    tg_comm_ticket ticket;
    tg_host_message *messages; /* two a turn: one that comes, one that goes */
    size_t message_count, message_capacity, open;
    size_t front, received, sent; /* turns: the first not over, the next to post of each kind */
    size_t ahead;                 /* bytes sent in turns that are not over */
    size_t window;                /* how many these and those of earlier exchanges may be */
    char *inbox, *outbox; /* [size - 1][largest piece] of the wire's type; outbox: bf16 only */
    size_t inbox_bytes, outbox_bytes;
    int *waiting; /* [parts]: receives that a part still misses */
    size_t waiting_capacity;
} tg_host_exchange;

/* What a look at the messages found. */
typedef struct tg_host_look {
    uint64_t sent_bytes, received_bytes;
    bool moved, done;
} tg_host_look;

/* Takes the memory of an all-reduce of `count` elements, the most that one of so many needs. Not while one is under way. */
tg_status tg_host_exchange_reserve(tg_host_exchange *exchange, const tg_transport *transport,
                                   size_t count, tg_dtype wire) TG_MUST_CHECK;
/* Takes memory and lists the messages; nothing is posted yet. */
tg_status tg_host_exchange_begin(tg_host_exchange *exchange,
                                 const tg_transport *transport) TG_MUST_CHECK;
/* Tests messages, adds what is complete, posts those whose turn it is. ahead: bytes that earlier exchanges have sent
 * in turns that are not over. */
tg_status tg_host_exchange_look(tg_host_exchange *exchange, tg_transport *transport, size_t ahead,
                                tg_host_look *out) TG_MUST_CHECK;
size_t tg_host_exchange_bytes(const tg_host_exchange *exchange);
void tg_host_exchange_done(tg_host_exchange *exchange);

#endif
