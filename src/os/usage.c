#include "os/usage.h"

#include <sys/resource.h>

static int64_t nanoseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_usec * 1000;
}

static tg_usage read_usage(int whose)
{
    struct rusage usage;
    if (getrusage(whose, &usage) != 0)
        return (tg_usage){0};
    return (tg_usage){.user_ns = nanoseconds(&usage.ru_utime),
                      .system_ns = nanoseconds(&usage.ru_stime),
                      .voluntary = (uint64_t)usage.ru_nvcsw,
                      .involuntary = (uint64_t)usage.ru_nivcsw};
}

tg_usage tg_usage_read(void)
{
    return read_usage(RUSAGE_SELF);
}

tg_usage tg_usage_read_thread(void)
{
    return read_usage(RUSAGE_THREAD);
}
