/* vit_state.h - what a tg_vit holds between calls; for vit*.c only.
 *
 * Everything that a step needs is laid out at once by tg_vit_layout, on the caller's arena or on a
 * counting one, so that "how many bytes?" and "where?" are answered by the same code.
 */
#ifndef TG_MODEL_VIT_STATE_H
#define TG_MODEL_VIT_STATE_H

#include "model/vit.h"

#include <stdint.h>

/* Offsets of a block's tensors in the flat buffer; TG_ABSENT where the model has none. */
#define TG_ABSENT ((size_t)-1)

typedef struct tg_block_offsets {
    size_t norm1_w, norm1_b, qkv_w, qkv_b, proj_w, proj_b, ls1;
    size_t norm2_w, norm2_b, fc1_w, fc1_b, fc2_w, fc2_b, ls2;
    size_t begin, end; /* range of the whole block */
} tg_block_offsets;

typedef struct tg_block_weights {
    tg_weight *qkv, *proj, *fc1, *fc2;
} tg_block_weights;

/* Activations of one block kept for backward (TRAIN) or shared by all blocks (INFER). */
typedef struct tg_block_tape {
    float *x_in;          /* [R,C] residual stream that norm1 reads */
    float *mean1, *rstd1; /* [R] */
    void *qkv;            /* [R,3C] */
    void *o;              /* [R_q,C] */
    float *lse;           /* [B,H,T_q] */
    void *branch1;        /* [R_q,C] output of proj */
    float *x_mid;         /* [R_q,C] residual stream that norm2 reads */
    float *mean2, *rstd2; /* [R_q] */
    void *h;              /* [R_q,F]; NULL in INFER */
    void *branch2;        /* [R_q,C] output of the feed-forward */
} tg_block_tape;

typedef struct tg_vit_tape {
    size_t B, T, N, R; /* R = B T */
    size_t T_q, R_q;   /* tokens whose output of the last block is used; R_q = B T_q */
    tg_vit_mode mode;
    void *patches;      /* [B N, 3 P P] */
    float *x_gathered;  /* [R_q,C]: rows of x_in of the last block, when T_q < T */
    float *x_out;       /* [R_q,C] residual stream after the last block */
    float *pooled;      /* [B,C] mean of patch tokens (average pooling) */
    float *mean, *rstd; /* [2,B] of the final norm, per head */
    void *y_final[2];   /* [B,C] per head, compute dtype */
    float *logits, *logits_dist, *feature;
    float *sample_scale; /* [2 depth, B] stochastic depth, or NULL */
    void *y;             /* [R,C] what norm1 wrote; forward uses one span of it */
    void *branch;        /* [R,C] feed-forward branch or its gradient; forward: one span */
    /* backward only */
    void *y_mid;                    /* [R,C] what norm2 wrote */
    void *branch_mid;               /* [R,C] gradient of the attention branch */
    void *dspan;                    /* [span,C] gradient of y or y_mid */
    float *dres, *dres_q;           /* [R,C], [R_q,C] (the same memory when T_q = T) */
    void *dy;                       /* [R,C] gradient of o, and of y_final */
    void *g, *dh;                   /* [R,F] of the feed-forward's weight gradients */
    void *dqkv;                     /* [R,3C] */
    float *norm1_sums, *norm2_sums; /* [chunks of R][3][C] for the parameters of norms */
    float *dpooled, *dfeature;      /* [B,C] */
    void *dlogits;                  /* [B,K] compute dtype */
    float *dprefix;                 /* [prefix,C] */
} tg_vit_tape;

struct tg_vit {
    tg_vit_config config;
    tg_param_table table;
    const tg_kern *kern;
    tg_stream *stream;
    tg_dtype dtype;
    bool trainable;
    const float *params;
    tg_weight *patch, *head, *head_dist;
    tg_block_weights *weights;
    tg_block_offsets *offsets;
    size_t cls, dist, reg, pos, patch_w, patch_b, norm_w, norm_b, head_w, head_b, head_dist_w,
        head_dist_b;
    float *prefix; /* [prefix,C] tokens with their positions, as of the last refresh */
    tg_block_tape *blocks;
    tg_vit_tape tape;
};

/* Number of heads that read a token of their own: 2 with a distillation token, else 1. */
static inline size_t tg_vit_head_tokens(const tg_vit_config *config)
{
    return config->dist_token ? 2 : 1;
}

/* Places a step of B images on the arena; out_blocks: [depth]. False when it did not fit: then the
 * tape must not be used. */
bool tg_vit_layout(const tg_vit_config *config, size_t B, tg_dtype dtype, tg_vit_mode mode,
                   tg_arena *arena, tg_vit_tape *out_tape, tg_block_tape *out_blocks);

/* Row-wise stages run on spans of rows [first, first + rows) of R. A thread's spans share the scratch
 * that begins at row `scratch` of its arrays. */
typedef struct tg_vit_span {
    tg_stream *stream;
    size_t first, rows, scratch;
} tg_vit_span;

typedef tg_status (*tg_vit_span_body)(tg_vit *vit, const tg_vit_span *span, void *user);

/* Runs a row-wise stage on all R rows: each thread takes its rows span by span, and threads wait for
 * one another only at the end. */
tg_status tg_vit_row_wise(tg_vit *vit, size_t R, tg_vit_span_body body, void *user) TG_MUST_CHECK;

/* Backward of all blocks: gradient of the last one's output in tape->branch and tape->dres_q (or dres), that
 * of the embedding in tape->dres. */
tg_status tg_vit_blocks_backward(tg_vit *vit, const tg_vit_backward_args *args) TG_MUST_CHECK;
/* Tells the caller that gradients [begin, end) are final. */
void tg_vit_report(const tg_vit_backward_args *args, size_t begin, size_t end);

/* Row `row` of an array in the compute dtype. */
static inline void *tg_vit_row(const tg_vit *vit, const void *array, size_t row, size_t columns)
{
    return (char *)(uintptr_t)array + row * columns * tg_dtype_bytes(vit->dtype);
}

static inline const float *tg_vit_param(const tg_vit *vit, size_t offset)
{
    return offset == TG_ABSENT ? NULL : vit->params + offset;
}

static inline float *tg_vit_grad(float *grads, size_t offset)
{
    return offset == TG_ABSENT ? NULL : grads + offset;
}

/* Scale of a branch of stochastic depth: block l, branch 0 (attention) or 1 (feed-forward). */
static inline const float *tg_vit_sample_scale(const tg_vit_tape *tape, size_t l, size_t branch)
{
    return tape->sample_scale ? tape->sample_scale + (2 * l + branch) * tape->B : NULL;
}

/* out += x, rows of C: mean_backward over one token is the table's elementwise sum. */
static inline void tg_vit_add(const tg_vit *vit, size_t rows, const float *x, float *out)
{
    vit->kern->tokens.mean_backward(vit->stream, rows, 1, vit->config.embed_dim, 0, x, out, false);
}

#endif
