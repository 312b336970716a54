/* tiled.h - layers on AMX tiles: deals the work of product_amx.h and gradient_amx.h out to the team.
 *
 * Everything is bf16 with fp32 sums; weights are panels (kern/cpu/weight.h). Contracts otherwise as
 * kern/linear.h and kern/mlp.h. Call tg_stream_enter before.
 * Errors   TG_ERROR_MACHINE when scratch is short.
 */
#ifndef TG_KERN_CPU_TILED_H
#define TG_KERN_CPU_TILED_H

#include "kern/cpu/gradient_amx.h"
#include "kern/cpu/weight.h"
#include "kern/mlp.h"

/* Slots of the stream's scratch. */
enum { TG_SLOT_HIDDEN = 8, TG_SLOT_GRADIENT = 9 };

/* out_y [R,N] (bf16 or fp32) = x [R,K] b + bias, b in panels. */
void tg_tiled_linear(tg_stream *stream, size_t R, size_t K, size_t N, const void *x, const void *b,
                     const float *bias, void *out_y, tg_dtype y_dtype);

tg_status tg_tiled_mlp_forward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                               const tg_mlp_forward *args) TG_MUST_CHECK;
tg_status tg_tiled_mlp_backward(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                                const tg_mlp_backward *args) TG_MUST_CHECK;
tg_status tg_tiled_mlp_weights(tg_stream *stream, const tg_weight *w1, const tg_weight *w2,
                               const tg_mlp_weights *args) TG_MUST_CHECK;

/* All units of the gradient, whose division is filled in here. */
tg_status tg_tiled_gradient(tg_stream *stream, tg_amx_gradient *gradient) TG_MUST_CHECK;

#endif
