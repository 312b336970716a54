/* counters.h - lists of devices that count up: /proc/diskstats and /proc/net/dev.
 *
 * Disks    whole ones: not their partitions, nor what is put together of others (md, dm) or of memory or files (ram,
 *          zram, loop), so that no byte counts twice. Without /sys/block all is unknown.
 * Network  loopback left out, and, where some interface is a real device, all that are none (bridges, tunnels).
 * A device that comes counts from then on. Errors none (source.h); devices beyond TG_COUNTERS are passed over.
 */
#ifndef TG_MONITOR_COUNTERS_H
#define TG_MONITOR_COUNTERS_H

#include "monitor/source.h"
#include "run/system.h"

enum { TG_COUNTERS = 256, TG_COUNTER_VALUES = 3, TG_COUNTER_NAME_BYTES = 32 };

/* read, written bytes, busy seconds of a disk; received, sent bytes of an interface. */
typedef struct tg_counter {
    char name[TG_COUNTER_NAME_BYTES];
    bool counts;
    double values[TG_COUNTER_VALUES]; /* NaN: unknown */
} tg_counter;

/* The next line of the text; false at its end. Lines that are none are passed over. counts is not set. */
bool tg_disk_parse(const char **at, tg_counter *out);
bool tg_interface_parse(const char **at, tg_counter *out);

typedef struct tg_counters {
    const char *root; /* borrowed */
    tg_source diskstats, interfaces;
    tg_counter *disks, *nets; /* as of the sample before */
    size_t disk_count, net_count;
    bool disks_known, net_devices; /* /sys/block is there; some interface is a device */
} tg_counters;

tg_status tg_counters_open(const char *root, tg_counters *out) TG_MUST_CHECK;
void tg_counters_take(tg_counters *counters, tg_text *text, double seconds, tg_system_sample *out);
void tg_counters_close(tg_counters *counters);

#endif
