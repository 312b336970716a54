/* state_save.h - saving a checkpoint (state.h), by one process or by several at once.
 *
 *   the first    begin: makes the step folder aside, and in it the files of tensors at their full length
 *   the others   join that folder, by the name in begin's `aside`
 *   all          write: the pieces of each buffer that they hold; then sync: to disk, and what was written
 *   the first    finish: the sums of all cover the files, record, manifest, rename, links, rotation
 *
 * What is to go when is agreed on by the callers, who talk to each other; nothing here waits for another
 * process. The same state gives the same files, byte for byte, whoever writes which pieces.
 *
 * Model     model/model.safetensors holds one of the buffers as far as the model's own table goes, in
 *           timm's naming: a piece of that buffer is written to both files.
 * Rotation  after a save: kept are the `keep` newest, what `last` and `best` lead to, everything
 *           with a better score than `best` (where that has none: the best of the scores), and
 *           everything whose score cannot be read.
 * Errors    TG_ERROR_MACHINE for the disk, and when pieces are missing. After an error at any place each
 *           process discards: nothing is left behind, and all older checkpoints are untouched. A first
 *           process that dies leaves a temporary, which the next begin or search removes.
 * Memory    headers of the files while they are made. Threads: one a save; one save a FOLDER at a time.
 */
#ifndef TG_CKPT_STATE_SAVE_H
#define TG_CKPT_STATE_SAVE_H

#include "ckpt/state.h"
#include "ckpt/state_tensors.h"
#include "os/folder.h"

/* The model folder inside: for use, not for resuming (it may hold the weight average). */
typedef struct tg_state_model {
    const tg_model_info *info;
    const tg_param_table *table; /* a prefix of the buffer's */
    size_t buffer;               /* of the state's: whose values it has */
} tg_state_model;

typedef struct tg_state_save_options {
    const char *folder; /* made when absent */
    int64_t step;       /* >= 0; an existing step-N is replaced */
    double score;       /* of this state, higher is better; NaN: not known */
    bool best;          /* `best` is to lead here (see tg_state_is_better) */
    size_t keep;        /* newest step folders to keep, at least 1 */
} tg_state_save_options;

/* What a process has written. */
typedef struct tg_state_sums {
    tg_pieces_sum state, model;
} tg_state_sums;

typedef struct tg_state_save {
    const tg_state_save_options *options;
    const tg_state_model *model;
    const tg_state *state;
    tg_state_buffer weights_buffer; /* the model's, without a name */
    tg_new_folder aside;            /* the first process's; temp_path is what others join */
    tg_state_tensors tensors, weights;
} tg_state_save;

/* All arguments are borrowed until the end of the save; the pieces of `state` are not looked at. */
tg_status tg_state_save_begin(const tg_state_save_options *options, const tg_state_model *model,
                              const tg_state *state, tg_state_save *out) TG_MUST_CHECK;
/* aside: the folder that the first process has begun. */
tg_status tg_state_save_join(const tg_state_save_options *options, const tg_state_model *model,
                             const tg_state *state, const char *aside,
                             tg_state_save *out) TG_MUST_CHECK;
tg_status tg_state_save_write(tg_state_save *save, size_t buffer,
                              const tg_state_piece *piece) TG_MUST_CHECK;
/* No more is written here. */
tg_status tg_state_save_sync(tg_state_save *save, tg_state_sums *out) TG_MUST_CHECK;
/* all: the sums of all processes, added. Ends the save, as discard does. */
tg_status tg_state_save_finish(tg_state_save *save, const tg_state_sums *all) TG_MUST_CHECK;
/* Accepts one that is zeroed or was ended. */
void tg_state_save_discard(tg_state_save *save);

void tg_state_sums_add(tg_state_sums *sums, const tg_state_sums *other);

#endif
