#include "os/memory.h"

#include <malloc.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <stdlib.h>

/* Reads without stdio: these are called every step and must not allocate. */
static uint64_t field_kib(const char *path, const char *label)
{
    char text[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strstr(text, label);
    return at ? strtoull(at + strlen(label), NULL, 10) * 1024 : 0;
}

uint64_t tg_memory_rss_bytes(void)
{
    return field_kib("/proc/self/status", "VmRSS:");
}

uint64_t tg_memory_peak_rss_bytes(void)
{
    return field_kib("/proc/self/status", "VmHWM:");
}

uint64_t tg_memory_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (uint64_t)info.uordblks + info.hblkhd;
}

void tg_memory_trim(void)
{
    (void)malloc_trim(0);
}

uint64_t tg_memory_total_bytes(void)
{
    return field_kib("/proc/meminfo", "MemTotal:");
}

uint64_t tg_memory_available_bytes(void)
{
    return field_kib("/proc/meminfo", "MemAvailable:");
}
