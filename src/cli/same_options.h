/* same_options.h - refuses ranks that were told different things, before anything is made. */
#ifndef TG_CLI_SAME_OPTIONS_H
#define TG_CLI_SAME_OPTIONS_H

#include "base/option.h"
#include "comm/comm.h"

/* Every rank of `comm` calls it with its options. Every option must be equal on all, whoever adds it, but
 * for
 *   - paths: machines may keep their files in other places; what lies there is compared by the job itself,
 *   - what changes no step: --threads, --workers, --cpu-isa (the job compares what comes of it), --quiet,
 *     --verbose, --json.
 * TG_ERROR_USAGE on every rank, naming the option, who differs, and both values. */
tg_status tg_same_options(tg_comm *comm, const tg_options *options) TG_MUST_CHECK;

#endif
