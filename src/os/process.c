#include "os/process.h"

#include "base/hash.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STAT_BYTES = 1024 };

/* State letter and start time of /proc/PID/stat; false when there is no such process. */
static bool read_stat(int64_t pid, char *out_state, uint64_t *out_begun)
{
    char path[64], text[STAT_BYTES];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    unsigned long long begun;
    /* fields 3 (state) and 22 (starttime) of proc(5) */
    if (!at || sscanf(at + 1,
                      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%llu",
                      out_state, &begun) != 2)
        return false;
    *out_begun = begun;
    return true;
}

static uint64_t machine_of_self(void)
{
    char boot[64];
    struct stat space;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return 0;
    size_t n = fread(boot, 1, sizeof boot, file);
    fclose(file);
    if (n == 0 || stat("/proc/self/ns/pid", &space) != 0)
        return 0;
    uint64_t hash = tg_hash(TG_HASH_START, boot, n);
    hash = tg_hash(hash, &space.st_ino, sizeof space.st_ino);
    return hash ? hash : 1;
}

tg_process tg_process_self(void)
{
    tg_process self = {.machine = machine_of_self(), .pid = getpid()};
    char state;
    if (!read_stat(self.pid, &state, &self.begun))
        self.machine = 0;
    return self;
}

int64_t tg_process_begun_ns(void)
{
    const int64_t now = tg_clock_ns();
    const long hz = sysconf(_SC_CLK_TCK);
    struct timespec boot; /* the clock of the start time: it goes on while the machine sleeps */
    char state;
    uint64_t ticks;
    if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
        !read_stat(getpid(), &state, &ticks))
        return now;
    const double begun = (double)ticks / (double)hz;
    const double age = (double)boot.tv_sec + 1e-9 * (double)boot.tv_nsec - begun;
    return age > 0 ? now - (int64_t)(age * 1e9) : now;
}

bool tg_process_alive(const tg_process *self, const tg_process *process)
{
    char state;
    uint64_t begun, own;
    if (!self->machine || self->machine != process->machine)
        return true;
    if (!read_stat(self->pid, &state, &own)) /* no /proc any more: nothing is known */
        return true;
    return read_stat(process->pid, &state, &begun) && begun == process->begun && state != 'Z' &&
           state != 'X';
}

bool tg_process_runs(int64_t pid)
{
    char state;
    uint64_t begun;
    return read_stat(pid, &state, &begun) && state != 'Z' && state != 'X';
}
