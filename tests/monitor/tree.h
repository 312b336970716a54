/* tree.h - copies of /proc and /sys below a folder of the test's own. */
#ifndef TG_TESTS_MONITOR_TREE_H
#define TG_TESTS_MONITOR_TREE_H

#include "support/check.h"

#include "os/file.h"
#include "os/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NEAR(got, want) tree_near((double)(got), (double)(want), __FILE__, __LINE__)
#define UNKNOWN(value) assert_true(isnan((double)(value)))

static inline void tree_near(double got, double want, const char *file, int line)
{
    if (fabs(got - want) <= 1e-6 * (1 + fabs(want)) || got == want)
        return;
    print_error("%.9g instead of %.9g\n", got, want);
    _fail(file, line);
}

static char tree_root[4200];

static inline void tree_begin(const char *name)
{
    snprintf(tree_root, sizeof tree_root, "%s/%s", tg_test_temp_dir(), name);
}

/* In place, as the kernel does it: files that are open see the new text. */
static inline void tree_put(const char *path, const char *text)
{
    char full[8500];
    snprintf(full, sizeof full, "%s%s", tree_root, path);
    *strrchr(full, '/') = '\0';
    assert_ok(tg_folder_make(full));
    snprintf(full, sizeof full, "%s%s", tree_root, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void tree_remove(const char *path)
{
    char full[8500];
    snprintf(full, sizeof full, "%s%s", tree_root, path);
    assert_ok(tg_tree_remove(full));
}

#endif
