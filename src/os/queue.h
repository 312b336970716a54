/* queue.h - how long this process's threads have run and waited for a core so far, and the machine's pressure.
 *
 * By difference between two reads, over the time between: (ran + waited) is the length of the run queue that this
 * process makes, as a mean and not as a sample; `pressure` is the share of the time in which something on the machine
 * waited for a core (PSI, "some" of /proc/pressure/cpu). Threads that end in between are lost from it.
 *
 * Errors  what the kernel does not say is -1. Memory none. Threads reentrant.
 */
#ifndef TG_OS_QUEUE_H
#define TG_OS_QUEUE_H

#include <stdint.h>

typedef struct tg_queue {
    int64_t ran_ns, waited_ns; /* of all threads that run (schedstat) */
    int64_t pressure_ns;
} tg_queue;

/* `root` is put before /proc ("" for the real one). */
tg_queue tg_queue_read(const char *root);

/* Seconds between two reads: this process's threads together ran or waited for a core; something waited for one. NaN: not
 * known. */
double tg_queue_busy_s(const tg_queue *begin, const tg_queue *end);
double tg_queue_pressure_s(const tg_queue *begin, const tg_queue *end);

#endif
