#include "os/child.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LOOK_EVERY_NS 2000000
#define LOWEST 19
#define LAST_WAIT_S 1.0

/* A pipe that holds the input; the reading end, or /dev/null; -1 with errno. */
static int open_input(const char *input, size_t bytes)
{
    int ends[2];
    if (!input)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (bytes > TG_CHILD_INPUT_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    const bool whole = write(ends[1], input, bytes) == (ssize_t)bytes;
    close(ends[1]);
    if (!whole) {
        close(ends[0]);
        errno = EPIPE;
        return -1;
    }
    return ends[0];
}

static int prepare_files(posix_spawn_file_actions_t *files, int input)
{
    int error = posix_spawn_file_actions_adddup2(files, input, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(files, 1, 2);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(files, 3);
    return error;
}

/* What this program ignores or blocks, the other one does not. */
static int prepare_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error)
        error = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    return error;
}

/* An errno. */
static int spawn(pid_t *out, const char *program, const char *const *argv, int input)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = prepare_files(&files, input);
        if (!error)
            error = prepare_attributes(&attributes);
        if (!error)
            error = posix_spawnp(out, program, &files, &attributes, (char *const *)argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

tg_status tg_child_start(tg_child *child, const char *program, const char *const *argv,
                         const char *input, size_t input_bytes)
{
    pid_t pid;
    const int fd = open_input(input, input_bytes);
    const int error = fd < 0 ? errno : spawn(&pid, program, argv, fd);
    if (fd >= 0)
        close(fd);
    if (error)
        return tg_fail(TG_ERROR_MACHINE, "cannot start %s: %s", program, strerrordesc_np(error));
    (void)setpriority(PRIO_PROCESS, (id_t)pid, LOWEST);
    child->pid = pid;
    child->begin_ns = tg_clock_ns();
    return TG_OK;
}

bool tg_child_poll(tg_child *child)
{
    int status;
    if (!child->pid)
        return false;
    const pid_t ended = waitpid((pid_t)child->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    child->pid = 0;
    child->exit_code = ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    child->seconds = tg_clock_seconds(tg_clock_ns() - child->begin_ns);
    return true;
}

/* Looks until it has ended, or so long. */
static bool await_end(tg_child *child, double seconds)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
    const int64_t begin = tg_clock_ns();
    while (!tg_child_poll(child)) {
        if (tg_clock_seconds(tg_clock_ns() - begin) >= seconds)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

bool tg_child_finish(tg_child *child, double seconds)
{
    if (!child->pid)
        return false;
    if (await_end(child, seconds))
        return true;
    kill((pid_t)child->pid, SIGKILL);
    return await_end(child, LAST_WAIT_S); /* one that waits for a disk ends when that answers */
}
