/* rows.h - the kernels that run on one thread, per instruction set.
 *
 * Each works on a range of rows or elements; the drivers (norm.c, tokens.c, ...) split the work
 * over threads and add partial sums in a fixed order. Pointers are to the whole arrays unless a
 * comment says otherwise. Reentrant, no memory, no errors. */
#ifndef TG_KERN_CPU_ROWS_H
#define TG_KERN_CPU_ROWS_H

#include "kern/kern.h"

/* Sums over rows that norm_backward adds to; each [C] or NULL. */
typedef struct tg_norm_sums {
    float *dw, *db, *dls;
} tg_norm_sums;

typedef struct tg_rows {
    void (*norm_forward)(const tg_norm_forward *args, size_t begin, size_t end);
    void (*norm_backward)(const tg_norm_backward *args, const tg_norm_sums *sums, size_t begin,
                          size_t end);

    /* On n elements from the pointers given. */
    void (*gelu_forward)(tg_gelu kind, tg_dtype dtype, size_t n, const void *h, void *out_g);
    void (*gelu_backward)(tg_gelu kind, tg_dtype dtype, size_t n, const void *h, const void *dg,
                          void *out_g, void *out_dh);
    /* out[c] (+)= sum_r dy[r,c] for C columns from the pointers given. */
    void (*column_sums)(tg_dtype dtype, size_t R, size_t C, size_t ld, const void *dy, float *out,
                        bool accumulate);

    /* Rows of image pixels: row i is (b, y) of all three channels, i in [0, B*S_h). */
    void (*patch_rows)(const tg_patch_shape *shape, const float *image, void *out_patches,
                       size_t begin, size_t end);

    /* Rows of tokens, i = b*T + t. */
    void (*tokens_assemble)(const tg_tokens_shape *shape, const void *patch, const float *prefix,
                            const float *pos, float *out_x, size_t begin, size_t end);
    /* Token positions t of all samples; dprefix and dpos as in the contract. */
    void (*tokens_backward)(const tg_tokens_shape *shape, const float *dx, void *out_dpatch,
                            float *dprefix, float *dpos, bool accumulate, size_t begin, size_t end);
    /* Samples b. */
    void (*tokens_mean)(size_t T, size_t C, size_t first, const float *x, float *out_mean,
                        size_t begin, size_t end);
    void (*tokens_mean_backward)(size_t T, size_t C, size_t first, const float *d_out, float *dres,
                                 bool dres_zero, size_t begin, size_t end);
    /* n elements from the pointers given; one of the two dtypes is TG_F32. */
    void (*convert)(size_t n, const void *x, tg_dtype from, tg_dtype to, void *out);

    /* One sample of K values from the pointers given; out_d NULL: no gradient. */
    float (*cross_entropy)(size_t K, const float *logits, const float *target, float weight,
                           float *out_d, bool accumulate);
    float (*kl)(size_t K, const float *student, const float *teacher, float temperature,
                float weight, float *out_d, bool accumulate);
    float (*squared_error)(size_t K, const float *x, const float *y, float weight, float *out_d,
                           bool accumulate);

    /* n elements from the pointers given. */
    void (*adamw)(size_t n, float *p, const float *g, float *m, float *v, float *average,
                  const tg_adamw *hyper);
    double (*sum_squares)(size_t n, const float *x);
    void (*average)(size_t n, float *e, const float *p, float decay);
} tg_rows;

/* The widest version that `level` allows. Static. */
const tg_rows *tg_rows_select(tg_cpu_level level);

extern const tg_rows tg_rows_portable;
#if defined(__x86_64__)
extern const tg_rows tg_rows_avx2, tg_rows_avx512, tg_rows_avx512bf16;
#endif

#endif
