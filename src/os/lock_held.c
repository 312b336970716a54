#include "os/lock_held.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* "4: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; a "->" behind the number waits for the one before. The device is left
 * out: file systems in layers list that of the layer below. */
static int is_of(const char *line, unsigned long long inode)
{
    char kind[16], file[64];
    if (strstr(line, "->") || sscanf(line, "%*s %15s %*s %*s %*s %63s", kind, file) != 2)
        return 0;
    const char *number = strrchr(file, ':');
    unsigned long long listed;
    return strcmp(kind, "FLOCK") == 0 && number && sscanf(number, ":%llu", &listed) == 1 &&
           listed == inode;
}

tg_lock_held tg_lock_is_held(const char *path, const char *locks)
{
    struct stat st;
    char line[256];
    if (stat(path, &st) < 0)
        return TG_LOCK_UNKNOWN;
    FILE *file = fopen(locks, "re");
    if (!file)
        return TG_LOCK_UNKNOWN;
    tg_lock_held held = TG_LOCK_FREE;
    while (held == TG_LOCK_FREE && fgets(line, sizeof line, file))
        if (is_of(line, (unsigned long long)st.st_ino))
            held = TG_LOCK_HELD;
    fclose(file);
    return held;
}
