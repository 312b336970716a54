/* linear.h - y = x W^T + b, its backward, and the device's own prepared copy of W.
 *
 * Formula    y[r,o] = sum_i x[r,i] W[o,i] + b[o]
 *            dx[r,i] = sum_o dy[r,o] W[o,i]
 *            dW[o,i] (+)= sum_r dy[r,o] x[r,i]      db[o] (+)= sum_r dy[r,o]
 * Arguments  R rows; W is fp32 [out,in] in the flat parameter buffer (PyTorch's nn.Linear layout).
 *            x [R,in], dy [R,out] in the compute dtype of the weight. b fp32 [out] or NULL.
 *            y has dtype `y_dtype` (compute dtype, or TG_F32 e.g. for logits).
 * Prepared   A tg_weight holds what the device needs to multiply fast (bf16, blocked, transposed).
 *            `refresh` builds it from the fp32 W: call it once after creation and after every
 *            change of W (each optimizer step). Using a weight never refreshed is an assert. A bf16
 *            copy is rounded as tokens.from_f32 of the same table rounds, whatever its layout: from W
 *            or from what from_f32 and to_f32 leave of W it is the same bits.
 * Memory     weight_new allocates from the heap (bytes: weight_bytes); freed by weight_free.
 *            Scratch for backward_weight lives in the weight's stream-shared scratch, grown on
 *            first use of a shape.
 * Accuracy   products accumulate in fp32: |error| <= n eps sum |x||W| with eps 2^-24 (fp32) or one
 *            rounding of inputs and output at 2^-8 (bf16); n = inner length.
 */
#ifndef TG_KERN_LINEAR_H
#define TG_KERN_LINEAR_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_weight tg_weight;

typedef struct tg_linear_ops {
    /* `trainable` false keeps only what forward needs (a frozen teacher, inference). */
    tg_status (*weight_new)(tg_stream *stream, size_t out_features, size_t in_features,
                            tg_dtype compute, bool trainable, tg_weight **out);
    void (*weight_free)(tg_weight *weight); /* NULL allowed */
    size_t (*weight_bytes)(size_t out_features, size_t in_features, tg_dtype compute,
                           bool trainable); /* upper bound of what weight_new keeps */
    tg_status (*weight_refresh)(tg_stream *stream, tg_weight *weight, const float *w);

    tg_status (*forward)(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                         const float *bias, void *out_y, tg_dtype y_dtype);
    tg_status (*backward_input)(tg_stream *stream, tg_weight *weight, size_t R, const void *dy,
                                void *out_dx);
    /* dw [out,in], dbias [out] fp32; dbias NULL when the layer has none. */
    tg_status (*backward_weight)(tg_stream *stream, tg_weight *weight, size_t R, const void *x,
                                 const void *dy, float *dw, float *dbias, bool accumulate);
} tg_linear_ops;

#endif
