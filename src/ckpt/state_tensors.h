/* state_tensors.h - state.safetensors of a checkpoint: flat buffers as named tensors.
 *
 * Tensor BUFFER/PARAMETER holds the values of one entry of the buffer's table, F32, with its shape.
 * Errors  TG_ERROR_INPUT listing what is missing, unexpected or of another shape. Reentrant.
 */
#ifndef TG_CKPT_STATE_TENSORS_H
#define TG_CKPT_STATE_TENSORS_H

#include "ckpt/state.h"

tg_status tg_state_tensors_write(const char *folder, const tg_state *state) TG_MUST_CHECK;
/* Padding is zeroed. */
tg_status tg_state_tensors_read(const char *folder, const tg_state *state) TG_MUST_CHECK;

#endif
