/* engine.h - a trained model that answers about photos: bytes or files in, logits and features out.
 *
 * A photo passes the same doors as in evaluation: decoded by content, turned upright, resized, cropped
 * and normalised as the model folder says (image/decode.h, image/transform.h); the network's input is
 * the same bits as that of tg_evaluate.
 *
 *   open -> { prepare each photo -> forward }...  or  run_files  -> close
 *
 * Memory   parameters, activations and inputs for one batch, reserved at open; decoding keeps the
 *          largest photo seen.
 * Errors   open: those of the model folder; TG_ERROR_INPUT when `model` is no file or folder;
 *          TG_ERROR_MACHINE. prepare: TG_ERROR_INPUT when the photo is to blame.
 * Threads  one at a time per engine; forward itself uses `threads`, and may be called by another thread
 *          than open (TG_ERROR_MACHINE when that one's team cannot start).
 */
#ifndef TG_INFER_ENGINE_H
#define TG_INFER_ENGINE_H

#include "ckpt/model_folder.h"
#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stddef.h>

typedef struct tg_engine_options {
    const char *model;    /* model folder, or .safetensors file beside its config.json */
    int threads;          /* compute threads, >= 1 */
    tg_cpu_level cpu_cap; /* highest instruction set to use */
    tg_dtype dtype;       /* TG_F32, or TG_BF16 where the machine has it (else it becomes TG_F32) */
    size_t batch_size;    /* photos in one forward; 0: 1 */
} tg_engine_options;

typedef struct tg_engine tg_engine;

tg_status tg_engine_open(const tg_engine_options *options, tg_engine **out) TG_MUST_CHECK;
void tg_engine_close(tg_engine *engine);

/* Architecture, preprocessing, classes. Here class_names always holds a name for each class: where
 * the folder has none they are "0", "1", ... Borrowed. */
const tg_model_info *tg_engine_info(const tg_engine *engine);

/* Makes photo number `slot` (below batch_size) of the next forward. The message names no file in
 * prepare_bytes. Returns the [3,H,W] floats in *out_input when it is not NULL (borrowed). */
tg_status tg_engine_prepare_bytes(tg_engine *engine, size_t slot, const void *bytes, size_t count,
                                  const float **out_input) TG_MUST_CHECK;
tg_status tg_engine_prepare_file(tg_engine *engine, size_t slot, const char *path,
                                 const float **out_input) TG_MUST_CHECK;

/* Logits [B,K] (NULL when the model has no head; both heads averaged where there are two) and pooled
 * features [B,C] of slots 0 .. B-1. Borrowed until the next forward. */
typedef struct tg_engine_output {
    const float *logits, *feature;
} tg_engine_output;
tg_status tg_engine_forward(tg_engine *engine, size_t B, tg_engine_output *out) TG_MUST_CHECK;

/* What came out for one file. */
typedef struct tg_engine_answer {
    size_t index;         /* of its path */
    const char *error;    /* NULL, or why there is no answer */
    const float *logits;  /* [K] or NULL */
    const float *feature; /* [C] */
} tg_engine_answer;
/* A negative status ends the run with it. */
typedef tg_status (*tg_engine_receive)(void *user, const tg_engine_answer *answer);

/* Why a photo has no answer when the network computed something that is no number. */
#define TG_ENGINE_NOT_FINITE                                                                       \
    "the model's answer is not finite, though its weights are: they are too large for its "        \
    "arithmetic"

/* Asks about every file, batch_size at a time; answers come in the order of `paths`, one for each.
 * A file that cannot be read or decoded, or whose answer is not finite, is an answer with `error`.
 * A fault of the machine (memory, disk, too many open files) is no photo's: it ends the run with
 * TG_ERROR_MACHINE. */
tg_status tg_engine_run_files(tg_engine *engine, const char *const *paths, size_t count,
                              tg_engine_receive receive, void *user) TG_MUST_CHECK;

#endif
