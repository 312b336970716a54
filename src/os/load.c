#include "os/load.h"

#include "os/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "cpu  user nice system idle iowait irq softirq steal ..." in ticks of all cores, then a line for each. */
static bool read_ticks(FILE *file, double *out_idle, int *out_cores)
{
    unsigned long long idle, wait, stolen = 0;
    char line[512];
    if (!fgets(line, sizeof line, file) ||
        sscanf(line, "cpu %*u %*u %*u %llu %llu %*u %*u %llu", &idle, &wait, &stolen) < 2)
        return false;
    *out_idle = (double)(idle + wait + stolen);
    *out_cores = 0;
    while (fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0 &&
           isdigit((unsigned char)line[3]))
        (*out_cores)++;
    return true;
}

tg_load tg_load_read(const char *root)
{
    char path[4096];
    double idle = 0;
    tg_load load = {0};
    const long ticks = sysconf(_SC_CLK_TCK);
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *file = fopen(path, "re");
    load.at_ns = tg_clock_ns();
    if (!file)
        return load;
    if (ticks > 0 && read_ticks(file, &idle, &load.cores))
        load.idle_ns = (int64_t)(idle * 1e9 / (double)ticks);
    fclose(file);
    return load;
}

bool tg_load_between(const tg_load *begin, const tg_load *end, double *out_busy_ns)
{
    if (begin->cores < 1 || begin->cores != end->cores || end->idle_ns < begin->idle_ns)
        return false;
    const double all = (double)(end->at_ns - begin->at_ns) * begin->cores;
    *out_busy_ns = fmax(0, all - (double)(end->idle_ns - begin->idle_ns));
    return true;
}
