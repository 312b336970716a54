/* norm.h - residual addition fused with layer normalisation, forward and backward.
 *
 * Source     Ba, Kiros, Hinton, "Layer normalization", 2016; LayerScale: Touvron et al., "Going
 *            deeper with image transformers", 2021; stochastic depth: Huang et al., 2016.
 * Forward    x'[r,c] = x[r,c] + s[r / rows_per_sample] * ls[c] * branch[r,c]     (if branch)
 *            y[r,c]  = (x'[r,c] - mean[r]) * rstd[r] * w[c] + b[c],  rstd = 1/sqrt(var + eps)
 *            s: per-sample factor of stochastic depth (0 or 1/keep), NULL = 1. ls NULL = 1.
 *            out_y NULL: only the residual addition. w, b NULL with out_y: w = 1, b = 0.
 * Backward   dx'[r,c] (+)= layer-norm backward of dy       (dres_zero true: starts from 0)
 *            dw[c] (+)= sum_r dy xhat;   db[c] (+)= sum_r dy
 *            then, for the branch that was added before (if out_dbranch):
 *            dbranch[r,c] = s[r / rows_per_sample] * ls[c] * dx'[r,c]
 *            dls[c] (+)= sum_r s branch[r,c] dx'[r,c]        (if dls; needs `branch`)
 *            With out_sums the sums of each TG_NORM_CHUNK rows are stored there instead, [chunks][3][C]
 *            for dw, db, dls (those wanted), and `gather` adds them up later, in order of the chunks.
 *            out_y (if given, with dy): y[r,c] again, the same bits as forward wrote
 *            dy NULL: no layer norm, only the branch part on the given dres (dres_zero is ignored).
 * Arguments  x, out_x fp32 rows of C with leading dimension ldx (out_x may equal x); branch and y in
 *            `dtype`, packed [R,C] unless ld given; statistics fp32 [R]; dres fp32, ldx.
 *            The gradient of the residual stream `dres` is fp32.
 * Spans      a call may do rows [row0, row0 + R) of a longer array: pointers are to row row0, only s
 *            counts from the array's first row. Gradients that accumulate span by span have the same
 *            bits as in one call where row0 is a multiple of TG_NORM_CHUNK.
 * Accuracy   statistics in two passes over the row in fp32: relative 1e-6 of the row's scale.
 */
#ifndef TG_KERN_NORM_H
#define TG_KERN_NORM_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows whose parameter gradients are summed first, before the sums of chunks are, in their order. */
enum { TG_NORM_CHUNK = 128 };

typedef struct tg_norm_forward {
    size_t R, C;
    size_t row0;            /* number of the first row */
    size_t rows_per_sample; /* > 0; rows r*rows_per_sample .. belong to sample r */
    tg_dtype dtype;
    size_t ldx; /* of x and out_x; >= C */
    size_t ldb; /* of branch; >= C */
    size_t ldy; /* of y; >= C */
    float eps;
    const float *x;
    const void *branch;         /* or NULL */
    const float *ls;            /* [C] or NULL */
    const float *sample_scale;  /* [samples] or NULL */
    const float *w, *b;         /* [C] or NULL */
    float *out_x;               /* needed when branch is given, else may be NULL */
    void *out_y;                /* or NULL */
    float *out_mean, *out_rstd; /* [R] or NULL */
} tg_norm_forward;

typedef struct tg_norm_backward {
    size_t R, C;
    size_t row0;
    size_t rows_per_sample;
    tg_dtype dtype;
    size_t ldx;                /* of x and dres */
    size_t ldb;                /* of branch and dbranch */
    size_t ldy;                /* of dy */
    const void *dy;            /* [R,C] dtype, or NULL */
    const float *x;            /* the normalised rows (x' of forward) */
    const float *mean, *rstd;  /* [R] */
    const float *w;            /* [C] or NULL = 1 */
    float *dres;               /* in: gradient of x' from above; out: + layer-norm backward */
    bool dres_zero;            /* true: dres holds nothing yet */
    float *dw, *db;            /* [C] or NULL */
    const void *branch;        /* needed for dls only */
    const float *ls;           /* [C] or NULL */
    const float *sample_scale; /* or NULL */
    void *out_dbranch;         /* [R,C] dtype or NULL */
    float *dls;                /* [C] or NULL */
    const float *b;            /* [C] or NULL; for out_y only */
    void *out_y;               /* [R,C] dtype, ldy, or NULL */
    float *out_sums;           /* or NULL: dw, db, dls are only asked whether they are wanted */
    bool accumulate;           /* of dw, db, dls */
} tg_norm_backward;

typedef struct tg_norm_gather {
    size_t chunks, C;
    const float *sums;    /* [chunks][3][C] */
    float *dw, *db, *dls; /* [C] or NULL */
    bool accumulate;
} tg_norm_gather;

typedef struct tg_norm_ops {
    void (*forward)(tg_stream *stream, const tg_norm_forward *args);
    void (*backward)(tg_stream *stream, const tg_norm_backward *args);
    void (*gather)(tg_stream *stream, const tg_norm_gather *args);
} tg_norm_ops;

#endif
