/* train_session.h - what train and distill write beside the records of the job: the run's directory and lock, each
 * rank's log, job.yaml, run.json, and how it ended.
 *
 * States    open -> { begin (first rank) or note_beginning (others) -> ... } -> close
 * Order     where an earlier run left its records they stay as they are until `begin`: a start that fails before
 *           leaves a finished run finished.
 * Ranks     the first one writes for all; another one writes how the run ended only where the first is gone, and had
 *           begun.
 * Errors    those of run/run_dir.h; a failure of closing is logged, never returned: the job's own counts.
 * Threads   the caller's one.
 */
#ifndef TG_CLI_TRAIN_SESSION_H
#define TG_CLI_TRAIN_SESSION_H

#include "cli/command.h"
#include "cli/observer.h"
#include "cli/rank_cores.h"
#include "os/clock.h"
#include "report/dashboards.h"
#include "run/run_dir.h"
#include "run/run_info.h"
#include "run/run_log.h"
#include "train/job.h"

/* The first three are borrowed and set by the caller, the rest is zero before open. */
typedef struct tg_train_session {
    const tg_invocation *invocation;
    const tg_train_options *options;
    const tg_rank_cores *cores;
    tg_run_dir dir;
    tg_run_log log;
    tg_run_info info;
    tg_run_pair libraries[1], kernels[4];
    tg_run_memory_row memory[TG_MEMORY_ROWS];
    char start[TG_CLOCK_ISO_BYTES], library[TG_DEV_LIBRARY_BYTES];
    tg_wall wall; /* of the first rank; the job opens it */
    bool opened, logging;
    bool begun; /* the records in the folder are this run's, as ranks other than the first know */
    int rank;
    tg_dashboards dashboards;
    bool showing;         /* the dashboards are open */
    tg_observer observer; /* first rank */
    char *events;         /* folder of TensorBoard's files */
} tg_train_session;

/* The first rank opens the run's directory `path`, then the others join; all call it. */
tg_status tg_train_session_open(tg_train_session *session, const char *path) TG_MUST_CHECK;
/* Writes how it ended: run.json, and `failure` when it failed. The message recorded last is the reason, and stays
 * recorded when `status` is an error. */
void tg_train_session_close(tg_train_session *session, tg_status status);

/* For a tg_train_watch; user: the tg_train_session. */

/* opened, on the first rank: from here on the folder's records are this run's. */
tg_status tg_train_session_begin(void *user) TG_MUST_CHECK;
/* opened, on the others. */
tg_status tg_train_session_note_beginning(void *user) TG_MUST_CHECK;
/* subject, and evaluation of the teacher: for run.json, which memory writes next, or the end. */
void tg_train_session_keep_subject(void *user, const tg_run_subject *subject);
void tg_train_session_keep_teacher(tg_train_session *session, const tg_evaluation *evaluation);
/* memory: run.json as it is known from here on; that it could not be written is a warning. */
void tg_train_session_keep_memory(void *user, const tg_memory_report *report);
/* workers: the same. */
void tg_train_session_keep_workers(void *user, int count);
/* step and evaluating, on the first rank: dashboards, from the first step of this process on (0: none new). */
void tg_train_session_show(tg_train_session *session, int64_t step);
/* present: TG_ERROR_MACHINE when the folder is no longer this run's. */
tg_status tg_train_session_present(void *user) TG_MUST_CHECK;

#endif
