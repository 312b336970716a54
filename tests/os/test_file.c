/* Files are read whole or refused, and replaced whole or not at all: also when the disk is full and
 * when the writer is killed at a random moment. */
#include "support/check.h"

#include "base/rng.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *in_temp(const char *name)
{
    static char paths[16][4200];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", tg_test_temp_dir(), name);
    return path;
}

static int temporaries(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strstr(entry->d_name, ".tg-") != NULL;
    closedir(dir);
    return n;
}

static void assert_content(const char *path, const char *text)
{
    char *bytes;
    size_t length;
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    assert_int_equal(length, strlen(text));
    assert_string_equal(bytes, text);
    free(bytes);
}

static void reads_and_replaces(void **state)
{
    (void)state;
    char *path = in_temp("a.txt"), *link = in_temp("link");
    assert_ok(tg_file_write(path, "one", 3));
    assert_content(path, "one");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(symlink("a.txt", link), 0);
    assert_ok(tg_file_write(link, "", 0)); /* through the link, keeping the permissions */
    assert_content(path, "");
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(temporaries(tg_test_temp_dir()), 0);
}

static void refuses_what_it_must_not_read(void **state)
{
    (void)state;
    char *bytes = NULL, *path = in_temp("ten");
    size_t length;
    assert_ok(tg_file_write(path, "0123456789", 10));
    assert_ok(tg_file_read(path, 10, &bytes, &length));
    free(bytes);
    bytes = NULL;
    assert_error(tg_file_read(path, 9, &bytes, &length), TG_ERROR_INPUT, "larger than the 9 bytes");
    assert_error(tg_file_read(in_temp("absent"), 9, &bytes, &length), TG_ERROR_INPUT, "absent");
    assert_error(tg_file_read(tg_test_temp_dir(), 9, &bytes, &length), TG_ERROR_INPUT,
                 "it is a folder");
    assert_int_equal(mkfifo(in_temp("pipe"), 0600), 0);
    assert_error(tg_file_read(in_temp("pipe"), 9, &bytes, &length), TG_ERROR_INPUT, "regular");
    assert_null(bytes);
    /* a file that says it is empty and is not */
    assert_ok(tg_file_read("/proc/self/status", 1 << 20, &bytes, &length));
    assert_true(length > 100);
    free(bytes);
    assert_error(tg_file_read("/proc/self/status", 50, &bytes, &length), TG_ERROR_INPUT, "larger");
}

static void says_why_it_cannot_write(void **state)
{
    (void)state;
    assert_error(tg_file_write(in_temp("no/such/folder"), "x", 1), TG_ERROR_MACHINE,
                 "No such file or directory");
}

/* A limit on the size of files stands for a full disk: writes fail in the middle. */
static void full_disk_keeps_the_old_file(void **state)
{
    (void)state;
    char *path = in_temp("full"), *big = calloc(1, 100000);
    assert_ok(tg_file_write(path, "old", 3));
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 50000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    tg_status status = tg_file_write(path, big, 100000);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_error(status, TG_ERROR_MACHINE, "cannot write");
    assert_content(path, "old");
    assert_int_equal(temporaries(tg_test_temp_dir()), 0);
    free(big);
}

static void folders_are_replaced_whole(void **state)
{
    (void)state;
    char *path = in_temp("model");
    for (int round = 0; round < 3; round++) {
        tg_new_folder folder;
        char inner[4300], text[8];
        assert_ok(tg_new_folder_open(path, &folder));
        snprintf(inner, sizeof inner, "%s/deep/er", folder.temp_path);
        assert_ok(tg_folder_make(inner));
        snprintf(inner, sizeof inner, "%s/deep/er/f", folder.temp_path);
        snprintf(text, sizeof text, "%d", round);
        assert_ok(tg_file_write(inner, text, 1));
        if (round == 1) {
            tg_new_folder_discard(&folder);
            tg_new_folder_discard(&folder);
            assert_content(in_temp("model/deep/er/f"), "0");
            continue;
        }
        assert_ok(tg_new_folder_commit(&folder));
        assert_content(in_temp("model/deep/er/f"), text);
    }
    assert_int_equal(temporaries(tg_test_temp_dir()), 0);
    assert_ok(tg_tree_remove(path));
    assert_false(tg_file_exists(path));
    assert_ok(tg_tree_remove(path));
}

