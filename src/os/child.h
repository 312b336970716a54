/* child.h - one program started beside this one, looked after without ever being waited for longer than asked.
 *
 * Started with posix_spawn, which copies no memory (memory that a network card has registered stays with the parent), in a
 * process group of its own (a terminal's Ctrl-C is not for it), at the lowest priority, with no descriptor of the
 * parent's but the three standard ones: input from `input` or nowhere, output and errors to nowhere. Signals as
 * a program finds them at its start.
 *
 * States  zeroed or done -> start -> poll ... -> ended. Errors TG_ERROR_MACHINE: the program cannot be started.
 * Threads one at a time. Memory none.
 */
#ifndef TG_OS_CHILD_H
#define TG_OS_CHILD_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that `input` may have: what a pipe takes without a reader. */
enum { TG_CHILD_INPUT_MAX = 32768 };

typedef struct tg_child {
    int64_t pid; /* 0: none runs */
    int64_t begin_ns;
    int exit_code;  /* of the one that ended last; -1: by a signal */
    double seconds; /* that it ran */
} tg_child;

/* program: a path, or a name that PATH has. argv: [n + 1], ended by NULL. input: NULL, or bytes for its standard input. */
tg_status tg_child_start(tg_child *child, const char *program, const char *const *argv,
                         const char *input, size_t input_bytes) TG_MUST_CHECK;
/* True when it has just ended (once), with exit_code and seconds set; costs a system call while it runs. */
bool tg_child_poll(tg_child *child);
/* Waits for its end, at most so long; then ends it. True as poll. */
bool tg_child_finish(tg_child *child, double seconds);

#endif
