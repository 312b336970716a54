/* exchange.h - one collective as messages; for comm/host only. Used by the progress thread alone. */
#ifndef TG_COMM_HOST_EXCHANGE_H
#define TG_COMM_HOST_EXCHANGE_H

#include "comm/host/host.h"

typedef struct tg_host_message {
    tg_transport_request request;
    size_t bytes;
    int peer;
    int part; /* of the own piece, for what is added up when all of it has come; -1: nothing follows */
    bool receive, done;
} tg_host_message;

/* A collective under way. Buffers are kept from one to the next. */
typedef struct tg_host_exchange {
    tg_comm_work work;
    const struct tg_host_peer *peers; /* [size], for what is said of them (peers.h) */
    const void *mine;                 /* TG_COMM_MEET: [bytes], and where all go: [size][bytes] */
    void *all;
    size_t meet_bytes;
    tg_comm_ticket ticket;
    bool gathering; /* the second phase */
    tg_host_message *messages;
    size_t message_count, message_capacity, open;
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
/* Posts the messages of the first phase. */
tg_status tg_host_exchange_begin(tg_host_exchange *exchange, tg_transport *transport) TG_MUST_CHECK;
/* Tests messages, adds what is complete, goes on to the second phase. */
tg_status tg_host_exchange_look(tg_host_exchange *exchange, tg_transport *transport,
                                tg_host_look *out) TG_MUST_CHECK;
size_t tg_host_exchange_bytes(const tg_host_exchange *exchange);
void tg_host_exchange_done(tg_host_exchange *exchange);

#endif
