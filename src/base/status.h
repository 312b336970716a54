/* status.h - errors as values: one status type and one message slot per thread.
 *
 * A function that can fail for reasons of the outside world returns a tg_status. The first detector
 * calls tg_fail() with what, where, why and (when known) what to do; callers only propagate with
 * TG_TRY, or add the name of the thing they were working on with tg_fail_prefix().
 *
 * The numeric values are the negated exit codes of the program (docs: contract of exit codes):
 *   1 failed, 2 wrong usage, 3 bad input, 4 the machine (memory, disk, network), 5 another rank.
 * Positive values are notes, not errors.
 *
 * Threads: every thread has its own slot. A worker that fails copies its message with
 * tg_error_message() into storage of its own and the reporting thread re-records it with tg_fail().
 * Memory: allocates nothing; messages longer than TG_ERROR_BYTES-1 are cut at a character boundary.
 */
#ifndef TG_BASE_STATUS_H
#define TG_BASE_STATUS_H

typedef enum tg_status {
    TG_OK = 0,
    TG_END = 1,              /* note: no more items */
    TG_AGAIN = 2,            /* note: nothing yet, ask again */
    TG_ERROR_FAILED = -1,    /* our own failure that fits no other class */
    TG_ERROR_USAGE = -2,     /* the caller or the command line asked for something impossible */
    TG_ERROR_INPUT = -3,     /* a photo, model, data set, table or job file is bad */
    TG_ERROR_MACHINE = -4,   /* memory, disk, network, operating system */
    TG_ERROR_PEER = -5,      /* another rank failed */
    TG_ERROR_STOPPED = -6,   /* a stop was requested (signal); state was saved where possible */
} tg_status;

#define TG_ERROR_BYTES 4096

#if defined(__GNUC__)
#define TG_MUST_CHECK __attribute__((warn_unused_result))
#define TG_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define TG_MUST_CHECK
#define TG_PRINTF(fmt, first)
#endif

/* Records the message in this thread's slot (replacing what was there) and returns `status`. */
tg_status tg_fail(tg_status status, const char *format, ...) TG_PRINTF(2, 3);

/* Puts "text: " before the recorded message, e.g. the path of a file whose bytes were refused.
 * Returns `status` unchanged so that it can be written `return tg_fail_prefix(s, "%s", path);`. */
tg_status tg_fail_prefix(tg_status status, const char *format, ...) TG_PRINTF(2, 3);

/* The message last recorded on this thread; "" when none. Valid until the next tg_fail here. */
const char *tg_error_message(void);

/* Empties this thread's slot. */
void tg_error_clear(void);

/* Exit code of the program for a status: 0 for TG_OK and notes, else 1..5 (STOPPED gives 1: the
 * command line turns it into 130 or 143 itself). */
int tg_status_exit_code(tg_status status);

/* Leaves the function with the status if it is an error (notes pass). */
#define TG_TRY(expr)                                                                               \
    do {                                                                                           \
        tg_status tg_try_status_ = (expr);                                                         \
        if (tg_try_status_ < 0)                                                                    \
            return tg_try_status_;                                                                 \
    } while (0)

/* Same, but jumps to a cleanup label; `status` must be a tg_status variable in scope. */
#define TG_TRY_GOTO(expr, label)                                                                   \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (status < 0)                                                                            \
            goto label;                                                                            \
    } while (0)

#endif
