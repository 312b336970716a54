/* Programs beside this one: what they inherit, how they end, and that nobody waits for them longer than asked. */
#include "support/check.h"

#include "os/child.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a shell's words to their end; what they wrote to $1, a file. */
static char *run_shell(const char *words, const char *input, int *out_code)
{
    char path[4096];
    char *text = NULL;
    size_t length;
    tg_child child = {0};
    snprintf(path, sizeof path, "%s/said", tg_test_temp_dir());
    const char *const argv[] = {"sh", "-c", words, "sh", path, NULL};
    assert_ok(tg_child_start(&child, "sh", argv, input, input ? strlen(input) : 0));
    assert_true(tg_child_finish(&child, 10));
    assert_false(tg_child_poll(&child)); /* its end is told once */
    *out_code = child.exit_code;
    assert_ok(tg_file_read(path, 1 << 20, &text, &length));
    return text;
}

static void test_code_and_input(void **state)
{
    int code;
    (void)state;
    char *said = run_shell("cat >\"$1\"; echo lost; echo lost >&2; exit 3", "a \"b\"\n", &code);
    assert_string_equal(said, "a \"b\"\n");
    assert_int_equal(code, 3);
    free(said);
}

/* A descriptor without close-on-exec, as a library may have left one, a lock among them. */
static void test_descriptors(void **state)
{
    int code;
    (void)state;
    const int fd = open("/dev/zero", O_RDONLY);
    assert_true(fd > 2);
    char *said = run_shell("ls -l /proc/self/fd | grep -c zero >\"$1\"; exit 0", NULL, &code);
    assert_string_equal(said, "0\n");
    free(said);
    close(fd);
}

/* Ignored and blocked signals are this program's own affair; so is the terminal's Ctrl-C. */
static void test_surroundings(void **state)
{
    int code;
    long nice_value, group;
    sigset_t set, before;
    (void)state;
    void (*const old)(int) = signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    char *said = run_shell("sleep 0.05; cut -d' ' -f5,19 /proc/$$/stat >\"$1\"; "
                           "grep -E '^Sig(Blk|Ign)' /proc/self/status >>\"$1\"",
                           NULL, &code);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, old);
    assert_int_equal(sscanf(said, "%ld %ld", &group, &nice_value), 2);
    assert_int_equal(nice_value, 19);
    assert_true(group != getpgrp());
    assert_non_null(strstr(said, "SigBlk:\t0000000000000000"));
    const char *ignored = strstr(said, "SigIgn:\t");
    assert_non_null(ignored); /* the C library keeps two of its own ignored there, 32 and 33 */
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & 0x7fffffff, 0);
    free(said);
}

static void test_not_there(void **state)
{
    static const char *const ARGV[] = {"no-program-has-this-name", NULL};
    tg_child child = {0};
    (void)state;
    assert_error(tg_child_start(&child, ARGV[0], ARGV, NULL, 0), TG_ERROR_MACHINE, ARGV[0]);
    assert_int_equal(child.pid, 0);
    assert_false(tg_child_poll(&child));
    assert_false(tg_child_finish(&child, 1));
}

/* One that does not end is ended. */
static void test_patience(void **state)
{
    static const char *const ARGV[] = {"sleep", "60", NULL};
    tg_child child = {0};
    (void)state;
    const int64_t begin = tg_clock_ns();
    assert_ok(tg_child_start(&child, ARGV[0], ARGV, NULL, 0));
    assert_false(tg_child_poll(&child));
    const int64_t pid = child.pid;
    assert_true(tg_child_finish(&child, 0.05));
    assert_int_equal(child.exit_code, -1);
    assert_true(tg_clock_seconds(tg_clock_ns() - begin) < 5);
    assert_true(kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

static void test_too_much_input(void **state)
{
    static const char *const ARGV[] = {"cat", NULL};
    tg_child child = {0};
    char *input = calloc(1, TG_CHILD_INPUT_MAX + 1);
    (void)state;
    assert_non_null(input);
    assert_error(tg_child_start(&child, ARGV[0], ARGV, input, TG_CHILD_INPUT_MAX + 1),
                 TG_ERROR_MACHINE, "cat");
    free(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_and_input), cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_surroundings),   cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_patience),       cmocka_unit_test(test_too_much_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
