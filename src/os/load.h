/* load.h - what everybody together, the kernel too, has taken of this machine's cores.
 *
 * By difference: the cores' time less the idle time of /proc/stat, because interrupts and packets are booked to whoever
 * happened to run, where they are booked at all, and idle time is exact (to 10 ms). What a hypervisor took is nobody's.
 * Namespaces and control groups do not matter: it is all of the kernel's cores.
 *
 * Errors  as stated. Memory none. Threads reentrant.
 */
#ifndef TG_OS_LOAD_H
#define TG_OS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_load {
    int64_t at_ns;   /* tg_clock_ns */
    int64_t idle_ns; /* of all cores, waiting for disks and stolen time included */
    int cores;       /* 0: not known */
} tg_load;

/* `root` is put before /proc ("" for the real one). */
tg_load tg_load_read(const char *root);

/* Core time between two reads, in ns; false where the machine does not say or has changed its cores. */
bool tg_load_between(const tg_load *begin, const tg_load *end, double *out_busy_ns);

#endif
