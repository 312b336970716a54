/* Who holds a lock, without taking one: a lock of this process, none, lists as other systems write them. */
#include "support/check.h"

#include "os/file.h"
#include "os/lock_held.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *lock, *list;

static void write_list(const char *format)
{
    struct stat st;
    char text[512];
    assert_int_equal(stat(lock, &st), 0);
    snprintf(text, sizeof text, "1: POSIX  ADVISORY  WRITE 1 08:01:77 0 EOF\n%s", "");
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, format, (unsigned long long)st.st_ino);
    assert_ok(tg_file_write(list, text, strlen(text)));
}

static void lists_are_read(void **state)
{
    (void)state;
    write_list("2: FLOCK  ADVISORY  WRITE 12 00:2d:%llu 0 EOF\n");
    assert_int_equal(tg_lock_is_held(lock, list), TG_LOCK_HELD);
    write_list("2: FLOCK  ADVISORY  WRITE 12 00:2d:1%llu 0 EOF\n");
    assert_int_equal(tg_lock_is_held(lock, list), TG_LOCK_FREE);
    write_list("2: -> FLOCK  ADVISORY  WRITE 12 00:2d:%llu 0 EOF\n"); /* waits for it */
    assert_int_equal(tg_lock_is_held(lock, list), TG_LOCK_FREE);
    write_list("2: POSIX  ADVISORY  WRITE 12 00:2d:%llu 0 EOF\n");
    assert_int_equal(tg_lock_is_held(lock, list), TG_LOCK_FREE);
    write_list("2: FLOCK %llu\n\n:\n");
    assert_int_equal(tg_lock_is_held(lock, list), TG_LOCK_FREE);
    assert_int_equal(tg_lock_is_held("/nowhere", list), TG_LOCK_UNKNOWN);
    assert_int_equal(tg_lock_is_held(lock, "/nowhere"), TG_LOCK_UNKNOWN);
}

static void a_lock_of_ours_is_held(void **state)
{
    (void)state;
    if (access("/proc/locks", R_OK) != 0)
        skip();
    assert_int_equal(tg_lock_is_held(lock, "/proc/locks"), TG_LOCK_FREE);
    const int fd = open(lock, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(tg_lock_is_held(lock, "/proc/locks"), TG_LOCK_HELD);
    close(fd);
    assert_int_equal(tg_lock_is_held(lock, "/proc/locks"), TG_LOCK_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(a_lock_of_ours_is_held),
    };
    lock = tg_path_join(tg_test_temp_dir(), "lock");
    list = tg_path_join(tg_test_temp_dir(), "list");
    if (tg_file_write(lock, "1\n", 2) < 0)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(lock);
    free(list);
    return failed;
}
