#include "os/beside.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 32 };

static bool read_name(const char *process, char out[NAME_BYTES])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/comm", process);
    FILE *file = fopen(path, "re");
    bool known = file && fgets(out, NAME_BYTES, file);
    if (file)
        fclose(file);
    return known;
}

static bool is_own(const tg_process *self, const tg_process *own, int count, int64_t pid)
{
    for (int i = 0; i < count; i++)
        if (own[i].machine == self->machine && own[i].pid == pid)
            return true;
    return pid == self->pid;
}

/* The cores of both; false when there are none. */
static bool overlap(const tg_cpu_set *a, const tg_cpu_set *b, tg_cpu_set *inout_shared)
{
    bool any = false;
    for (size_t i = 0; i < TG_CPU_SET_CPUS / 64; i++) {
        inout_shared->words[i] |= a->words[i] & b->words[i];
        any = any || (a->words[i] & b->words[i]);
    }
    return any;
}

int tg_process_count_beside(const tg_process *own, int count, const tg_cpu_set *cores,
                            tg_cpu_set *out_shared)
{
    const tg_process self = tg_process_self();
    char name[NAME_BYTES], other[NAME_BYTES];
    tg_cpu_set theirs, shared = {0};
    int found = 0;
    DIR *dir = opendir("/proc");
    const bool known = dir && read_name("self", name);
    for (struct dirent *entry; known && (entry = readdir(dir));) {
        const int64_t pid = strtoll(entry->d_name, NULL, 10); /* 0 for what is no process */
        if (pid <= 0 || is_own(&self, own, count, pid) || !read_name(entry->d_name, other) ||
            strcmp(name, other) != 0 || !tg_process_runs(pid) || !tg_affinity_of(pid, &theirs))
            continue;
        found += overlap(&theirs, cores, &shared);
    }
    if (dir)
        closedir(dir);
    if (out_shared)
        *out_shared = shared;
    return found;
}
