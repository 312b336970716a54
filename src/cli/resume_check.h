/* resume_check.h - what a run that goes on is told now, against what it was told before.
 *
 * Compares the options as resolved with the folder's job.yaml, and the command with its run.json. Another
 * command, teacher or distillation loss makes another training: TG_ERROR_USAGE. Other changes are named in a
 * warning each; those of the machine, of what is kept and of how long it goes on in none.
 */
#ifndef TG_CLI_RESUME_CHECK_H
#define TG_CLI_RESUME_CHECK_H

#include "cli/command.h"
#include "run/run_dir.h"

/* TG_OK as well where there is no record or no checkpoint to go on from. */
tg_status tg_resume_check(const tg_run_dir *dir, const tg_invocation *invocation) TG_MUST_CHECK;

#endif
