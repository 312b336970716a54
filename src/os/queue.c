#include "os/queue.h"

#include "os/clock.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* "1234 567 8": on a core, waiting for one, turns. */
static bool add_thread(const char *path, tg_queue *queue)
{
    long long ran, waited;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const bool read = fscanf(file, "%lld %lld", &ran, &waited) == 2;
    fclose(file);
    if (read) {
        queue->ran_ns += ran;
        queue->waited_ns += waited;
    }
    return read;
}

static void read_threads(const char *root, tg_queue *queue)
{
    char path[PATH_BYTES];
    bool any = false;
    snprintf(path, sizeof path, "%s/proc/self/task", root);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/proc/self/task/%s/schedstat", root, e->d_name);
        any = add_thread(path, queue) || any; /* one that ended meanwhile is none */
    }
    if (folder)
        closedir(folder);
    if (!any)
        queue->ran_ns = queue->waited_ns = -1;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" in microseconds. */
static int64_t read_pressure(const char *root)
{
    char path[PATH_BYTES], line[256];
    long long total = 0;
    snprintf(path, sizeof path, "%s/proc/pressure/cpu", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    const char *at = fgets(line, sizeof line, file) ? strstr(line, "total=") : NULL;
    const bool read = at && strncmp(line, "some", 4) == 0 && sscanf(at, "total=%lld", &total) == 1;
    fclose(file);
    return read ? total * 1000 : -1;
}

tg_queue tg_queue_read(const char *root)
{
    tg_queue queue = {.pressure_ns = read_pressure(root)};
    read_threads(root, &queue);
    return queue;
}

static double since(int64_t begin, int64_t end)
{
    return begin < 0 || end < begin ? NAN : tg_clock_seconds(end - begin);
}

double tg_queue_busy_s(const tg_queue *begin, const tg_queue *end)
{
    return since(begin->ran_ns, end->ran_ns) + since(begin->waited_ns, end->waited_ns);
}

double tg_queue_pressure_s(const tg_queue *begin, const tg_queue *end)
{
    return since(begin->pressure_ns, end->pressure_ns);
}
