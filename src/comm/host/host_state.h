/* host_state.h - what the caller's side and the progress thread share; for comm/host only. */
#ifndef TG_COMM_HOST_HOST_STATE_H
#define TG_COMM_HOST_HOST_STATE_H

#include "comm/host/peers.h"

#include <pthread.h>

enum {
    TG_HOST_QUEUE = 1024, /* collectives that wait to begin */
    TG_HOST_CONTROL_BYTES = 1024,
};

/* What a rank says outside of collectives: why it leaves; "", an orderly end; TG_HOST_ALIVE, that it
 * is there, which its thread says in time even while the rank computes or writes for long; or, behind
 * TG_HOST_SEEN, which failure of another one it has seen: who waits for this one alone would blame it. */
#define TG_HOST_ALIVE "\001"
#define TG_HOST_SEEN "\002"
typedef struct tg_host_control {
    char reason[TG_HOST_CONTROL_BYTES];
} tg_host_control;

/* To and from one peer. */
typedef struct tg_host_line {
    tg_transport_request in, out;
    tg_host_control heard;
    int64_t heard_ns; /* last sign of life */
    bool listening, sending, ended;
    bool lost; /* when everything ended: dead or silent; under the lock */
} tg_host_line;

/* What the caller wants, until the thread takes it up. */
typedef struct tg_host_order {
    tg_comm_work work;
    const void *mine;
    void *all;
    size_t meet_bytes;
    tg_comm_ticket ticket;
    int64_t queued_ns, begun_ns,
        done_ns; /* the last two are the thread's until the ticket is done */
} tg_host_order;

typedef struct tg_host {
    tg_comm base;
    tg_transport transport;
    tg_host_peer *peers;
    size_t
        window; /* bytes that an exchange may be ahead; SIZE_MAX / 2 without a network between ranks */
    tg_host_line *lines; /* [size] */
    tg_host_control said, alive;
    int64_t silence_ns; /* a rank that gives no sign of life for so long is lost */
    int64_t alive_ns;   /* when this one last gave one; the thread's own */
    pthread_t thread;
    bool started, joined; /* the thread; the caller's to know */
    pthread_mutex_t lock;
    pthread_cond_t changed;               /* queue, tickets, failure, waiting */
    tg_host_exchange ring[TG_HOST_DEPTH]; /* ticket % depth: what is under way; the thread's own */
    /* under the lock */
    tg_host_order orders[TG_HOST_QUEUE]; /* ticket % queue */
    tg_comm_ticket first, next;          /* oldest not done, next to be given */
    bool waiting, closing, leaving, failed;
    int64_t stall_ns;
    char error[TG_ERROR_BYTES];
    tg_status status;
    tg_comm_traffic traffic;
    size_t bytes;
} tg_host;

static inline tg_host_exchange *tg_host_exchange_of(tg_host *h, tg_comm_ticket ticket)
{
    return &h->ring[ticket % TG_HOST_DEPTH];
}

/* Keeps the message last recorded on this thread as what ended everything, unless something else has,
 * and wakes whoever waits. Lock held. */
void tg_host_record_failure(tg_host *h, tg_status status);

/* Memory that the exchanges keep; lock held. */
size_t tg_host_count_bytes(const tg_host *h);

/* The progress thread; user: the tg_host. */
void *tg_host_run(void *user);

/* control.c: a peer's word is awaited from here on. */
tg_status tg_host_listen(tg_host *h, int peer) TG_MUST_CHECK;
/* Says that this rank is there, where it is time to. */
tg_status tg_host_tell_alive(tg_host *h) TG_MUST_CHECK;
/* Whether a rank has missed two signs of life or more. */
bool tg_host_is_quiet(const tg_host *h, int peer, int64_t now);
/* A rank that has given no sign of life for silence_ns, whether this one waits for it or for others that do;
 * -1: none. */
int tg_host_find_silent(const tg_host *h, int64_t now);
/* TG_ERROR_PEER when a peer left; busy (work stands still): also when one has ended its own. */
tg_status tg_host_hear(tg_host *h, bool busy) TG_MUST_CHECK;
/* Sends `said` to all that are not lost and gives it a moment to go out; hear: waits for the others' ends, too. */
void tg_host_farewell(tg_host *h, bool hear);
void tg_host_sleep(int64_t ns);

/* peers.c: records TG_ERROR_PEER: nothing has moved for `still_s` in `exchange`; names those of whom nothing was
 * heard, then those whom it waits for. */
tg_status tg_host_blame(const tg_host *h, const tg_host_exchange *exchange, int64_t now,
                        double still_s);

#endif
