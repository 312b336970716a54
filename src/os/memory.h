/* memory.h - what this process and this machine use and have. 0 where the system does not say. */
#ifndef TG_OS_MEMORY_H
#define TG_OS_MEMORY_H

#include <stdint.h>

/* Resident memory of this process now, and the most it ever was. */
uint64_t tg_memory_rss_bytes(void);
uint64_t tg_memory_peak_rss_bytes(void);
/* Bytes that malloc has handed out and not got back; 0 where it does not say (sanitizers). */
uint64_t tg_memory_heap_bytes(void);
/* Gives what malloc keeps for later back to the system. */
void tg_memory_trim(void);
/* Of the whole machine: all, and what could be used without swapping (MemAvailable). */
uint64_t tg_memory_total_bytes(void);
uint64_t tg_memory_available_bytes(void);

#endif
