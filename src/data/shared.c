#include "data/dataset.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A photo by the folder that really holds it, so that links to folders hide nothing; one look at each
 * folder is enough, where one at each photo takes minutes on a slow disk. */
typedef struct place {
    dev_t device;
    ino_t inode;
    const char *name; /* in the folder */
} place;

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return strcmp(x->name, y->name);
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Fills in the folder of `path`; false when it is gone, which is the loader's to report. */
static bool find_folder(const char *path, size_t length, place *out)
{
    struct stat info;
    char *folder = length ? strndup(path, length) : strdup(".");
    bool found = folder && stat(folder, &info) == 0;
    free(folder);
    if (!found)
        return false;
    out->device = info.st_dev;
    out->inode = info.st_ino;
    return true;
}

/* The places of all photos, in order; from malloc. */
static tg_status list_places(const tg_dataset *dataset, place **out, size_t *out_count)
{
    size_t n = 0, length = 0;
    const char *last = NULL;
    place at = {0}, *places = calloc(dataset->count + 1, sizeof *places);
    if (!places)
        return tg_fail(TG_ERROR_MACHINE, "out of memory to compare %zu photos", dataset->count);
    for (size_t i = 0; i < dataset->count; i++) {
        const char *path = dataset->samples[i].path;
        bool same = last && folder_length(path) == length && memcmp(path, last, length) == 0;
        length = folder_length(path);
        if (!same && !find_folder(path, length, &at)) {
            last = NULL;
            continue;
        }
        last = path;
        at.name = path + length;
        places[n++] = at;
    }
    qsort(places, n, sizeof *places, compare_places);
    *out = places;
    *out_count = n;
    return TG_OK;
}

tg_status tg_dataset_count_shared(const tg_dataset *a, const tg_dataset *b, size_t *out)
{
    place *places = NULL, *others = NULL;
    size_t count, other_count, shared = 0;
    tg_status status;
    TG_TRY_GOTO(list_places(a, &places, &count), free_places);
    TG_TRY_GOTO(list_places(b, &others, &other_count), free_places);
    for (size_t i = 0; i < other_count; i++)
        shared += bsearch(&others[i], places, count, sizeof *places, compare_places) != NULL;
    *out = shared;
free_places:
    free(places);
    free(others);
    return status;
}
