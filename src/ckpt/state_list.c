#include "ckpt/state_list.h"

#include "base/number.h"
#include "ckpt/state_record.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/temp.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP "step-"

/* The number in "step-N", -1 for any other name. */
static int64_t parse_step(const char *name)
{
    int64_t step;
    size_t n = strlen(STEP);
    if (strncmp(name, STEP, n) != 0 || name[n] < '0' || name[n] > '9' ||
        !tg_number_parse_i64(name + n, strlen(name + n), &step))
        return -1;
    return step;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

static tg_status collect(DIR *dir, const char *folder, tg_state_list *out)
{
    struct dirent *entry;
    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
        int64_t step = parse_step(entry->d_name);
        if (step < 0)
            continue;
        int64_t *steps = realloc(out->steps, (out->count + 1) * sizeof *steps);
        if (!steps)
            return tg_fail(TG_ERROR_MACHINE, "%s: out of memory", folder);
        out->steps = steps;
        steps[out->count++] = step;
    }
    if (errno != 0)
        return tg_fail_errno("list", folder);
    if (out->count)
        qsort(out->steps, out->count, sizeof *out->steps, newest_first);
    return TG_OK;
}

tg_status tg_state_list_read(const char *folder, tg_state_list *out)
{
    tg_state_list list = {0};
    DIR *dir = opendir(folder);
    if (!dir && errno != ENOENT)
        return tg_fail_errno("open", folder);
    tg_status status = dir ? collect(dir, folder, &list) : TG_OK;
    if (dir)
        closedir(dir);
    if (status < 0)
        tg_state_list_done(&list);
    else
        *out = list;
    return status;
}

void tg_state_list_done(tg_state_list *list)
{
    if (!list)
        return;
    free(list->steps);
    *list = (tg_state_list){0};
}

char *tg_state_step_path(const char *folder, int64_t step)
{
    char name[32];
    snprintf(name, sizeof name, STEP "%lld", (long long)step);
    return tg_path_join(folder, name);
}

tg_status tg_state_link(const char *folder, const char *name, int64_t step)
{
    char target[32];
    char *path = tg_path_join(folder, name), *temp = path ? tg_temp_name(path, TG_TEMP_NEW) : NULL;
    tg_status status = TG_OK;
    snprintf(target, sizeof target, STEP "%lld", (long long)step);
    if (!temp)
        status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory", folder);
    else if (symlink(target, temp) < 0)
        status = tg_fail_errno("make a link", temp);
    else if (rename(temp, path) < 0) {
        status = tg_fail_errno("replace", path);
        unlink(temp);
    }
    free(temp);
    free(path);
    return status == TG_OK ? tg_folder_sync(folder) : status;
}

int64_t tg_state_linked_step(const char *folder, const char *name)
{
    char target[PATH_MAX];
    char *path = tg_path_join(folder, name);
    ssize_t n = path ? readlink(path, target, sizeof target - 1) : -1;
    free(path);
    if (n < 0)
        return -1;
    target[n] = '\0';
    return parse_step(target);
}

/* False when it cannot be read: nothing may be concluded then. */
static bool read_score(const char *folder, int64_t step, double *out)
{
    int64_t ignored;
    char *path = step >= 0 ? tg_state_step_path(folder, step) : NULL;
    bool known = path && tg_state_record_read(path, &(tg_state){0}, &ignored, out) == TG_OK;
    if (!known)
        tg_error_clear();
    free(path);
    return known;
}

/* A removal that is cut short must not leave half a checkpoint under its name: it is renamed to a
 * temporary first, which the next cleaning takes. */
static tg_status remove_step(const char *folder, int64_t step)
{
    char *path = tg_state_step_path(folder, step);
    char *temp = path ? tg_temp_name(path, TG_TEMP_NEW) : NULL;
    tg_status status = TG_OK;
    if (!temp)
        status = tg_fail(TG_ERROR_MACHINE, "%s: out of memory", folder);
    else if (rename(path, temp) < 0)
        status = tg_fail_errno("remove", path);
    else
        status = tg_tree_remove(temp);
    free(temp);
    free(path);
    return status;
}

/* What a step has to be worse than to go. */
typedef struct bar {
    bool known;
    double score;
    int64_t step; /* that has this score */
} bar;

/* That of `best`; where it has none, the best of the scores that there are. */
static bar read_bar(const char *folder, const tg_state_list *list)
{
    bar b = {.step = tg_state_linked_step(folder, "best"), .score = NAN};
    double score;
    b.known = read_score(folder, b.step, &b.score);
    if (!b.known || !isnan(b.score))
        return b;
    for (size_t i = list->count; i-- > 0;)
        if (read_score(folder, list->steps[i], &score) && tg_state_is_better(score, b.score))
            b = (bar){true, score, list->steps[i]};
    return b;
}

/* Without a readable best there is nothing to be worse than: only what has no score may go. */
static bool may_go(const char *folder, int64_t step, const bar *b)
{
    double score;
    if (step == b->step || !read_score(folder, step, &score))
        return false;
    if (isnan(score))
        return true;
    return b->known && !tg_state_is_better(score, b->score);
}

tg_status tg_state_rotate(const char *folder, size_t keep)
{
    tg_state_list list;
    TG_TRY(tg_state_list_read(folder, &list));
    int64_t last = tg_state_linked_step(folder, "last");
    int64_t best = tg_state_linked_step(folder, "best");
    bar b = read_bar(folder, &list);
    tg_status status = TG_OK;
    for (size_t i = keep > 0 ? keep : 1; i < list.count && status == TG_OK; i++) {
        int64_t step = list.steps[i];
        if (step != last && step != best && may_go(folder, step, &b))
            status = remove_step(folder, step);
    }
    tg_state_list_done(&list);
    return status;
}
