/* kern.h - the table of operations of a device.
 *
 * Every operation has a contract header (linear.h, norm.h, attention.h, ...) that states its formula,
 * shapes and accuracy. model/ and loss/ take a `const tg_kern *` and a stream and call through it.
 *
 * Conventions of all operations
 *   - Arrays are row-major, 64-byte aligned at their start, in the stream's device memory, borrowed.
 *     A leading dimension `ld...` is in elements.
 *   - `dtype` is the compute dtype of activations: TG_F32 or TG_BF16 (only where
 *     tg_stream_has_bf16). Sums, statistics, losses, the residual stream, parameters and their
 *     gradients are always fp32.
 *   - "accumulate" true adds to the parameter gradient, false overwrites it.
 *   - Results are the same bits for the same inputs and thread count. Reductions over rows use
 *     fixed-size chunks, so elementwise and norm gradients do not depend on the thread count at all.
 *   - Zero rows are allowed: nothing is written but overwritten gradients, which become 0. Wrong
 *     sizes are asserts (our bugs).
 *   - Operations returning tg_status can fail (a library refused a shape, memory was short):
 *     TG_ERROR_MACHINE. The others cannot.
 *   - Nothing is allocated after the first call with a given shape.
 */
#ifndef TG_KERN_KERN_H
#define TG_KERN_KERN_H

#include "dev/dev.h"
#include "kern/attention.h"
#include "kern/linear.h"
#include "kern/loss.h"
#include "kern/mlp.h"
#include "kern/norm.h"
#include "kern/optim.h"
#include "kern/patch.h"
#include "kern/tokens.h"

typedef struct tg_kern {
    const char *name; /* "ref" or "cpu" */
    /* Rows that a thread should take through several row-wise operations (products, norms, feed-forward)
     * together, so that what one writes is still in its cache when the next reads it: a multiple of
     * TG_NORM_CHUNK. 0: all rows at once. */
    size_t span_rows;
    tg_linear_ops linear;
    tg_mlp_ops mlp;
    tg_norm_ops norm;
    tg_attention_ops attention;
    tg_patch_ops patch;
    tg_tokens_ops tokens;
    tg_loss_ops loss;
    tg_optim_ops optim;
} tg_kern;

/* Plain C, one thread, obvious: the oracle of the tests. fp32 and bf16 storage. */
const tg_kern *tg_kern_ref(void);
/* The fast table for the stream's device and instruction set level. Borrowed, static. */
const tg_kern *tg_kern_select(const tg_stream *stream);

#endif
