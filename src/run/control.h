/* control.h - control.json: what somebody asks of a job while it runs.
 *
 *   {"monitor_interval_ms":1000,"trace_steps":5,"trace_request":2,"stop":false}
 *
 * Written   whole, aside and renamed, by commands and programs of the same user; several at once wait for one another
 *           (flock on the run directory). Keys that a reader does not know are passed over, those that are missing ask for
 *           nothing.
 * Trace     trace_request counts the wishes: a number that is new is a new one, for trace_steps steps.
 * Followed  a job looks at the file's identity (tg_control_poll), which costs one stat, and reads it when that changed. One
 *           that begins removes what an earlier one was asked.
 *
 * Errors    TG_ERROR_INPUT for what is no such file; TG_ERROR_MACHINE for the disk. Memory none. Threads: one at a time per
 *           follower.
 */
#ifndef TG_RUN_CONTROL_H
#define TG_RUN_CONTROL_H

#include "base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tg_control {
    int64_t monitor_interval_ms; /* 0: off; -1: as the job was started */
    int64_t trace_steps, trace_request;
    bool stop;
} tg_control;

/* Nothing is asked. */
tg_control tg_control_none(void);
/* tg_control_none where there is no file. */
tg_status tg_control_read(const char *run_path, tg_control *out) TG_MUST_CHECK;
/* Reads, lets `change` change it, and writes. TG_ERROR_INPUT where run_path is no folder. */
typedef void (*tg_control_change)(void *user, tg_control *control);
tg_status tg_control_update(const char *run_path, tg_control_change change,
                            void *user) TG_MUST_CHECK;
/* Absent is fine. */
tg_status tg_control_remove(const char *run_path) TG_MUST_CHECK;

typedef struct tg_control_follower {
    char path[PATH_MAX];
    uint64_t identity; /* of the file as it was seen last; 0: there was none */
} tg_control_follower;

/* What is there now is known already. */
void tg_control_follow(const char *run_path, tg_control_follower *out);
/* True when something new is asked, which *out then is; a file that cannot be read asks for nothing (until it changes). */
bool tg_control_poll(tg_control_follower *follower, tg_control *out);

#endif
