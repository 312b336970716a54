/* run_dir.h - the run directory: everything that one job leaves behind, and nothing else.
 *
 * Layout      job.yaml  run.json  metrics.jsonl  failure  log/rank-N.log  system/  trace/
 *             checkpoints/  model/  findings.json  report.html  (docs/FORMATS.md)
 * One job     a job holds flock() on the file `lock` in it while it lives; a second job for the
 * same directory is refused with the first one's process id. Left-overs  temporaries of killed
 * writers are removed when a job opens the directory. Errors      TG_ERROR_USAGE when another job
 * runs there, or when it would lie in a model folder or among the checkpoints of a run; TG_ERROR_MACHINE for the disk. Memory      the struct owns its path. Threads: one at
 * a time.
 */
#ifndef TG_RUN_RUN_DIR_H
#define TG_RUN_RUN_DIR_H

#include "base/status.h"

#include <stddef.h>

typedef struct tg_run_dir {
    char *path;
    int lock_fd;
} tg_run_dir;

/* Makes the directory and its folders (those that exist are kept), takes the lock, cleans. */
tg_status tg_run_dir_open(const char *path, tg_run_dir *out) TG_MUST_CHECK;
/* The directory that the first rank of the same job has opened: neither lock nor cleaning. A rank of a machine
 * that does not see it gets one of its own, for its log. */
tg_status tg_run_dir_join(const char *path, tg_run_dir *out) TG_MUST_CHECK;
/* Gives the lock back. */
void tg_run_dir_close(tg_run_dir *dir);

/* Whether PATH is still the directory that was opened: TG_OK; TG_END when nothing is there, or nothing with
 * a lock; TG_ERROR_MACHINE when another one has taken its name. */
tg_status tg_run_dir_check(const tg_run_dir *dir) TG_MUST_CHECK;

/* "PATH/name", from malloc; NULL when memory is short. */
char *tg_run_dir_path(const tg_run_dir *dir, const char *name);

/* job.yaml: every option as resolved (tg_options_print). */
tg_status tg_run_dir_write_job(const tg_run_dir *dir, const char *yaml,
                               size_t length) TG_MUST_CHECK;
/* failure: the reason in one line, then the last log lines. Removed by a job that starts anew. */
tg_status tg_run_dir_write_failure(const tg_run_dir *dir, const char *reason,
                                   const char *last_lines) TG_MUST_CHECK;
/* For other ranks than the first, when that one is gone: the same, unless there is one already (TG_END), so
 * that of several that try at once one gets TG_OK. */
tg_status tg_run_dir_add_failure(const tg_run_dir *dir, const char *reason,
                                 const char *last_lines) TG_MUST_CHECK;
tg_status tg_run_dir_remove_failure(const tg_run_dir *dir) TG_MUST_CHECK;

#endif
