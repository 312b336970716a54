/* attention_bf16.h - attention of one head on bf16 operands, for CPUs with AVX512_BF16.
 *
 * The algorithm is written once, over a `tg_attention_bf16` that the instruction sets differ in.
 *
 * Operands   A product computes c[M][N] (+)= a[M][K] b[K][N] in fp32. a is row-major bf16. b is
 *            "paired": panels of 16 columns, each [K/2][16][2], so that one 32-bit word holds two
 *            neighbours along K. Panels follow each other, K*16 elements apart. c is row-major fp32;
 *            `add` keeps what it holds.
 * Order      Where b was paired from rows (pack_pairs, ds_p) every two panels hold their 32 columns in
 *            the order of kern/cpu/pairs.h, and so do the columns of c.
 * Sizes      K is a multiple of 32, N of 16. a and c have room for M rounded up to 16 rows; the rows
 *            beyond M are read and written, but never mixed with the others.
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

/* A block of query rows from q to weights that are not yet divided: out_p = exp2(factor q k) for columns
 * below T, zero from there to Tp; out_sum = the sums of the rows. */
typedef struct tg_attention_block {
    size_t rows; /* up to 32; q, p and sum hold 32 */
    size_t T, Tp, D;
    float factor;
    const uint16_t *q;
    size_t q_stride;
    const uint16_t *k; /* paired, K = D, Tp columns */
    float *s;          /* room for 2 x 32 x 32, or 32 x 32 when Tp is 32 */
    uint16_t *p;
    size_t ld; /* of p */
    float *sum;
    tg_attention_ahead *ahead;
} tg_attention_block;

/* A block of keys and all queries in backward: out_p = P^T = exp2(factor k q - lse), out_ds = dS^T =
 * P^T (v do - delta), both [32][ld], and ds_p, the same in pairs; zero in ds_p from `rows` to 32. */
typedef struct tg_attention_keys {
    size_t rows; /* up to 32; k and v hold 32, p and ds need not be right beyond them */
    size_t T_q, Qp, D;
    float factor;
    const uint16_t *k, *v;
    size_t stride;              /* of k and v */
    const uint16_t *q_t, *do_t; /* paired, K = D, Qp columns */
    const float *lse, *delta;   /* [Qp]; lse in units of log 2, huge beyond T_q so that P is 0 */
    float *s, *dp;              /* each [32][ld] */
    size_t ld;
    uint16_t *p, *ds;
    uint16_t *ds_p; /* the block's rows of an operand with K = keys, N = queries */
    size_t panel;   /* elements between panels of ds_p */
    tg_attention_ahead *ahead;
} tg_attention_keys;

typedef struct tg_attention_bf16 {
    tg_attention_product *product;
    /* Does the exponentials and their product in one, or returns false without doing anything. */
    bool (*weigh)(const tg_attention_weights *w);
    /* False: a score is too far from 0, or D does not suit; nothing counts. */
    bool (*near_block)(const tg_attention_block *block);
    /* False without doing anything: D does not suit. */
    bool (*weigh_keys)(const tg_attention_keys *keys);
    /* Each of the three may be NULL: step by step, by `product`. */
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
/* Streams dq, dk and dv: a fence follows before other threads read them. */
void tg_attention_bf16_backward(const tg_attention_head *head,
                                const tg_attention_backward_args *args, void *scratch,
                                const tg_attention_bf16 *level);

/* Blocks on AMX tiles, for heads of width 32 or 64, as tg_attention_bf16 wants them. */
bool tg_attention_amx_near_block(const tg_attention_block *block);
bool tg_attention_amx_weigh_keys(const tg_attention_keys *keys);

#endif
