/* attention.h - multi-head self-attention on packed q,k,v, never storing the T x T matrix.
 *
 * Source     Vaswani et al. 2017; backward from the logarithm of the sum: Dao et al., "FlashAttention", 2022.
 * Formula    q,k,v = qkv[b,t,0..2,h,:];  S = scale q k^T;  P = softmax(S);  o[b,t,h,:] = P v
 *            lse[b,h,t] = max + log sum exp of row t of S (natural logarithm)
 *            backward: delta[t] = do.o;  P = exp(S - lse);  dv = P^T do;  dS = P * (do v^T - delta);
 *            dq = scale dS k;  dk = scale dS^T q
 * Arguments  qkv [B,T,3,H,D], o and do [B,T,H*D], dqkv like qkv, all in `dtype`; lse fp32 [B,H,T].
 *            `T_q` <= T: only the first T_q query rows of each sample are computed (out_o is then
 *            [B,T_q,H*D], lse [B,H,T_q]); backward with T_q < T writes dq of the other rows as 0.
 *            scale > 0 and finite, usually 1/sqrt(D).
 * Memory     scratch comes from the device, per thread, grown on first use of a shape.
 * Accuracy   softmax, sums and delta in fp32. fp32: 1e-5 relative to max |v|; bf16: P and dS are
 *            rounded to bf16 before their products (as PyTorch's fused kernels do).
 * Overflow   A query row with a product q k that is not finite in fp32, or whose largest score is
 *            beyond TG_ATTENTION_FARTHEST, gets NaN in o and lse, and backward NaN in its dq and in
 *            the dk and dv that it reaches: an answer that overflows is no answer.
 */
#ifndef TG_KERN_ATTENTION_H
#define TG_KERN_ATTENTION_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stddef.h>

/* In units of log 2. From here on the rounding of a score alone changes its weight by 4 % and more. */
#define TG_ATTENTION_FARTHEST 1048576.0f

typedef struct tg_attention_shape {
    size_t B, T, H, D;
    size_t T_q;
    float scale;
    tg_dtype dtype;
} tg_attention_shape;

typedef struct tg_attention_ops {
    /* lse may be NULL (inference). */
    tg_status (*forward)(tg_stream *stream, const tg_attention_shape *shape, const void *qkv,
                         void *out_o, float *out_lse);
    tg_status (*backward)(tg_stream *stream, const tg_attention_shape *shape, const void *qkv,
                          const void *o, const float *lse, const void *d_o, void *out_dqkv);
} tg_attention_ops;

#endif
