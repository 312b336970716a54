/* attention_bf16.h - attention of one head on bf16 operands, for CPUs with AVX512_BF16.
 *
 * The algorithm is written once over a `product`; the instruction sets differ in it alone.
 *
 * Operands   A product computes c[M][N] (+)= a[M][K] b[K][N] in fp32. a is row-major bf16. b is
 *            "paired": panels of 16 columns, each [K/2][16][2], so that one 32-bit element holds
 * two neighbours along K - the layout both TDPBF16PS and VDPBF16PS read. Panels follow each other,
 * K*16 elements apart. c is row-major fp32; `add` keeps what it holds. Sizes      K is a multiple
 * of 32, N of 16. a and c have room for M rounded up to 16 rows; the rows beyond M are read and
 * written, but never mixed with the others.
 */
#ifndef TG_KERN_CPU_ATTENTION_BF16_H
#define TG_KERN_CPU_ATTENTION_BF16_H

#include "kern/cpu/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_attention_operands {
    size_t M, N, K;
    const uint16_t *a;
    size_t lda;
    const uint16_t *b;
    float *c;
    size_t ldc;
    bool add;
} tg_attention_operands;

typedef void tg_attention_product(const tg_attention_operands *p);

/* A block of forward rows between its two products: out_p = exp2(factor s - max) for columns below
 * T, zero from there to Tp (a multiple of 32); out_sum = the sums of the rows; out_o = out_p v, not
 * yet divided. `rows` may be any number up to what the buffers hold, rounded up to 16. */
typedef struct tg_attention_weights {
    size_t rows, T, Tp, N;
    float factor;
    const float *s;   /* [rows][ld] */
    const float *max; /* [rows] */
    size_t ld;        /* of s and p */
    uint16_t *p;
    const uint16_t *v; /* paired, K = Tp, N columns */
    float *sum;
    float *o;
    size_t ldo;
} tg_attention_weights;

typedef struct tg_attention_bf16 {
    tg_attention_product *product;
    /* Does the exponentials and their product in one, or returns false without doing anything.
     * NULL: one after the other. */
    bool (*weigh)(const tg_attention_weights *w);
} tg_attention_bf16;

/* Rows of one operand as they lie in the caller's arrays. */
typedef struct tg_attention_rows {
    const uint16_t *at;
    size_t stride; /* elements */
    size_t count;
    size_t D;
} tg_attention_rows;

/* out[padded][D_padded]: the rows, zero in the columns from D to D_padded (a multiple of 32) and in
 * the rows from count to `padded`. More rows than `padded` may be given: they are prefetched. */
void tg_attention_pack_rows(const tg_attention_rows *in, size_t D_padded, size_t padded,
                            uint16_t *out);
/* Paired operand b whose K is the D of the rows (zero-padded to D_padded) and whose N are the rows
 * (zero-padded to `padded`, a multiple of 16): the transposed matrix. */
void tg_attention_pack_transposed(const tg_attention_rows *in, size_t D_padded, size_t padded,
                                  uint16_t *out);
/* Paired operand b whose K are the rows (zero-padded to `padded`, even) and whose N is their D. */
void tg_attention_pack_pairs(const tg_attention_rows *in, size_t D_padded, size_t padded,
                             uint16_t *out);
/* out[D_padded][ld] = the transposed rows, row-major, columns zero from count to `padded` (a
 * multiple of 16). */
void tg_attention_pack_columns(const tg_attention_rows *in, size_t D_padded, size_t padded,
                               uint16_t *out, size_t ld);

size_t tg_attention_bf16_forward_bytes(size_t T, size_t D);
size_t tg_attention_bf16_backward_bytes(size_t T, size_t T_q, size_t D);
void tg_attention_bf16_forward(const tg_attention_head *head, const tg_attention_forward_out *out,
                               void *scratch, const tg_attention_bf16 *level);
void tg_attention_bf16_backward(const tg_attention_head *head,
                                const tg_attention_backward_args *args, void *scratch,
                                tg_attention_product *product);

/* Backward on AMX tiles for heads of width 32 or 64 (`fits`). `product` works on configured tiles. Streams
 * dq, dk and dv: a fence follows before other threads read them. */
bool tg_attention_fused_fits(size_t D);
size_t tg_attention_fused_backward_bytes(size_t T, size_t T_q, size_t D);
void tg_attention_fused_backward(const tg_attention_head *head,
                                 const tg_attention_backward_args *args, void *scratch,
                                 tg_attention_product *product);

#endif
