/* vit.h - a vision transformer on a device: forward and backward over one flat parameter buffer.
 *
 * Follow a photo: image [B,3,S,S] -> patches -> tokens [B,T,C] -> depth x (attention, MLP) -> norm ->
 * pooled feature [B,C] -> logits [B,K] (and [B,K] of the distillation head). vit_forward.c and
 * vit_backward.c have one function per stage, in that order and its reverse.
 *
 * States     tg_vit_new -> refresh -> { forward(train) -> backward -> (optimizer) -> refresh }...
 *            or { forward(infer) }... -> tg_vit_free. `refresh` after every change of the parameters, at
 *            the latest when forward asks for them (tg_vit_range_needed).
 * Memory     parameters and gradients: the caller's flat buffers, laid out by tg_vit_params, borrowed
 *            for the life of the object. Activations: the caller's step arena; a training forward
 *            leaves its tape there until backward has run. tg_vit_step_bytes bounds what one
 *            forward (+ backward) takes.
 * Errors     TG_ERROR_MACHINE from the device's library or memory; from forward also what the caller's
 *            tg_vit_range_needed returned.
 * Threads    one thread at a time per object.
 */
#ifndef TG_MODEL_VIT_H
#define TG_MODEL_VIT_H

#include "base/arena.h"
#include "kern/kern.h"
#include "model/config.h"

typedef struct tg_vit tg_vit;

typedef enum tg_vit_mode {
    TG_VIT_INFER, /* nothing kept; no stochastic depth; both heads averaged into logits */
    TG_VIT_TRAIN  /* keeps the tape for backward; stochastic depth on; heads separate */
} tg_vit_mode;

/* dtype: compute dtype of activations. trainable false: forward only (teacher, predict). */
tg_status tg_vit_new(const tg_vit_config *config, const tg_kern *kern, tg_stream *stream,
                     tg_dtype dtype, bool trainable, const float *params,
                     tg_vit **out) TG_MUST_CHECK;
void tg_vit_free(tg_vit *vit);
const tg_vit_config *tg_vit_get_config(const tg_vit *vit);
const tg_param_table *tg_vit_get_params(const tg_vit *vit);

/* Rebuilds the device's prepared copies from the fp32 parameters. */
tg_status tg_vit_refresh(tg_vit *vit) TG_MUST_CHECK;
/* The same for the tensors of params [offset, offset + count) alone: ranges that forward asks for
 * (tg_vit_range_needed), or any others that cut no tensor (assert). Once ranges have covered the buffer,
 * in any order, the copies are the same bits as after tg_vit_refresh. */
tg_status tg_vit_refresh_range(tg_vit *vit, size_t offset, size_t count) TG_MUST_CHECK;

/* Whether forward and backward read the tensor at params[offset] through a bf16 copy alone: what its values have
 * beyond what tokens.from_f32 keeps of them, they never see (kern/linear.h). */
bool tg_vit_reads_bf16(const tg_vit *vit, size_t offset);

/* Upper bound of arena bytes for one forward of B images (TRAIN: with its backward). (size_t)-1 when
 * the number does not fit, or memory is short. */
size_t tg_vit_step_bytes(const tg_vit_config *config, size_t B, tg_dtype dtype, tg_vit_mode mode);
/* Heap bytes of prepared weights. */
size_t tg_vit_weight_bytes(const tg_vit_config *config, const tg_kern *kern, tg_dtype dtype,
                           bool trainable);

/* Asks for params [offset, offset + count), which forward uses next: whoever keeps them elsewhere brings
 * them and refreshes their prepared copies. Ranges ascend without gaps and cover the whole buffer:
 * embedding, each block right before its first norm, final norm with heads. Runs on the calling thread
 * while no other works for the model. An error ends forward, which returns it and asks no further. */
typedef tg_status (*tg_vit_range_needed)(void *user, size_t offset, size_t count);

typedef struct tg_vit_input {
    size_t B;
    const float *image; /* [B,3,S_h,S_w] normalised */
    /* stochastic depth (TRAIN): masks are functions of (seed, epoch, sample_index[b], block) */
    uint64_t seed, epoch;
    const uint64_t *sample_index; /* [B]; NULL allowed when drop_path is 0 */
    tg_vit_range_needed needed;   /* or NULL: all parameters are there */
    void *needed_user;
} tg_vit_input;

typedef struct tg_vit_output {
    float *logits;      /* [B,K]; arena memory; NULL when num_classes is 0 */
    float *logits_dist; /* [B,K] of the distillation head (TRAIN only), else NULL */
    float *feature;     /* [B,C] pooled, after the final norm: what the head reads */
} tg_vit_output;

tg_status tg_vit_forward(tg_vit *vit, tg_arena *step, const tg_vit_input *input, tg_vit_mode mode,
                         tg_vit_output *out) TG_MUST_CHECK;

/* Called when grads[offset .. offset+count) is final; ranges come from the tail, without gaps, and
 * cover the whole buffer. Runs on the calling thread between layers. */
typedef void (*tg_vit_range_ready)(void *user, size_t offset, size_t count);

/* Gradients of the outputs, and where those of all parameters go. */
typedef struct tg_vit_backward_args {
    const float *dlogits;      /* [B,K] or NULL */
    const float *dlogits_dist; /* [B,K] or NULL */
    const float *dfeature;     /* [B,C] or NULL: added to what the heads send back */
    float *grads;              /* flat, laid out like the parameters */
    bool accumulate;           /* add to grads (micro-batches after the first) */
    tg_vit_range_ready ready;  /* or NULL */
    void *ready_user;
} tg_vit_backward_args;

/* Uses the tape of the last TRAIN forward on the same arena; afterwards the caller releases it. */
tg_status tg_vit_backward(tg_vit *vit, tg_arena *step,
                          const tg_vit_backward_args *args) TG_MUST_CHECK;

#endif
