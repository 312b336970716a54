/* peers.h - who the other ranks are, whether they live, and whom a wait is for; for comm/host only. */
#ifndef TG_COMM_HOST_PEERS_H
#define TG_COMM_HOST_PEERS_H

#include "comm/host/exchange.h"
#include "os/process.h"

/* What each rank says of itself when it joins. */
typedef struct tg_host_peer {
    char host[TG_COMM_HOST_BYTES];
    tg_process process;
} tg_host_peer;

/* Whether messages of a peer, or to it, are outstanding. */
bool tg_host_waits_for(const tg_host_exchange *exchange, int peer);
/* A peer that `exchange` waits for and whose process on this machine is gone; -1: none. */
int tg_host_find_dead(const tg_host_exchange *exchange, const tg_transport *transport,
                      const tg_host_peer *peers);
/* Records TG_ERROR_PEER about a peer whose process is gone. */
tg_status tg_host_report_dead(const tg_host_exchange *exchange, const tg_host_peer *peers,
                              int peer);
/* Records TG_ERROR_PEER: the transport gave `code` for a message from the peer (receive) or to it, in `exchange`,
 * or outside of collectives (NULL). Names rank, host, collective and bytes outstanding. */
tg_status tg_host_report_broken(tg_transport *transport, const tg_host_peer *peers,
                                const tg_host_exchange *exchange, int peer, bool receive, int code);

#endif
