/* cost.h - what a collective costs a rank, known from sizes alone: for memory tables and forecasts.
 *
 * Of comm/host's exchange (comm/host/host.h), everyone to everyone; self costs nothing. Functions of integers, without
 * errors; threads reentrant. `size` ranks, >= 1.
 */
#ifndef TG_COMM_COST_H
#define TG_COMM_COST_H

#include "comm/comm.h"

/* Messages that a rank sends in one collective, at most; at most as many come. kind, count and wire of `work`
 * count; a meeting has one for each other rank. */
size_t tg_comm_cost_messages(const tg_comm_work *work, int size);

/* Bytes that `rank` sends in it; 0 for a meeting, whose bytes are not work's. Over all ranks as many come as are sent. */
size_t tg_comm_cost_bytes(const tg_comm_work *work, int size, int rank);

/* Memory that a rank keeps once collectives of up to `count` elements have been under way, as many at once as there
 * may be (at most what tg_comm_bytes tells then). */
size_t tg_comm_cost_memory(int size, size_t count, tg_dtype wire);

#endif
