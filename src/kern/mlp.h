/* mlp.h - the feed-forward of a block: y = GELU(x W1^T + b1) W2^T + b2.
 *
 * Formula    h = x W1^T + b1 [R,F];  g = GELU(h);  y = g W2^T + b2 [R,C]
 *            exact: GELU(h) = h/2 (1 + erf(h / sqrt 2));
 *            tanh:  GELU(h) = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3)))
 * Forward    keeps only h when `out_h` is given (training); g is recomputed by backward. With
 *            out_h NULL (inference) h lives in the device's scratch, chunk by chunk.
 * Backward   dg = dy W2;  dh = dg * GELU'(h);  dx = dh W1   (backward, keeps g and dh)
 *            dW2 (+)= dy^T g;  db2 (+)= sum dy;  dW1 (+)= dh^T x;  db1 (+)= sum dh
 *                                                                  (backward_weights)
 * Spans      forward and backward may do rows [row0, row0 + R) of longer arrays, row0 a multiple of 32:
 *            x, y, dy, dx are pointers to row row0; h, g and dh to the arrays. backward_weights does
 *            all rows at once.
 * Memory     h takes tg_mlp_kept_bytes(R,F,dtype), g and dh tg_mlp_gradient_bytes(R,F,dtype) each,
 *            64-byte aligned, in layouts of the device's own: only these operations with the same
 *            weights read them.
 * Accuracy   as linear.h; GELU in fp32 within 5 ulp, in bf16 within 1.1e-5 |h| of
 *            the value before it is rounded (kern/cpu/gelu.h).
 */
#ifndef TG_KERN_MLP_H
#define TG_KERN_MLP_H

#include "kern/linear.h"

typedef enum tg_gelu { TG_GELU_EXACT, TG_GELU_TANH } tg_gelu;

typedef struct tg_mlp_forward {
    size_t R;    /* rows */
    size_t row0; /* number of the first row */
    tg_gelu gelu;
    const void *x;   /* [R,C] compute dtype */
    const float *b1; /* [F] or NULL */
    const float *b2; /* [C] or NULL */
    void *out_h;     /* [R,F] compute dtype in the device's layout, or NULL */
    void *out_y;     /* [R,C] compute dtype */
} tg_mlp_forward;

typedef struct tg_mlp_backward {
    size_t R, row0;
    tg_gelu gelu;
    const void *h;        /* kept by forward */
    const void *dy;       /* [R,C] */
    void *out_g, *out_dh; /* [R,F] in the device's layout */
    void *out_dx;         /* [R,C] */
} tg_mlp_backward;

typedef struct tg_mlp_weights {
    size_t R;
    const void *x, *dy;           /* [R,C] */
    const void *g, *dh;           /* of backward */
    float *dw1, *db1, *dw2, *db2; /* fp32 gradients; db may be NULL */
    bool accumulate;
} tg_mlp_weights;

/* Devices may pad the rows of h to 32, of g and dh to 256. */
static inline size_t tg_mlp_kept_bytes(size_t R, size_t F, tg_dtype dtype)
{
    return ((R + 31) & ~(size_t)31) * F * tg_dtype_bytes(dtype);
}

static inline size_t tg_mlp_gradient_bytes(size_t R, size_t F, tg_dtype dtype)
{
    return ((R + 255) & ~(size_t)255) * F * tg_dtype_bytes(dtype);
}

typedef struct tg_mlp_ops {
    tg_status (*forward)(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                         const tg_mlp_forward *args);
    tg_status (*backward)(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                          const tg_mlp_backward *args);
    tg_status (*backward_weights)(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                                  const tg_mlp_weights *args);
} tg_mlp_ops;

#endif
