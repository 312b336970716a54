/* comm.h - the seam between ranks: what data-parallel training asks of its peers.
 *
 * A communicator joins `size` processes. Every rank makes the same calls in the same order; collectives
 * on large buffers run beside the caller's work and are waited for, small ones return when all have
 * met. Back ends: self (one rank), host (messages of a transport such as MPI; comm/host). A device's
 * library (NCCL) takes the same place with its own stream.
 *
 * Pieces     a range of `count` elements is dealt out in pieces, one a rank, cut at multiples of
 *            TG_COMM_GRAIN: tg_comm_piece. A rank may own nothing.
 * Sums       are made in the order of ranks, 0 + 1 + 2 ..., in fp32: the same bits on every rank, in
 *            every run with as many ranks, and whether gathered afterwards or not. With
 *            TG_BF16 on the wire each peer's contribution is rounded to bfloat16 once; what the
 *            owner adds of its own is rounded like the others', so that sums do not depend on who
 *            owns a piece.
 * Errors     TG_ERROR_PEER when another rank died, left, answers nothing for the stall time, or calls
 *            something else: names rank, host, collective and bytes. From then on every call returns
 *            it. TG_ERROR_MACHINE for the transport or memory.
 * Threads    one thread at a time. Memory: buffers are the caller's and must not be touched between
 *            begin and wait.
 */
#ifndef TG_COMM_COMM_H
#define TG_COMM_COMM_H

#include "base/status.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_COMM_GRAIN = 16, TG_COMM_HOST_BYTES = 64, TG_COMM_SMALL_BYTES = 8192 };

typedef struct tg_comm tg_comm;

/* A collective under way; 0 is none (tg_comm_wait returns at once). */
typedef uint64_t tg_comm_ticket;

typedef enum tg_comm_kind {
    TG_COMM_REDUCE_SCATTER, /* data[piece of this rank] becomes the sum; the other pieces are undefined */
    TG_COMM_ALL_GATHER, /* data[piece of rank r] of rank r goes to all */
    TG_COMM_ALL_REDUCE, /* both: every piece becomes the sum on every rank */
    TG_COMM_MEET        /* small: `bytes` of every rank to all */
} tg_comm_kind;

typedef struct tg_comm_work {
    tg_comm_kind kind;
    const char *what; /* for messages: "gradients 3"; static storage */
    float *data;      /* [count], 64-byte aligned */
    size_t count;
    tg_dtype wire; /* of sums: TG_F32 or TG_BF16; what is gathered arrives as the bits it was */
} tg_comm_work;

typedef struct tg_comm_traffic {
    uint64_t calls, sent_bytes, received_bytes;
    int64_t busy_ns; /* while at least one large collective was under way */
    int64_t cpu_ns;  /* that the thread which moves messages took of a core, in the system as well;
                        0 before the first and after the last message */
} tg_comm_traffic;

/* A collective that is done, with moments of tg_clock_ns. */
typedef struct tg_comm_record {
    tg_comm_kind kind;
    const char *what;
    size_t bytes;      /* of the range, as fp32 */
    int64_t queued_ns; /* begin was called: the data were final */
    int64_t begun_ns;  /* its first messages were posted */
    int64_t done_ns;   /* all had come, and sums were made */
} tg_comm_record;

/* What a back end offers; called through the functions below. */
typedef struct tg_comm_ops {
    tg_status (*begin)(tg_comm *comm, const tg_comm_work *work, tg_comm_ticket *out);
    tg_status (*wait)(tg_comm *comm, tg_comm_ticket ticket);
    tg_status (*meet)(tg_comm *comm, const char *what, const void *mine, size_t bytes,
                      void *out_all);
    void (*set_stall)(tg_comm *comm, double seconds);
    const char *(*host)(const tg_comm *comm, int rank);
    size_t (*bytes)(const tg_comm *comm);
    tg_comm_traffic (*traffic)(const tg_comm *comm);
    void (*quiet)(tg_comm *comm);
    void (*leave)(tg_comm *comm, const char *reason);
    void (*close)(tg_comm *comm);
    bool (*lost)(tg_comm *comm, int rank);
    bool (*record)(tg_comm *comm, tg_comm_ticket ticket, tg_comm_record *out);
    tg_status (*reserve)(tg_comm *comm, size_t count, tg_dtype wire);
} tg_comm_ops;

