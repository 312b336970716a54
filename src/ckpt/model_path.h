/* model_path.h - where the two parts of a model lie, given what a user typed.
 *
 * `path` is a folder with config.json; a folder that holds such a folder called model (a run, a
 * training checkpoint); or a .safetensors file beside its config.json. Heap, owned by the struct.
 */
#ifndef TG_CKPT_MODEL_PATH_H
#define TG_CKPT_MODEL_PATH_H

#include "base/status.h"

typedef struct tg_model_path {
    char *folder;  /* holds config.json */
    char *weights; /* the .safetensors file; may be absent */
} tg_model_path;

/* TG_ERROR_INPUT when there is no config.json. */
tg_status tg_model_path_find(const char *path, tg_model_path *out) TG_MUST_CHECK;
/* TG_ERROR_INPUT when the weights are not there, saying what lies there in their place. */
tg_status tg_model_path_check_weights(const tg_model_path *place) TG_MUST_CHECK;
void tg_model_path_done(tg_model_path *place);

#endif
