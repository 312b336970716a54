/* host.h - collectives in host memory over a transport of messages, driven by a thread of their own.
 *
 * Method     direct exchange: to reduce, each rank sends every peer that peer's piece and adds up what
 *            it gets for its own, in the order of ranks; to gather, each sends its own piece to every
 *            peer. Each rank so sends and receives (N-1)/N of the range a phase, the least possible,
 *            both ways at once, by turns: in each a rank sends one part of a piece to one peer and gets
 *            one from another, so that no link is asked by two. Between machines it is at most
 *            TG_HOST_WINDOW_BYTES ahead of what has come; without that bound transfers drift apart, and links idle behind the slowest
 *            (docs/PARALLEL.md). Both phases of an all-reduce are one list of turns: parts that are added up
 *            go out while others still come. Messages are of TG_HOST_MESSAGE_BYTES: longer ones (from 64 KiB)
 *            make Open MPI's TCP wait for a word from the other side behind that side's own data.
 * Progress   a thread posts, tests and adds, so that messages move while the caller computes. It sleeps
 *            between looks while the caller computes, and looks without sleeping when it waits.
 * Failure    nothing has come for the stall time while something is awaited; a peer's process on this
 *            machine is gone; a peer said that it leaves; the transport fails. Who was waited for, and
 *            for what, is the message.
 * Memory     (N-1)/N of each collective under way (at most TG_HOST_DEPTH), kept for the next ones.
 */
#ifndef TG_COMM_HOST_HOST_H
#define TG_COMM_HOST_HOST_H

#include "comm/comm.h"
#include "comm/host/transport.h"

enum {
    TG_HOST_DEPTH = 6,
    TG_HOST_MESSAGE_BYTES = 60 * 1024,
    TG_HOST_WINDOW_BYTES = 3 * TG_HOST_MESSAGE_BYTES,
};

/* Joins the ranks of `transport`, which is taken over (copied; closed by close, or here on failure).
 * Every rank calls it. `host`: this machine's name for messages. stall_s: see tg_comm_set_stall. */
tg_status tg_host_open(const tg_transport *transport, const char *host, double stall_s,
                       tg_comm **out) TG_MUST_CHECK;

/* At most what tg_comm_bytes tells on one of `size` ranks once collectives of up to `count` elements, their
 * sums made of `wire`, have been under way, as many at once as there may be. */
size_t tg_host_bytes(int size, size_t count, tg_dtype wire);

#endif
