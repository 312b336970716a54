/* product.h - matrix products through oneDNN, prepared once per shape and shared by the stream.
 *
 * Formula    C[M,N] (+)= A[M,K] B[K,N] (+ bias[N]) (then GELU)
 * A product is one oneDNN matmul primitive with the memory objects and scratchpads of each thread.
 * Two ways to run it:
 *   per thread   every thread of an OpenMP team runs it on rows of its own, one core each: results
 *                stay in that core's cache for the fused operation that follows;
 *   whole team   oneDNN divides one product among the stream's threads (weight gradients, whose
 *                sums run over all rows).
 * B in the layout oneDNN likes best (tg_product_layout) runs up to 1.4 times faster than as stored.
 *
 * Memory   primitives and scratchpads live in the stream until it is closed; nothing is allocated
 *          once a shape has been prepared.
 * Threads  tg_product_get from the stream's own thread, outside parallel regions; tg_product_run
 *          from any thread of the team, each with its own `thread` number.
 */
#ifndef TG_KERN_CPU_PRODUCT_H
#define TG_KERN_CPU_PRODUCT_H

#include "dev/cpu/stream.h"
#include "kern/mlp.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_product_finish {
    TG_FINISH_NONE,
    TG_FINISH_ACCUMULATE, /* add to C (fp32 C) */
    TG_FINISH_GELU_EXACT,
    TG_FINISH_GELU_TANH
} tg_product_finish;

typedef struct tg_product_shape {
    size_t M, K, N;
    tg_dtype in, out;
    bool a_transposed; /* A is stored [K,M] */
    bool bias;         /* fp32 [N] */
    bool whole_team;
    tg_product_finish finish;
    const dnnl_memory_desc_t *b_layout; /* NULL: B is stored [K,N] row-major; borrowed for the call */
} tg_product_shape;

typedef struct tg_product tg_product;

/* The layout of B [K,N] that oneDNN picks for many rows. Row-major when it has no preference. */
tg_status tg_product_layout(tg_stream *stream, size_t K, size_t N, tg_dtype dtype,
                            dnnl_memory_desc_t *out) TG_MUST_CHECK;

/* Finds or prepares the product. Borrowed until the stream is closed. */
tg_status tg_product_get(tg_stream *stream, const tg_product_shape *shape,
                         tg_product **out) TG_MUST_CHECK;

/* thread: number in the team, 0 for whole-team products. */
tg_status tg_product_run(tg_stream *stream, tg_product *product, int thread, const void *a,
                         const void *b, const float *bias, void *out_c);

#endif
