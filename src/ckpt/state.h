/* state.h - training checkpoints: everything that a job needs to go on as if it had not stopped.
 *
 * Layout      FOLDER/step-N/   model/             a model folder (model_folder.h)
 *                              state.safetensors  the buffers, one tensor per BUFFER/PARAMETER
 *                              state.json         steps, score, the fields
 *                              manifest.json      name, size and CRC-32 of each of the above
 *             FOLDER/last, FOLDER/best            links to step folders
 * Whole       a step folder is written aside with its manifest last, forced to disk and renamed in
 *             (os/folder.h); links are replaced by rename. A crash at any moment leaves the older
 *             checkpoints as they were. A folder whose files differ from its manifest is no
 *             checkpoint: loading refuses it and names the file, searching passes over it.
 * Shards      tensors are stored whole and by name, so their place in a flat buffer, the padding and
 *             the number of ranks that hold pieces are no part of the format.
 * Rotation    after a save: kept are the `keep` newest, what `last` and `best` lead to, everything
 *             with a better score than `best` (where that has none: the best of the scores), and
 *             everything whose score cannot be read.
 * Errors      TG_ERROR_MACHINE for the disk (a failed save leaves nothing behind and all older
 *             checkpoints untouched); TG_ERROR_INPUT for damaged, incomplete or unfitting ones.
 * Memory      what is read goes into the caller's buffers. Threads: one writer per FOLDER.
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

/* One flat buffer (parameters, moments, weight average), laid out by `table`. */
typedef struct tg_state_buffer {
    const char *name; /* no slash */
    const tg_param_table *table;
    float *data;
} tg_state_buffer;

/* All that is saved, and where what is loaded goes. */
typedef struct tg_state {
    const tg_state_buffer *buffers;
    size_t buffer_count;
    const tg_state_field *fields;
    size_t field_count;
} tg_state;

/* The model folder inside: for use, not for resuming (it may hold the weight average). */
typedef struct tg_state_model {
    const tg_model_info *info;
    const tg_param_table *table;
    const float *params;
    tg_naming naming;
} tg_state_model;

typedef struct tg_state_save_options {
    const char *folder; /* made when absent */
    int64_t step;       /* >= 0; an existing step-N is replaced */
    double score;       /* of this state, higher is better; NaN: not known */
    bool best;          /* `best` is to lead here (see tg_state_is_better) */
    size_t keep;        /* newest step folders to keep, at least 1 */
} tg_state_save_options;

tg_status tg_state_save(const tg_state_save_options *options, const tg_state_model *model,
                        const tg_state *state) TG_MUST_CHECK;

/* NaN is worse than everything; of equals the older one stays. */
bool tg_state_is_better(double score, double best);

/* Path (malloc) of the newest whole checkpoint in `folder`; those passed over are named with the
 * reason in the log. TG_END and *out untouched when there is no step folder; TG_ERROR_INPUT when there
 * are some and none is whole; TG_ERROR_MACHINE when one could not be read, which may be whole. Left-overs of killed writers are
 * removed. */
tg_status tg_state_find_last(const char *folder, char **out_path) TG_MUST_CHECK;

/* Reads a step folder (or a link to one) after checking all of it. Every buffer and field asked for
 * must be there with its shapes, and no other buffer: a state is never restored in part. Fields and
 * buffers are undefined after an error. *out_step may be NULL. */
tg_status tg_state_load(const char *path, const tg_state *state, int64_t *out_step) TG_MUST_CHECK;

#endif
