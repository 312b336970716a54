#include "cli/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Signals are one per process, so is this. */
static atomic_int stop_signal;
static _Atomic int64_t first_ns; /* of the first SIGINT or SIGTERM; 0 none */
static int pipe_fds[2] = {-1, -1};

#define LEAVE_AFTER_NS INT64_C(3000000000)

static void handle(int number)
{
    int saved = errno;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* async-signal-safe */
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    int64_t first = atomic_load(&first_ns);
    int none = 0;
    if (number != SIGUSR1 && first && now - first >= LEAVE_AFTER_NS) {
        signal(number, SIG_DFL);
        raise(number); /* delivered when this handler returns */
    }
    if (number != SIGUSR1 && !first)
        atomic_store(&first_ns, now);
    if (atomic_compare_exchange_strong(&stop_signal, &none, number))
        (void)!write(pipe_fds[1], "", 1);
    errno = saved;
}

/* What the process was started with ignored stays so: SIGHUP by nohup, SIGINT by a shell that starts
 * a job in the background. */
static void catch_unless_ignored(int number, const struct sigaction *action)
{
    struct sigaction inherited;
    sigaction(number, NULL, &inherited);
    if (inherited.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

tg_status tg_signal_install(void)
{
    if (pipe_fds[0] < 0 && pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return tg_fail(TG_ERROR_MACHINE, "cannot make a pipe for signals: %s",
                       strerrordesc_np(errno));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    catch_unless_ignored(SIGINT, &action);
    catch_unless_ignored(SIGHUP, &action);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes (ulimit -f) fails the write instead */
    return TG_OK;
}

int tg_signal_stop(void)
{
    return atomic_load(&stop_signal);
}

void tg_signal_adopt(int number)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&stop_signal, &none, number))
        (void)!write(pipe_fds[1], "", 1);
}

int tg_signal_exit_code(void)
{
    const int number = tg_signal_stop();
    return number == 0 ? 0 : 128 + (number == SIGINT ? SIGINT : SIGTERM);
}

int tg_signal_fd(void)
{
    return pipe_fds[0];
}

void tg_signal_clear(void)
{
    char byte;
    while (pipe_fds[0] >= 0 && read(pipe_fds[0], &byte, 1) == 1)
        continue;
    atomic_store(&stop_signal, 0);
    atomic_store(&first_ns, 0);
}
