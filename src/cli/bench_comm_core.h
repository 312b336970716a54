/* bench_comm_core.h - what an exchange takes of a core, which a rank that computes on all of its cores pays for it.
 *
 * The caller sleeps while all-reduces are under way: one that waits makes the thread that moves messages look without
 * rest, and that would be measured. Two sizes, a message of the smallest and many of the largest, part messages from
 * bytes. Beside the thread the kernel handles packets, on whatever core: that is the machine's core time (os/load.h) less
 * what the ranks on it took themselves and less what was taken in quiet moments before and after, divided among these
 * ranks. On a machine that is more than idle in those moments it is unknown.
 *
 * Errors    those of tg_comm. Every rank calls it; results are the same on all but for packets, which are of
 *           this rank's machine.
 */
#ifndef TG_CLI_BENCH_COMM_CORE_H
#define TG_CLI_BENCH_COMM_CORE_H

#include "comm/comm.h"

/* Of one all-reduce, mean over ranks and repeats; NaN: not known. */
typedef struct tg_comm_core {
    size_t count; /* of elements */
    size_t messages;
    double sent_bytes;                          /* by this rank */
    double seconds;                             /* from begin to the sums */
    double cpu_ns;                              /* of the thread that moves messages */
    double cpu_ns_per_byte, cpu_ns_per_message; /* of bytes and messages sent; as many come */
    double packets_ns;                          /* of the kernel besides, a rank's part */
    double packets_ns_per_byte;
    double quiet_cores; /* that others took of the machine in quiet moments */
} tg_comm_core;

/* largest: an all-reduce, with data. */
tg_status tg_comm_core_measure(tg_comm *comm, const tg_comm_work *largest,
                               tg_comm_core *out) TG_MUST_CHECK;

#endif
