/* mlp.h - the feed-forward of a block: y = GELU(x W1^T + b1) W2^T + b2.
 *
 * Formula    h = x W1^T + b1 [R,F];  g = GELU(h);  y = g W2^T + b2 [R,C]
 *            exact: GELU(h) = h/2 (1 + erf(h / sqrt 2));
 *            tanh:  GELU(h) = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3)))
 * Forward    keeps only h when `out_h` is given (training); g is recomputed by backward. With
 *            out_h NULL (inference) h lives in the device's scratch, chunk by chunk.
 *            out_h holds tg_mlp_kept_bytes(R,F,dtype), 64-byte aligned, in a layout of the device's
 *            own: only backward with the same weights reads it.
 * Backward   dg = dy W2;  dh = dg * GELU'(h);  dW2 += dy^T g;  db2 += sum dy;
 *            dW1 += dh^T x;  db1 += sum dh;  dx = dh W1
 * Scratch    `scratch` of backward: tg_mlp_backward_scratch_bytes(R,F,dtype), 64-byte aligned, from
 *            the caller's step arena: holds g [R,F] and dh [R,F]. `out_h`'s memory is not changed.
 * Accuracy   as linear.h; GELU in fp32 within 5 ulp, in bf16 within 1.1e-5 |h| of
 *            the value before it is rounded (kern/cpu/gelu.h).
 */
#ifndef TG_KERN_MLP_H
#define TG_KERN_MLP_H

#include "kern/linear.h"

typedef enum tg_gelu { TG_GELU_EXACT, TG_GELU_TANH } tg_gelu;

typedef struct tg_mlp_forward {
    size_t R;            /* rows */
    tg_gelu gelu;
    const void *x;       /* [R,C] compute dtype */
    const float *b1;     /* [F] or NULL */
    const float *b2;     /* [C] or NULL */
    void *out_h;         /* [R,F] compute dtype in the device's layout, or NULL */
    void *out_y;         /* [R,C] compute dtype */
} tg_mlp_forward;

typedef struct tg_mlp_backward {
    size_t R;
    tg_gelu gelu;
    const void *x;       /* [R,C] as given to forward */
    const void *h;       /* kept by forward */
    const void *dy;      /* [R,C] */
    void *scratch;
    void *out_dx;        /* [R,C] */
    float *dw1, *db1, *dw2, *db2; /* fp32 gradients; db may be NULL */
    bool accumulate;
} tg_mlp_backward;

/* Devices may pad rows of h to 32, rows of scratch to 256. */
static inline size_t tg_mlp_kept_bytes(size_t R, size_t F, tg_dtype dtype)
{
    return ((R + 31) & ~(size_t)31) * F * tg_dtype_bytes(dtype);
}

/* Bytes of scratch that backward needs. */
static inline size_t tg_mlp_backward_scratch_bytes(size_t R, size_t F, tg_dtype dtype)
{
    return 2 * ((R + 255) & ~(size_t)255) * F * tg_dtype_bytes(dtype);
}

typedef struct tg_mlp_ops {
    tg_status (*forward)(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                         const tg_mlp_forward *args);
    tg_status (*backward)(tg_stream *stream, tg_weight *w1, tg_weight *w2,
                          const tg_mlp_backward *args);
} tg_mlp_ops;

#endif
