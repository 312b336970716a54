/* affinity.h - sets of logical processors ("cpus"): which ones a thread may run on, and how they lie.
 *
 * A set holds cpus 0 to TG_CPU_SET_CPUS - 1; machines with more are seen as far as that.
 * Errors  as stated; what the system does not say is an empty set. Memory none. Threads reentrant.
 */
#ifndef TG_OS_AFFINITY_H
#define TG_OS_AFFINITY_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { TG_CPU_SET_CPUS = 2048 };

typedef struct tg_cpu_set {
    uint64_t words[TG_CPU_SET_CPUS / 64];
} tg_cpu_set;

int tg_cpu_set_count(const tg_cpu_set *set);
bool tg_cpu_set_has(const tg_cpu_set *set, int cpu);
void tg_cpu_set_add(tg_cpu_set *set, int cpu);
/* Adds all of `other`. */
void tg_cpu_set_join(tg_cpu_set *set, const tg_cpu_set *other);
bool tg_cpu_set_equal(const tg_cpu_set *a, const tg_cpu_set *b);
/* "0-3,8"; "none" when empty. */
void tg_cpu_set_print(const tg_cpu_set *set, tg_text *out);

/* Of the calling thread; threads that it starts begin with the same. */
void tg_affinity_get(tg_cpu_set *out);
/* Of another process's first thread; false when there is none, or the system does not say. */
bool tg_affinity_of(int64_t pid, tg_cpu_set *out);
/* TG_ERROR_MACHINE when the system refuses; then nothing has changed. */
tg_status tg_affinity_set(const tg_cpu_set *set) TG_MUST_CHECK;
/* What the calling thread could be given at most: whoever started it may have bound it to fewer. */
void tg_affinity_possible(tg_cpu_set *out);

/* The cpus of `set` so that neighbours in the list are neighbours in the machine: by package, then by core,
 * the threads of a core together; out [tg_cpu_set_count]. `root` as for tg_cpu_share_read. */
void tg_cpu_set_order(const char *root, const tg_cpu_set *set, int *out);

/* The same number for processes of one running system, in whatever container; 0: not known. */
uint64_t tg_machine_id(void);

#endif
