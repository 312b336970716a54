/* state.h - training checkpoints: everything that a job needs to go on as if it had not stopped.
 *
 * Layout      FOLDER/step-N/   model/             a model folder (model_folder.h)
 *                              state.safetensors  the buffers, one tensor per BUFFER/PARAMETER
 *                              state.json         steps, score, the fields
 *                              manifest.json      name, size and CRC-32 of each of the above
 *             FOLDER/last, FOLDER/best            links to step folders
 *             Saving: state_save.h.
 * Whole       a step folder is written aside with its manifest last, forced to disk and renamed in
 *             (os/folder.h); links are replaced by rename. A crash at any moment leaves the older
 *             checkpoints as they were. A folder whose files differ from its manifest is no
 *             checkpoint: loading refuses it and names the file, searching passes over it.
 * Pieces      tensors are stored whole and by name, so their place in a flat buffer, the padding and
 *             the number of ranks that hold pieces are no part of the format: a process writes and
 *             reads whatever pieces of a buffer it has.
 * Errors      TG_ERROR_MACHINE for the disk; TG_ERROR_INPUT for damaged, incomplete or unfitting ones.
 * Memory      what is read goes into the caller's buffers. Threads: reentrant.
 */
#ifndef TG_CKPT_STATE_H
#define TG_CKPT_STATE_H

#include "ckpt/model_folder.h"

typedef enum tg_state_kind {
    TG_STATE_I64,
    TG_STATE_U64,
    TG_STATE_DOUBLE,
    TG_STATE_STRING
} tg_state_kind;

/* A value that is no tensor, in the caller's storage: int64_t, uint64_t, double (NaN and infinities
 * included) or a char array of `size` bytes. */
typedef struct tg_state_field {
    const char *key;
    tg_state_kind kind;
    void *value;
    size_t size; /* of a string's array, its NUL included; else unused */
} tg_state_field;

/* Elements [offset, offset + count) of a flat buffer. */
typedef struct tg_state_piece {
    size_t offset, count;
    float *data; /* [count] */
} tg_state_piece;

/* One flat buffer (parameters, moments, weight average), laid out by `table`, and what this process has of
 * it: all of it in one piece, or some pieces. */
typedef struct tg_state_buffer {
    const char *name; /* no slash */
    const tg_param_table *table;
    const tg_state_piece *pieces;
    size_t piece_count;
} tg_state_buffer;

/* All that is saved, and where what is loaded goes. */
typedef struct tg_state {
    const tg_state_buffer *buffers;
    size_t buffer_count;
    const tg_state_field *fields;
    size_t field_count;
} tg_state;

/* NaN is worse than everything; of equals the older one stays. */
bool tg_state_is_better(double score, double best);

/* Path (malloc) of the newest whole checkpoint in `folder`; those passed over are named with the
 * reason in the log. TG_END and *out untouched when there is no step folder; TG_ERROR_INPUT when there
 * are some and none is whole; TG_ERROR_MACHINE when one could not be read, which may be whole. Left-overs of killed writers are
 * removed. */
tg_status tg_state_find_last(const char *folder, char **out_path) TG_MUST_CHECK;

/* Whether a step folder (or what a link leads to) is whole: reads all of it. */
tg_status tg_state_check(const char *path) TG_MUST_CHECK;

/* Waits for all that tg_state_load reads of a checkpoint which another host has made or checked: a network file
 * system may show it late, each file for itself. TG_ERROR_INPUT with the name of what is not there after
 * TG_FILE_PATIENCE_S (os/file.h). */
tg_status tg_state_await(const char *path) TG_MUST_CHECK;

/* Reads one that was checked. Every buffer and field asked for must be there with its shapes, and no
 * other buffer: a state is never restored in part. Fields and pieces are undefined after an error.
 * *out_step and *out_score, what the record says, may be NULL. */
tg_status tg_state_load(const char *path, const tg_state *state, int64_t *out_step,
                        double *out_score) TG_MUST_CHECK;

#endif
