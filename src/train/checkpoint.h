/* checkpoint.h - a training job's state on disk: saved whole or not at all, resumed bit for bit.
 *
 * What is kept: parameters, both moments and the weight average by tensor name (ckpt/state.h), and
 * the record below. Learning rate, order of samples and random numbers are functions of it.
 *
 * Ranks    the files are the same, byte for byte, whatever the number of ranks and their shares. Ranks
 *          that see one folder each write their own pieces of every buffer into one file aside
 *          (ckpt/state_save.h), shares or not; else the first rank writes everything, and shares are gathered
 *          to it through `scratch`, one buffer after the other. Neither takes memory for tensors.
 * Meetings before anything is written, when all bytes are on disk, and after the rename. One rank's failure
 *          is every rank's, with its reason; the save is then nowhere, and ranks may go on.
 */
#ifndef TG_TRAIN_CHECKPOINT_H
#define TG_TRAIN_CHECKPOINT_H

#include "ckpt/model_folder.h"
#include "tensor/param.h"
#include "train/ranks.h"

#include <stdint.h>

/* Everything that changes between steps and is no tensor. */
typedef struct tg_train_state {
    int64_t updates;             /* optimizer steps done */
    int64_t applied;             /* of these, not skipped: t of AdamW and n of the average */
    int64_t epoch;               /* under way, from 0 */
    uint64_t position;           /* samples of this epoch's order already used */
    double best_score;           /* NaN: none yet */
    int64_t best_epoch;          /* epochs done when it was reached; -1: none */
    double best_top5, best_loss; /* of the evaluation that gave best_score */
    uint64_t best_images;
    uint64_t skipped; /* updates skipped as not finite */
    /* what the run was started with: a resume that differs is told */
    int64_t seed, batch_size, accumulation, epochs, samples;
    uint64_t classes; /* hash of the class names in order */
} tg_train_state;

/* The tensors: all laid out by `table`. */
typedef struct tg_train_tensors {
    const tg_model_info *info;
    const tg_param_table *model_table; /* the model alone, a prefix of `table` */
    const tg_param_table *table;       /* with the projection, if any */
    float *params;                     /* whole; others' pieces maybe rounded (tg_ranks_complete) */
    float *m, *v, *average; /* whole, or packed when ranks->options.shard; average NULL when off */
    tg_ranks *ranks;        /* NULL: this process alone */
    bool together;          /* all ranks see the folder of checkpoints, and write into it */
    tg_stream *stream;
    float *scratch; /* [table->elements], aligned as tg_comm_work's; of use with shares that are not
                       written together */
} tg_train_tensors;

typedef struct tg_checkpoint_options {
    const char *folder; /* RUN/checkpoints */
    int64_t keep;       /* newest step folders kept, last's among them, >= 1; best's besides */
} tg_checkpoint_options;

/* Saves step-<updates>. Every rank calls it, with nothing on its way between them (tg_step_settle), and gets
 * the same status. score: of the model as it is now, NaN when it was not evaluated; best: it is the best
 * so far. TG_ERROR_PEER when ranks can no longer talk; other errors cost the save alone. */
tg_status tg_checkpoint_save(const tg_checkpoint_options *options, const tg_train_state *state,
                             const tg_train_tensors *tensors, double score,
                             bool best) TG_MUST_CHECK;

/* The path (malloc) of the checkpoint that `which` means, after all of it was read and found whole. "auto": the
 * newest whole one in options->folder; TG_END when there is none. Else the path of a checkpoint, or
 * of a run directory or its folder of checkpoints: the newest whole one there; TG_ERROR_INPUT when
 * there is none. */
tg_status tg_checkpoint_find(const tg_checkpoint_options *options, const char *which,
                             char **out) TG_MUST_CHECK;

/* Reads what find has found. Fills tensors' buffers, of packed ones this rank's pieces, and the state;
 * *out_score: what the model scored at that point, NaN when it was not evaluated then. Meets nobody. */
tg_status tg_checkpoint_load(const char *path, const tg_train_tensors *tensors,
                             tg_train_state *out_state, double *out_score) TG_MUST_CHECK;

#endif
