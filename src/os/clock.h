/* clock.h - time: intervals from the monotonic clock, wall time only as a label with its zone. */
#ifndef TG_OS_CLOCK_H
#define TG_OS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds since some fixed moment; never goes back. */
int64_t tg_clock_ns(void);
/* Seconds of an interval in nanoseconds. */
double tg_clock_seconds(int64_t interval_ns);

/* Wall time of a moment of the monotonic clock, in seconds since 1970: one reading of the wall clock, made by the first
 * call in this process, plus what has passed since, so that a clock that is set meanwhile moves nothing. A label, to put
 * records of one process side by side, and those of several as well as their machines' clocks agree. */
double tg_clock_unix(int64_t ns);

#define TG_CLOCK_ISO_BYTES 32
/* Wall time now as "2026-03-09T14:05:07.123Z" (UTC, ISO 8601). */
void tg_clock_iso(char out[TG_CLOCK_ISO_BYTES]);
/* The same moment as it fits in a file name: "20260309-140507". */
void tg_clock_stamp(char out[TG_CLOCK_ISO_BYTES]);

#endif
