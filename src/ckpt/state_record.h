/* state_record.h - state.json of a checkpoint: step, score and the caller's fields.
 *
 * Format   {"version":1,"step":N,"score":S,"fields":{key:value,...}}. Numbers that JSON cannot hold
 *          are text: 64-bit unsigned ones always, "nan", "inf" and "-inf" among doubles.
 * Errors   TG_ERROR_INPUT with path and key. Reentrant.
 */
#ifndef TG_CKPT_STATE_RECORD_H
#define TG_CKPT_STATE_RECORD_H

#include "ckpt/state.h"

tg_status tg_state_record_write(const char *folder, int64_t step, double score,
                                const tg_state *state) TG_MUST_CHECK;
/* Fills the fields; every one must be there. */
tg_status tg_state_record_read(const char *folder, const tg_state *state, int64_t *out_step,
                               double *out_score) TG_MUST_CHECK;

#endif
