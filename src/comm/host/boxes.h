/* boxes.h - shares of sums on their way: what other ranks are sent, where theirs lie, and the adding; for comm/host
 * only. Used by the progress thread alone. */
#ifndef TG_COMM_HOST_BOXES_H
#define TG_COMM_HOST_BOXES_H

#include "comm/host/exchange.h"

/* No piece of the range has more elements. */
size_t tg_host_largest_piece(const tg_host_exchange *exchange, int size);
/* Bytes of a box: a piece for each of the others, of the wire's type. */
size_t tg_host_box_bytes(const tg_host_exchange *exchange, int size);
/* Place of a peer's share in one of the exchange's boxes. */
char *tg_host_share_of(const tg_host_exchange *exchange, const tg_transport *transport, char *box,
                       int peer);
/* bf16: rounds the others' pieces into the outbox. */
void tg_host_fill_outbox(tg_host_exchange *exchange, const tg_transport *transport);
/* own piece [at, at + n) becomes the sum over ranks, in their order; all shares of it have come. */
void tg_host_add(tg_host_exchange *exchange, const tg_transport *transport, size_t at, size_t n);

#endif