/* First member of every back end's own structure. */
struct tg_comm {
    const tg_comm_ops *ops;
    int rank, size;
    const char *library; /* "self", "Open MPI v4.1.4 ..." */
    uint64_t
        agreed; /* fingerprint of the message of the last failure that all ranks know of; 0: none */
};

/* One rank: every collective is done at once. Static storage; close does nothing. */
tg_comm *tg_comm_self(void);

/* Takes the memory of collectives of up to `count` elements, their sums made of `wire`, as many at once as there may be
 * (tg_comm_cost_memory), so that a rank that has none fails here and not in the middle of one. Waits for those under way;
 * each rank for itself. */
tg_status tg_comm_reserve(tg_comm *comm, size_t count, tg_dtype wire) TG_MUST_CHECK;

/* Starts a large collective. They finish in the order in which they began. */
tg_status tg_comm_begin(tg_comm *comm, const tg_comm_work *work, tg_comm_ticket *out) TG_MUST_CHECK;
/* Returns when that collective, and all before it, are done on this rank. */
tg_status tg_comm_wait(tg_comm *comm, tg_comm_ticket ticket) TG_MUST_CHECK;

/* Every rank gives `bytes` (<= TG_COMM_SMALL_BYTES, equal on all) and gets all, in the order of ranks:
 * out_all [size][bytes]. Returns when all have met. */
tg_status tg_comm_meet(tg_comm *comm, const char *what, const void *mine, size_t bytes,
                       void *out_all) TG_MUST_CHECK;

/* The first rank's `bytes` (<= TG_COMM_SMALL_BYTES) become everyone's. inout_value is as it was after an error. */
tg_status tg_comm_take_first(tg_comm *comm, const char *what, void *inout_value,
                             size_t bytes) TG_MUST_CHECK;

/* Makes one rank's failure everyone's: returns `status` when it is an error here; else TG_ERROR_PEER
 * with the first failing rank's message when there is one; else TG_OK. */
tg_status tg_comm_agree(tg_comm *comm, const char *what, tg_status status) TG_MUST_CHECK;
/* The same for what the first rank has done for all: where it failed, its status and message are everyone's, so that all
 * end alike. What others failed in beside it counts as in tg_comm_agree. */
tg_status tg_comm_follow(tg_comm *comm, const char *what, tg_status status) TG_MUST_CHECK;

/* Returns when nothing touches the buffers of collectives any more: those begun are done or, after a
 * failure or leave, given up. Before a buffer is freed whose collectives were not all waited for. */
void tg_comm_quiet(tg_comm *comm);

/* Whether the message last recorded is the failure that tg_comm_agree or tg_comm_follow returned to all ranks last: then they
 * can close together, and nobody has to leave. */
bool tg_comm_agreed(const tg_comm *comm);

/* How long a collective may stand still while all ranks give signs of life; raise it around work whose
 * length differs between ranks. A rank whose process gives none is lost after the time that the
 * communicator was opened with, whatever is set here. */
void tg_comm_set_stall(tg_comm *comm, double seconds);

/* Name of the machine of a rank. */
const char *tg_comm_host(const tg_comm *comm, int rank);
/* Memory that the back end has taken for itself so far. */
size_t tg_comm_bytes(const tg_comm *comm);
tg_comm_traffic tg_comm_get_traffic(const tg_comm *comm);
/* When a collective that was waited for was queued, posted and done. False where a back end has none of it: one
 * rank alone, or hundreds of collectives later. */
bool tg_comm_get_record(tg_comm *comm, tg_comm_ticket ticket, tg_comm_record *out);

/* After TG_ERROR_PEER: whether `rank` is dead, stopped or cut off, and so says nothing about it itself. */
bool tg_comm_lost(tg_comm *comm, int rank);

/* Tells the others, once, why this rank goes before its work is done; they fail with TG_ERROR_PEER and
 * this reason. Waits for nobody. */
void tg_comm_leave(tg_comm *comm, const char *reason);
/* NULL is allowed. After leave or an error it waits for nobody either. */
void tg_comm_close(tg_comm *comm);

/* Piece of `rank` of a range of `count` elements: [*out_begin, *out_end). */
void tg_comm_piece(size_t count, int size, int rank, size_t *out_begin, size_t *out_end);

#endif
