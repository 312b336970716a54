/* traced.h - the fast table of operations with a span (trace/trace.h) around every call.
 *
 * Results are those of tg_kern_select's table to the bit: each entry calls the one it wraps with the
 * same arguments. While the calling thread is not attached to a trace an entry costs two thread-local
 * loads more.
 *
 * Keys     the operation's name ("linear_backward_weight", "norm_forward", "adamw") and
 *            linear_*             {R, in, out}        weight_refresh   {in, out}
 *            mlp_*                {R, C, F}           attention_*      {B, T_q, T, H * D}
 *            norm_*               {R, C}              patch            {B, S_h, S_w, P}
 *            tokens_*, mean_*     {B, T, C}           losses           {B, K}
 *          conversions and the optimizer's sweeps have none: their calls differ in length alone.
 *          The type is that of the products' operands or of the activations: "bfloat16", "float32".
 * FLOPs    of products and attention, 2 for a multiply-add, as carried out: attention's backward makes
 *          the scores again, which is 5 products against the forward's 2. 0 for row operations.
 * Bytes    of row operations: every array once for each time it is read or written. 0 for products.
 * Weights  a weight made by this table is used and freed by this table alone.
 * Errors   those of the wrapped table.
 * Threads  as the wrapped table; only the thread that calls is timed.
 */
#ifndef TG_KERN_TRACED_H
#define TG_KERN_TRACED_H

#include "kern/kern.h"

/* The caller keeps the table alive as long as what computes through it. */
tg_kern tg_kern_traced(const tg_stream *stream);

#endif
