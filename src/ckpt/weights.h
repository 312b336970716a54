/* weights.h - the tensors of one model file, matched against a parameter table.
 *
 * Opening makes every name canonical (naming.h) and finds duplicates that only prefixes kept apart.
 * Memory  heap, owned by the object. Threads  one at a time.
 */
#ifndef TG_CKPT_WEIGHTS_H
#define TG_CKPT_WEIGHTS_H

#include "ckpt/model_folder.h"
#include "ckpt/naming.h"
#include "ckpt/safetensors.h"
#include "model/positions.h"

typedef struct tg_weights {
    tg_safetensors file;
    char **names; /* canonical, beside file.items */
    bool *used;
    tg_naming naming;
    tg_hf_kind kind;  /* TG_HF_NONE for timm's naming */
    bool dinov2_code; /* written by the DINOv2 code itself: a mask token among timm's names */
} tg_weights;

/* `info`: of the file, before any want. */
tg_status tg_weights_open(const char *path, const tg_model_info *info,
                          tg_weights *out) TG_MUST_CHECK;
void tg_weights_close(tg_weights *weights);

/* The tensors that make up one entry of the table, marked as used: how many there are, 0 when one
 * is missing. out_missing gets the name of the first that is. */
size_t tg_weights_find(tg_weights *weights, const tg_vit_config *config, const char *param,
                       const tg_safetensors_entry *out[TG_NAMING_PIECES],
                       char out_missing[TG_NAMING_BYTES]);

/* The rule by which the code base that wrote the file resamples its positions. */
tg_positions_rule tg_weights_position_rule(const tg_weights *weights, const tg_vit_config *config);

#endif