static void removal_does_not_follow_links(void **state)
{
    (void)state;
    assert_ok(tg_folder_make(in_temp("outside")));
    assert_ok(tg_file_write(in_temp("outside/keep"), "k", 1));
    assert_ok(tg_folder_make(in_temp("tree")));
    assert_int_equal(symlink("../outside", in_temp("tree/link")), 0);
    assert_ok(tg_tree_remove(in_temp("tree")));
    assert_content(in_temp("outside/keep"), "k");
}

static void folder_make_meets_a_file(void **state)
{
    (void)state;
    assert_ok(tg_file_write(in_temp("plain"), "x", 1));
    assert_error(tg_folder_make(in_temp("plain")), TG_ERROR_USAGE, "Not a directory");
    assert_error(tg_folder_make(in_temp("plain/below")), TG_ERROR_USAGE, "Not a directory");
    assert_int_equal(symlink("nowhere/at/all", in_temp("dangling")), 0);
    assert_error(tg_folder_make(in_temp("dangling")), TG_ERROR_USAGE, "Not a directory");
    assert_error(tg_folder_make(""), TG_ERROR_MACHINE, "No such file or directory");
    assert_ok(tg_folder_make(in_temp("x/y/z")));
    assert_ok(tg_folder_make(in_temp("x/y/z/")));
}

enum { MAKERS = 8, ROUNDS = 50 };

/* Starts with the others when the pipe's other end is closed; exits with what making the folder gave. */
static pid_t start_maker(const int gate[2], const char *path)
{
    char byte;
    pid_t child = fork();
    if (child != 0)
        return child;
    close(gate[1]);
    (void)!read(gate[0], &byte, 1);
    tg_status status = tg_folder_make(path);
    if (status < 0)
        print_error("%s\n", tg_error_message());
    _exit(-status);
}

static pid_t start_remover(const char *path)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends with a test that fails */
    for (;; usleep(50))
        (void)!tg_tree_remove(path);
}

/* Eight processes make the same three new levels at once, fifty times, and fifty times more while another
 * one removes them all the time: nobody fails on what the others do. */
static void many_make_the_same_folders(void **state)
{
    (void)state;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        char top[4200], path[4300];
        int gate[2], code;
        pid_t makers[MAKERS];
        snprintf(top, sizeof top, "%s/round-%d", tg_test_temp_dir(), round);
        snprintf(path, sizeof path, "%s/b/c", top);
        pid_t remover = round < ROUNDS ? 0 : start_remover(top);
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < MAKERS; i++)
            makers[i] = start_maker(gate, path);
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < MAKERS; i++) {
            assert_int_equal(waitpid(makers[i], &code, 0), makers[i]);
            assert_int_equal(code, 0);
        }
        if (remover)
            kill(remover, SIGKILL);
        assert_true(remover ? waitpid(remover, &code, 0) == remover : tg_file_exists(path));
        assert_ok(tg_tree_remove(top));
    }
}

static void cleaning_spares_live_writers(void **state)
{
    (void)state;
    tg_new_file live;
    char *folder = in_temp("clean"), *path = in_temp("clean/f");
    assert_ok(tg_folder_make(folder));
    assert_ok(tg_new_file_open(path, &live));
    assert_ok(tg_new_file_write(&live, "x", 1));
    assert_ok(tg_file_write(in_temp("clean/.g.tg-new-99999-0"), "dead", 4));
    assert_ok(tg_folder_make(in_temp("clean/.m.tg-new-99999-1/sub")));
    assert_ok(tg_folder_make(in_temp("clean/.gone.tg-old-99999-2/sub")));
    assert_ok(tg_temp_clean(folder));
    assert_int_equal(temporaries(folder), 1);
    assert_true(tg_file_exists(in_temp("clean/gone/sub"))); /* put back */
    assert_ok(tg_new_file_commit(&live));
    assert_content(path, "x");
    assert_int_equal(temporaries(folder), 0);
    assert_ok(tg_temp_clean(in_temp("nowhere")));
}

