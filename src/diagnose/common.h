/* common.h - what several rules of a theme share: small questions to a history, and marks on a finding. */
#ifndef TG_DIAGNOSE_COMMON_H
#define TG_DIAGNOSE_COMMON_H

#include "diagnose/finding.h"
#include "diagnose/use.h"

#include <stdbool.h>

/* What rules say that need more steps than there are. */
#define TG_LACKS_STEPS "20 steps beside the first (metrics.jsonl)"
#define TG_LACKS_ROLES "times of the job's threads (system/)"

/* The finding is of these steps, and of their time. */
void tg_common_mark(tg_finding *finding, const tg_use_steps *steps);

/* Whether an option of the job has this value. */
bool tg_common_option_is(const tg_history *history, const char *name, const char *value);

/* An object of run.json by its keys ("preprocess.student"); false: not there, or null. */
bool tg_common_info_object(const tg_history *history, const char *path, tg_json_node *out);

/* How often the longest tenth of a value lies above its shortest tenth, over the steps that `use` is of: the 95th
 * percentile over the 5th; NaN: too few. `offset`: of a double in tg_step_record. */
double tg_common_swing(const tg_history *history, const tg_use_steps *use, size_t offset);

/* Samples of the machine that a rank ran on; NULL: none. */
const tg_system_host *tg_common_host_of_rank(const tg_history *history, int rank);

/* "1.31 s", "12.4 ms": of a step. */
enum { TG_COMMON_SECONDS = 32 };
const char *tg_common_seconds(double seconds, char out[TG_COMMON_SECONDS]);
/* "1.2 GiB", "35 MiB" */
const char *tg_common_bytes(double bytes, char out[TG_COMMON_SECONDS]);

/* Steps of computing alone, teacher included. */
double tg_common_compute(const tg_use_steps *steps);

#endif
