/* beside.h - other processes of the same program that may compute on the same cores.
 *
 * Errors  what the system does not say counts as none. Memory none. Threads reentrant.
 */
#ifndef TG_OS_BESIDE_H
#define TG_OS_BESIDE_H

#include "os/affinity.h"
#include "os/process.h"

/* How many processes that this one sees have its name, are none of `own` [count] nor itself, and may run on any of
 * `cores`. out_shared: which of `cores` these are; may be NULL. */
int tg_process_count_beside(const tg_process *own, int count, const tg_cpu_set *cores,
                            tg_cpu_set *out_shared);

#endif
