/* process.h - this process as others on the same machine know it, and whether such a one still lives. */
#ifndef TG_OS_PROCESS_H
#define TG_OS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* machine: the same number for processes that see one another's process ids (same boot, same process
 * namespace); 0: not known. begun: the kernel's start time of the process, so that a number that was
 * given to another process is not taken for this one. */
typedef struct tg_process {
    uint64_t machine, begun;
    int64_t pid;
} tg_process;

tg_process tg_process_self(void);

/* When the kernel started this process, as tg_clock_ns counts, to a tick (10 ms) early; starting another program
 * (execve) does not change it. Now, where there is no /proc. */
int64_t tg_process_begun_ns(void);

/* False when `process` is surely gone: it lived on this machine, as `self` does, and no longer runs
 * (a dead one that nobody has waited for counts as gone). True also when that cannot be told. */
bool tg_process_alive(const tg_process *self, const tg_process *process);

/* Whether this process sees one of that number that is not dead already. */
bool tg_process_runs(int64_t pid);

#endif
