#include "support/check.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tg_assert_ok_at(tg_status status, const char *file, int line)
{
    if (status < 0) {
        print_error("status %d: %s\n", (int)status, tg_error_message());
        _fail(file, line);
    }
}

void tg_assert_error_at(tg_status status, tg_status expected, const char *part, const char *file,
                        int line)
{
    if (status != expected) {
        print_error("status %d, expected %d: %s\n", (int)status, (int)expected, tg_error_message());
        _fail(file, line);
    }
    if (part && !strstr(tg_error_message(), part)) {
        print_error("message \"%s\" does not contain \"%s\"\n", tg_error_message(), part);
        _fail(file, line);
    }
}

void tg_assert_close_at(const float *got, const float *want, size_t n, double atol, double rtol,
                        const char *what, const char *file, int line)
{
    double largest = 0, worst = -1;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        largest = fmax(largest, fabs((double)want[i]));
        if (!isfinite(got[i]) && isfinite(want[i]))
            d = INFINITY;
        if (d > worst) {
            worst = d;
            at = i;
        }
    }
    double limit = atol + rtol * largest;
    if (n && worst > limit) {
        print_error("%s: worst at %zu of %zu: got %.9g want %.9g, off by %.3g, limit %.3g\n", what,
                    at, n, (double)got[at], (double)want[at], worst, limit);
        _fail(file, line);
    }
}

const char *tg_test_source_dir(void)
{
    const char *dir = getenv("TAGINE_SOURCE_DIR");
    return dir ? dir : ".";
}

const char *tg_test_shared_dir(void)
{
    static char path[4096];
    const char *dir = getenv("TAGINE_SHARED_DIR");
    if (dir)
        snprintf(path, sizeof path, "%s", dir);
    else
        snprintf(path, sizeof path, "%s/../shared", tg_test_source_dir());
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? path : NULL;
}

static char temp_dir[4096];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_temp_dir(void)
{
    nftw(temp_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *tg_test_temp_dir(void)
{
    if (temp_dir[0])
        return temp_dir;
    const char *root = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/tagine-test-XXXXXX", root ? root : "/tmp");
    if (!mkdtemp(temp_dir)) {
        fprintf(stderr, "cannot make a temporary folder\n");
        exit(1);
    }
    atexit(remove_temp_dir);
    return temp_dir;
}

_Noreturn void tg_skip_program(const char *why)
{
    fprintf(stderr, "skipped: %s\n", why);
    exit(77);
}
