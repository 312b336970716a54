/* options_parallel.h - the options of work on many ranks, and what the launcher says of them. */
#ifndef TG_CLI_OPTIONS_PARALLEL_H
#define TG_CLI_OPTIONS_PARALLEL_H

#include "base/option.h"
#include "comm/comm.h"
#include "comm/module.h"
#include "train/ranks.h"

typedef enum tg_comm_name { TG_COMM_NAME_SELF, TG_COMM_NAME_MPI } tg_comm_name;

typedef struct tg_parallel_choice {
    int comm; /* tg_comm_name */
    double stall_s;
    double bucket_mib;
    int64_t zero;
    int reduce_dtype; /* float32, bfloat16 */
} tg_parallel_choice;

/* The first two are about joining, the others about an update that ranks share. */
enum { TG_PARALLEL_OPTION_COUNT = 5, TG_PARALLEL_JOIN_COUNT = 2 };
/* "float32", "bfloat16", NULL */
extern const char *const tg_reduce_dtype_names[];
extern const tg_option tg_parallel_option_table[TG_PARALLEL_OPTION_COUNT];

/* What the environment says of the launcher that started this process (docs/PARALLEL.md). */
tg_comm_promise tg_parallel_promise(void);

/* Which of the launcher's processes this one is, by its word; 0 also when there is none. */
int64_t tg_parallel_rank(void);

/* How that launcher starts ranks without binding them to few cores; NULL: not known. */
const char *tg_parallel_unbound(void);

/* How gradients travel, and who keeps the moments. */
tg_ranks_options tg_parallel_ranks(const tg_parallel_choice *choice);

/* Joins the ranks that were asked for. With `self`, TG_ERROR_USAGE when a launcher started more than
 * one process: each would do the whole work. From here on the first rank speaks for all (console.h). */
tg_status tg_parallel_open(const tg_parallel_choice *choice, tg_comm **out) TG_MUST_CHECK;

/* For a process that failed with the recorded message before it joined (a wrong option): with `mpi` it joins for
 * a moment to tell the others, who fail with TG_ERROR_PEER, and one of them says it. Where it cannot, this
 * process says it itself. Returns `status` with its message. */
tg_status tg_parallel_tell_failure(tg_status status, bool mpi);

/* The end of work with `comm`, with its status. A failure is said before this rank goes, because a launcher ends all
 * processes when one of them goes with an error, by the first rank or the lowest that is left. */
void tg_parallel_close(tg_comm *comm, tg_status status);

#endif
