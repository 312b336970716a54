#include "os/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

int64_t tg_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double tg_clock_seconds(int64_t interval_ns)
{
    return (double)interval_ns * 1e-9;
}

static pthread_once_t unix_once = PTHREAD_ONCE_INIT;
static double unix_at_zero; /* wall time when the monotonic clock was 0 */

static void read_unix(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    unix_at_zero = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - tg_clock_seconds(tg_clock_ns());
}

double tg_clock_unix(int64_t ns)
{
    pthread_once(&unix_once, read_unix);
    return unix_at_zero + tg_clock_seconds(ns);
}

static struct tm utc_now(int *out_ms)
{
    struct timespec t;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &utc);
    *out_ms = (int)(t.tv_nsec / 1000000);
    return utc;
}

void tg_clock_iso(char out[TG_CLOCK_ISO_BYTES])
{
    int ms;
    struct tm utc = utc_now(&ms);
    size_t n = strftime(out, TG_CLOCK_ISO_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + n, TG_CLOCK_ISO_BYTES - n, ".%03dZ", ms);
}

void tg_clock_stamp(char out[TG_CLOCK_ISO_BYTES])
{
    int ms;
    struct tm utc = utc_now(&ms);
    strftime(out, TG_CLOCK_ISO_BYTES, "%Y%m%d-%H%M%S", &utc);
}