enum { KILL_BYTES = 200000 };

/* Replaces the file and the folder once; false when that failed. */
static bool write_round(const char *file, const char *folder_path, unsigned round)
{
    static char bytes[KILL_BYTES];
    tg_new_folder folder;
    char inner[4300];
    memset(bytes, (int)('a' + round % 26), KILL_BYTES);
    if (tg_file_write(file, bytes, KILL_BYTES) < 0 || tg_new_folder_open(folder_path, &folder) < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        snprintf(inner, sizeof inner, "%s/%d", folder.temp_path, i);
        if (tg_file_write(inner, bytes, KILL_BYTES) < 0)
            return false;
    }
    return tg_new_folder_commit(&folder) == TG_OK;
}

_Noreturn static void write_until_killed(const char *file, const char *folder_path)
{
    unsigned round = 1;
    while (write_round(file, folder_path, round))
        round++;
    _exit(1);
}

/* The file is KILL_BYTES equal bytes; returns that byte. */
static char whole_file(const char *path)
{
    char *bytes;
    size_t length;
    assert_ok(tg_file_read(path, 1 << 20, &bytes, &length));
    assert_int_equal(length, KILL_BYTES);
    for (size_t i = 1; i < length; i++)
        if (bytes[i] != bytes[0])
            fail_msg("%s is mixed", path);
    char c = bytes[0];
    free(bytes);
    return c;
}

/* Kills a writer at 40 random moments within two rounds (fewer where the disk is slow): both the
 * file and the folder stay whole, and neither is ever lost. */
static void kill_at_any_moment(void **state)
{
    (void)state;
    char *folder = in_temp("kill"), file[4200], model[4200], inner[4300];
    assert_ok(tg_folder_make(folder));
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(model, sizeof model, "%s/model", folder);
    tg_rng rng = tg_rng_init(5, 0, 0, TG_RNG_TEST);
    int64_t start = tg_clock_ns();
    assert_true(write_round(file, model, 0));
    uint32_t two_rounds_us = (uint32_t)((tg_clock_ns() - start) / 500) + 2000;
    for (int i = 0; i < 40 && tg_clock_ns() - start < INT64_C(8000000000); i++) {
        pid_t child = fork();
        if (child == 0)
            write_until_killed(file, model);
        usleep((useconds_t)tg_rng_below(&rng, two_rounds_us));
        int status;
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        assert_true(WIFSIGNALED(status));
        assert_ok(tg_temp_clean(folder));
        assert_int_equal(temporaries(folder), 0);
        whole_file(file);
        snprintf(inner, sizeof inner, "%s/0", model);
        char first = whole_file(inner);
        snprintf(inner, sizeof inner, "%s/1", model);
        assert_int_equal(first, whole_file(inner)); /* never half old, half new */
    }
}

static void disk_free(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_ok(tg_disk_free_bytes(tg_test_temp_dir(), &bytes));
    assert_true(bytes > 0);
    assert_error(tg_disk_free_bytes(in_temp("absent"), &bytes), TG_ERROR_MACHINE, "absent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_replaces),
        cmocka_unit_test(refuses_what_it_must_not_read),
        cmocka_unit_test(says_why_it_cannot_write),
        cmocka_unit_test(full_disk_keeps_the_old_file),
        cmocka_unit_test(folders_are_replaced_whole),
        cmocka_unit_test(removal_does_not_follow_links),
        cmocka_unit_test(folder_make_meets_a_file),
        cmocka_unit_test(many_make_the_same_folders),
        cmocka_unit_test(cleaning_spares_live_writers),
        cmocka_unit_test(kill_at_any_moment),
        cmocka_unit_test(disk_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
