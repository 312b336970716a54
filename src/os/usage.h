/* usage.h - what this process has taken of the cores so far: all its threads, also those that have ended. */
#ifndef TG_OS_USAGE_H
#define TG_OS_USAGE_H

#include <stdint.h>

typedef struct tg_usage {
    int64_t user_ns, system_ns;
    uint64_t voluntary, involuntary; /* context switches: waiting; pushed aside by other threads */
} tg_usage;

/* Errors none. Threads reentrant. */
tg_usage tg_usage_read(void);
/* The calling thread's alone. */
tg_usage tg_usage_read_thread(void);

#endif
