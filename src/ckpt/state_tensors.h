/* state_tensors.h - flat buffers as the tensors of a .safetensors file.
 *
 * Tensor BUFFER/PARAMETER holds the values of one entry of the buffer's table, F32, with its shape, in
 * the order of buffers and tables; PARAMETER alone for a buffer without a name. Padding between
 * parameters is no part of the file. Several processes may write one file (ckpt/pieces.h), and read
 * any pieces of it.
 * Errors  TG_ERROR_INPUT listing what is missing, unexpected or of another shape; TG_ERROR_MACHINE for
 *         the disk. Memory: the header while it is made. Reentrant.
 */
#ifndef TG_CKPT_STATE_TENSORS_H
#define TG_CKPT_STATE_TENSORS_H

#include "ckpt/pieces.h"
#include "ckpt/safetensors.h"
#include "ckpt/state.h"

/* A file being written. */
typedef struct tg_state_tensors {
    const tg_state_buffer *buffers; /* borrowed; their pieces are not looked at */
    size_t count;
    uint64_t data_start;
    tg_pieces file;
} tg_state_tensors;

/* What is in the file: the same on all who write it. */
typedef struct tg_state_tensors_plan {
    const char *path;
    const tg_state_buffer *buffers;
    size_t count;
    const tg_safetensors_note *notes;
    size_t note_count;
} tg_state_tensors_plan;

/* first: makes the file and writes its header; else opens the one that another process has made. End
 * with tg_pieces_commit or tg_pieces_discard of `file`. */
tg_status tg_state_tensors_open(const tg_state_tensors_plan *plan, bool first,
                                tg_state_tensors *out) TG_MUST_CHECK;
/* What lies in the file of this piece of buffers[buffer]. */
tg_status tg_state_tensors_write(tg_state_tensors *tensors, size_t buffer,
                                 const tg_state_piece *piece) TG_MUST_CHECK;

/* Fills the pieces of state's buffers from `folder`; padding in them is zeroed. */
tg_status tg_state_tensors_read(const char *folder, const tg_state *state) TG_MUST_CHECK;

#define TG_STATE_TENSORS_FILE "state.safetensors"

#endif
