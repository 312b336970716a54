#include "os/usage.h"

#include <sys/resource.h>

static int64_t nanoseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_usec * 1000;
}

tg_usage tg_usage_read(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return (tg_usage){0};
    return (tg_usage){.user_ns = nanoseconds(&usage.ru_utime),
                      .system_ns = nanoseconds(&usage.ru_stime),
                      .voluntary = (uint64_t)usage.ru_nvcsw,
                      .involuntary = (uint64_t)usage.ru_nivcsw};
}
