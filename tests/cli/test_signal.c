/* Stop requests: seen once asked for, repeated ones ignored at first and obeyed after 3 s. */
#include "support/check.h"

#include "cli/signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void asks_to_stop(void **state)
{
    (void)state;
    assert_int_equal(tg_signal_fd(), -1);
    assert_ok(tg_signal_install());
    struct pollfd poll_fd = {.fd = tg_signal_fd(), .events = POLLIN};
    const int signals[] = {SIGINT, SIGTERM, SIGUSR1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_signal_stop(), 0);
        assert_int_equal(poll(&poll_fd, 1, 0), 0);
        raise(signals[i]);
        raise(SIGTERM); /* within 3 s: noted and no more */
        assert_int_equal(tg_signal_stop(), signals[i]);
        assert_int_equal(poll(&poll_fd, 1, 0), 1);
        tg_signal_clear();
    }
}

/* One child gets SIGTERM twice 3.1 s apart and dies of it; one gets SIGUSR1 and then SIGTERM and
 * lives. */
static void second_request_leaves_at_once(void **state)
{
    (void)state;
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            raise(i ? SIGUSR1 : SIGTERM);
            usleep(3100000);
            raise(SIGTERM);
            _exit(7);
        }
    }
    int status;
    waitpid(children[0], &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    waitpid(children[1], &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* A shell starts a job in the background with SIGINT ignored, nohup with SIGHUP: they stay ignored. */
static void ignored_signals_stay_ignored(void **state)
{
    (void)state;
    const int signals[] = {SIGINT, SIGHUP};
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            signal(signals[i], SIG_IGN);
            if (tg_signal_install() != TG_OK)
                _exit(99);
            raise(signals[i]);
            int stopped_by = tg_signal_stop();
            raise(SIGTERM);
            _exit(stopped_by == 0 && tg_signal_stop() == SIGTERM ? 0 : 1);
        }
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(asks_to_stop),
                                       cmocka_unit_test(second_request_leaves_at_once),
                                       cmocka_unit_test(ignored_signals_stay_ignored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
