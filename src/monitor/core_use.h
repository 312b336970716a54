/* core_use.h - /proc/stat: what each core did, context switches, and who runs or waits.
 *
 * Shares are of the core's own ticks since the sample before, so that no clock matters; a core that was off for the
 * whole of it is unknown. Interrupts count as system, niced programs as user. Errors none (source.h).
 */
#ifndef TG_MONITOR_CORE_USE_H
#define TG_MONITOR_CORE_USE_H

#include "monitor/source.h"
#include "run/system.h"

enum { TG_CORE_TICKS = 8 }; /* user nice system idle iowait irq softirq steal */

typedef struct tg_core_ticks {
    double ticks[TG_CORE_TICKS]; /* the first NaN: not there */
} tg_core_ticks;

typedef struct tg_core_use {
    tg_source stat;
    size_t count; /* by the highest number when it was opened */
    tg_core_ticks *before, *now;
    double switches;
} tg_core_use;

/* Cores that a /proc/stat has: the highest number and one. */
size_t tg_core_use_count(const char *stat);
/* [count]: those that the text has, others unknown. */
void tg_core_use_parse(const char *stat, size_t count, tg_core_ticks *out);
/* Shares between two moments. */
tg_system_core tg_core_use_share(const tg_core_ticks *before, const tg_core_ticks *now);

/* TG_ERROR_MACHINE for memory. */
tg_status tg_core_use_open(const char *root, tg_text *text, tg_core_use *out) TG_MUST_CHECK;
void tg_core_use_take(tg_core_use *cores, tg_text *text, double seconds, tg_system_sample *out);
void tg_core_use_close(tg_core_use *cores);

#endif
