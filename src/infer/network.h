/* network.h - a model ready to compute: what the folder says, its weights in memory, and the vit.
 *
 * Opened from a model folder (or a .safetensors file beside its config.json), or made fresh from an
 * architecture name. Used by training, evaluation, prediction and serving alike.
 *
 * Memory   owns the parameters (one arena), which the vit borrows.
 * Errors   TG_ERROR_INPUT for bad files, TG_ERROR_USAGE for unknown names and impossible shapes,
 *          TG_ERROR_MACHINE for memory.
 * Threads  one at a time.
 */
#ifndef TG_INFER_NETWORK_H
#define TG_INFER_NETWORK_H

#include "base/arena.h"
#include "ckpt/model_folder.h"
#include "model/vit.h"

/* Shape overrides; 0 (or -1 for reg_tokens and num_classes) keeps what the model says. Only drop_path is
 * always taken as given. */
typedef struct tg_network_shape {
    int64_t img_size, patch_size, embed_dim, depth, num_heads;
    int64_t reg_tokens, num_classes;
    int global_pool; /* tg_pool + 1 */
    double drop_path;
} tg_network_shape;

typedef struct tg_network_request {
    const char *model; /* path or architecture name */
    tg_network_shape shape;
    bool fresh_head; /* a new head for shape.num_classes when the file's class count differs */
    bool trainable;
    tg_dtype dtype;
    uint64_t seed;       /* of fresh weights */
    size_t extra_floats; /* room after the model's parameters, zeroed (projections) */
} tg_network_request;

typedef struct tg_network {
    tg_model_info info;
    tg_param_table table;
    tg_arena memory;
    float *params; /* [table.elements + extra_floats] */
    tg_vit *vit;
    bool loaded; /* weights came from a file */
} tg_network;

/* What `request` would open, without its weights. */
tg_status tg_network_describe(const tg_network_request *request, tg_model_info *out) TG_MUST_CHECK;

tg_status tg_network_open(const tg_network_request *request, const tg_kern *kern, tg_stream *stream,
                          tg_network *out) TG_MUST_CHECK;
/* Accepts NULL and a zeroed object. */
void tg_network_close(tg_network *network);

/* True when `model` names a file or folder rather than an architecture. */
bool tg_network_is_path(const char *model);

#endif
