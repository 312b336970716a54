/* ranks.h - ranks as threads of one process, for tests of what ranks do together: a transport of
 * messages (comm/host/transport.h) through memory, and faults at will. */
#ifndef TG_TEST_RANKS_H
#define TG_TEST_RANKS_H

#include "comm/host/host.h"

typedef struct tg_test_world tg_test_world;

enum { TG_TEST_RANKS = 8 };

/* Runs `body` on `size` threads at once, each with a communicator of its own, opened and closed here.
 * Returns each rank's status in out_status [size]; what it said stays in out_text [size][512]. */
typedef tg_status (*tg_test_rank_body)(tg_comm *comm, tg_test_world *world, void *user);
void tg_test_ranks_run(int size, double stall_s, tg_test_rank_body body, void *user,
                       tg_status out_status[TG_TEST_RANKS], char out_text[TG_TEST_RANKS][512]);

/* The same, of which every rank has to return TG_OK; says what those said that did not. */
void tg_test_ranks_all_ok(int size, double stall_s, tg_test_rank_body body, void *user);

/* From now on nothing goes to or from this rank. */
void tg_test_world_mute(tg_test_world *world, int rank);
/* From now on what one rank sends to another is lost, and the sender does not know; the other way it goes. */
void tg_test_world_cut(tg_test_world *world, int from, int to);
/* Messages from `rank` take at least so long. */
void tg_test_world_delay(tg_test_world *world, int rank, int64_t delay_ns);
/* What `rank` asks of the transport fails from now on, each of the kinds in `calls`. */
enum { TG_TEST_SENDS = 1, TG_TEST_RECEIVES = 2, TG_TEST_TESTS = 4 };
void tg_test_world_break(tg_test_world *world, int rank, int calls);

#endif
