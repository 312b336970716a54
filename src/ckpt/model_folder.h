/* model_folder.h - a model on disk: model.safetensors + config.json, timm's or Hugging Face's
 * naming.
 *
 * The folder holds the architecture, the weights, the class names in order and the preprocessing,
 * so nothing about a model's meaning lives anywhere else. Files read: docs/FORMATS.md.
 *
 * Errors  TG_ERROR_INPUT for anything wrong in the files (path, tensor, cause); TG_ERROR_MACHINE
 * for I/O. A checkpoint that fits only partly is refused with every missing, unexpected and
 *         mis-shaped tensor listed; one with a value that is not finite is refused by name.
 * Memory  tg_model_info owns its strings; tg_model_info_done frees them. params: caller's buffer.
 * Threads reentrant.
 */
#ifndef TG_CKPT_MODEL_FOLDER_H
#define TG_CKPT_MODEL_FOLDER_H

#include "image/preprocess.h"
#include "model/config.h"

typedef enum tg_naming { TG_NAMING_TIMM, TG_NAMING_HF } tg_naming;

typedef struct tg_model_info {
    tg_vit_config config;
    tg_preprocess preprocess;
    char **class_names; /* config.num_classes entries, or NULL when the file has none */
    size_t class_count; /* 0 when class_names is NULL */
    tg_naming naming;   /* of the file it was read from */
    char *license;      /* or NULL */
} tg_model_info;

void tg_model_info_done(tg_model_info *info);

/* What the caller wants changed relative to the file. Zeroed = take the file as it is. */
typedef struct tg_model_want {
    size_t img_h, img_w; /* 0: as the file; else positions are resampled to this size */
    size_t num_classes;  /* with fresh_head: classes of the new head */
    bool fresh_head;     /* heads are new when the class count differs (said in the log) */
    bool no_head;        /* features only: head tensors in the file are ignored */
    uint64_t seed;       /* for fresh heads */
} tg_model_want;

/* Reads config.json (and preprocessor_config.json where there is one).
 * `path`: a model folder, a folder that holds one called model (a run, a training checkpoint), or a
 * .safetensors file beside its config.json. */
tg_status tg_model_read_info(const char *path, tg_model_info *out) TG_MUST_CHECK;

/* Reads the weights into params, laid out by tg_vit_params(&info->config) after `want` is applied
 * to info->config (num_classes, img size; class_names are dropped when the head is fresh). Call
 * order: read_info -> tg_model_apply_want -> tg_vit_params -> allocate -> read_weights. What the
 * file holds is compared with the table before anything is read; padding is zeroed. After an error
 * out_params is undefined. */
void tg_model_apply_want(tg_model_info *info, const tg_model_want *want);
tg_status tg_model_read_weights(const char *path, const tg_model_info *info,
                                const tg_param_table *table, const tg_model_want *want,
                                float *out_params) TG_MUST_CHECK;

/* Writes a complete folder: into a temporary sibling, synced, then renamed over `path`. Files of others in
 * `path` stay in it. TG_ERROR_USAGE when the naming has no way to say this network, and as
 * tg_model_check_replace. */
tg_status tg_model_write(const char *path, const tg_model_info *info, const tg_param_table *table,
                         const float *params, tg_naming naming) TG_MUST_CHECK;

/* Whether tg_model_write would replace `path`: TG_ERROR_USAGE when a folder lies in it. */
tg_status tg_model_check_replace(const char *path) TG_MUST_CHECK;

#endif
