/* norm_rows.h - bodies of the norm kernels (kern/norm.h) for one instruction set.
 *
 * A row is swept two or three times; it stays in the first-level cache, so memory is read and
 * written once. Statistics are summed in VF_LANES fp32 lanes, then across lanes. */
#ifndef TG_KERN_CPU_NORM_ROWS_H
#define TG_KERN_CPU_NORM_ROWS_H

#include "kern/cpu/rows.h"
#include "kern/cpu/simd.h"

VF_INLINE float norm_sample_factor(const float *sample_scale, size_t row, size_t rows_per_sample)
{
    return sample_scale ? sample_scale[row / rows_per_sample] : 1;
}

/* A parameter vector that may be absent. */
VF_INLINE vf norm_load_or(const float *p, size_t c, size_t n, float absent)
{
    return p ? vf_load(p + c, n) : vf_set(absent);
}

/* out_x = x + s ls branch for lanes c..c+n; returns out_x */
VF_INLINE vf norm_add_lanes(const tg_norm_forward *a, size_t r, size_t c, size_t n, vf s,
                            tg_dtype dtype)
{
    vf x = vf_load(a->x + r * a->ldx + c, n);
    if (a->branch) {
        vf factor = a->ls ? s * vf_load(a->ls + c, n) : s;
        x = vf_fma(factor, vf_load_as(a->branch, dtype, r * a->ldb + c, n), x);
    }
    if (a->out_x && (a->branch || a->out_x != a->x))
        vf_store(a->out_x + r * a->ldx + c, n, x);
    return x;
}

/* First sweep: the residual addition. Returns the mean of the row. */
VF_INLINE float norm_add_row(const tg_norm_forward *a, size_t r, tg_dtype dtype)
{
    const size_t whole = a->C - a->C % VF_LANES;
    const vf s = vf_set(norm_sample_factor(a->sample_scale, a->row0 + r, a->rows_per_sample));
    vf sum = vf_set(0);
    for (size_t c = 0; c < whole; c += VF_LANES)
        sum = sum + norm_add_lanes(a, r, c, VF_LANES, s, dtype);
    if (whole < a->C)
        sum = sum + norm_add_lanes(a, r, whole, a->C - whole, s, dtype);
    return vf_sum(sum) / (float)a->C;
}

VF_INLINE float norm_variance(const float *x, size_t C, float mean)
{
    const size_t whole = C - C % VF_LANES;
    const vf m = vf_set(mean);
    vf sum = vf_set(0);
    for (size_t c = 0; c < whole; c += VF_LANES) {
        vf d = vf_load(x + c, VF_LANES) - m;
        sum = vf_fma(d, d, sum);
    }
    float rest = 0;
    for (size_t c = whole; c < C; c++)
        rest += (x[c] - mean) * (x[c] - mean);
    return (vf_sum(sum) + rest) / (float)C;
}

/* y of lanes c..c+n, in forward and again in backward */
VF_INLINE vf norm_affine(vf xhat, const float *w, const float *b, size_t c, size_t n)
{
    if (w)
        return vf_fma(xhat, vf_load(w + c, n), norm_load_or(b, c, n, 0));
    return b ? xhat + vf_load(b + c, n) : xhat;
}

VF_INLINE void norm_write_lanes(const tg_norm_forward *a, const float *x, size_t r, size_t c,
                                size_t n, vf mean, vf rstd, tg_dtype dtype)
{
    vf xhat = (vf_load(x + c, n) - mean) * rstd;
    vf_store_as(a->out_y, dtype, r * a->ldy + c, n, norm_affine(xhat, a->w, a->b, c, n));
}

VF_INLINE void norm_write_row(const tg_norm_forward *a, const float *x, size_t r, float mean,
                              float rstd, tg_dtype dtype)
{
    const size_t whole = a->C - a->C % VF_LANES;
    const vf m = vf_set(mean), s = vf_set(rstd);
    for (size_t c = 0; c < whole; c += VF_LANES)
        norm_write_lanes(a, x, r, c, VF_LANES, m, s, dtype);
    if (whole < a->C)
        norm_write_lanes(a, x, r, whole, a->C - whole, m, s, dtype);
}

/* A copy of the arguments: stores of vectors could change *given for all the compiler knows, and it would
 * load each field again for every one of them. */
VF_INLINE void norm_forward_as(const tg_norm_forward *given, size_t begin, size_t end,
                               tg_dtype dtype)
{
    const tg_norm_forward copy = *given, *a = &copy;
    const bool statistics = a->out_y || a->out_mean || a->out_rstd;
    for (size_t r = begin; r < end; r++) {
        const float *x = (a->out_x ? a->out_x : a->x) + r * a->ldx;
        float mean = norm_add_row(a, r, dtype);
        if (!statistics)
            continue;
        float rstd = 1 / sqrtf(norm_variance(x, a->C, mean) + a->eps);
        if (a->out_mean)
            a->out_mean[r] = mean;
        if (a->out_rstd)
            a->out_rstd[r] = rstd;
        if (a->out_y)
            norm_write_row(a, x, r, mean, rstd, dtype);
    }
}

static inline void norm_forward_rows(const tg_norm_forward *a, size_t begin, size_t end)
{
    if (a->dtype == TG_BF16)
        norm_forward_as(a, begin, end, TG_BF16);
    else
        norm_forward_as(a, begin, end, TG_F32);
}

/* What the lanes of one row of backward share. */
typedef struct norm_row {
    size_t r;
    vf mean, rstd, s;
    vf mean_g, mean_gx; /* of g = dy w and of g xhat over the row */
} norm_row;

/* Lanes past n add nothing: dy is 0 there, and only products with dy are summed. */
VF_INLINE void norm_sum_lanes(const tg_norm_backward *a, const norm_row *row,
                              const tg_norm_sums *sums, size_t c, size_t n, tg_dtype dtype,
                              vf *sum_g, vf *sum_gx)
{
    vf dy = vf_load_as(a->dy, dtype, row->r * a->ldy + c, n);
    vf xhat = (vf_load(a->x + row->r * a->ldx + c, n) - row->mean) * row->rstd;
    vf g = a->w ? dy * vf_load(a->w + c, n) : dy;
    *sum_g = *sum_g + g;
    *sum_gx = vf_fma(g, xhat, *sum_gx);
    if (sums->dw)
        vf_store(sums->dw + c, n, vf_fma(dy, xhat, vf_load(sums->dw + c, n)));
    if (sums->db)
        vf_store(sums->db + c, n, dy + vf_load(sums->db + c, n));
}

VF_INLINE void norm_sum_row(const tg_norm_backward *a, norm_row *row, const tg_norm_sums *sums,
                            tg_dtype dtype)
{
    const size_t whole = a->C - a->C % VF_LANES;
    vf sum_g = vf_set(0), sum_gx = vf_set(0);
    for (size_t c = 0; c < whole; c += VF_LANES)
        norm_sum_lanes(a, row, sums, c, VF_LANES, dtype, &sum_g, &sum_gx);
    if (whole < a->C)
        norm_sum_lanes(a, row, sums, whole, a->C - whole, dtype, &sum_g, &sum_gx);
    row->mean_g = vf_set(vf_sum(sum_g) / (float)a->C);
    row->mean_gx = vf_set(vf_sum(sum_gx) / (float)a->C);
}

/* dres and, from it, the gradient of the branch. */
VF_INLINE void norm_backward_lanes(const tg_norm_backward *a, const norm_row *row,
                                   const tg_norm_sums *sums, size_t c, size_t n, tg_dtype dtype)
{
    float *dres = a->dres + row->r * a->ldx + c;
    vf dx = a->dy && a->dres_zero ? vf_set(0) : vf_load(dres, n);
    if (a->dy) {
        vf dy = vf_load_as(a->dy, dtype, row->r * a->ldy + c, n);
        vf xhat = (vf_load(a->x + row->r * a->ldx + c, n) - row->mean) * row->rstd;
        vf g = a->w ? dy * vf_load(a->w + c, n) : dy;
        vf centred = vf_fma(vf_set(0) - xhat, row->mean_gx, g - row->mean_g);
        dx = vf_fma(row->rstd, centred, dx);
        vf_store(dres, n, dx);
        if (a->out_y)
            vf_store_as(a->out_y, dtype, row->r * a->ldy + c, n,
                        norm_affine(xhat, a->w, a->b, c, n));
    }
    if (a->out_dbranch) {
        vf factor = a->ls ? row->s * vf_load(a->ls + c, n) : row->s;
        vf_store_as(a->out_dbranch, dtype, row->r * a->ldb + c, n, factor * dx);
    }
    if (sums->dls) {
        vf branch = row->s * vf_load_as(a->branch, dtype, row->r * a->ldb + c, n);
        vf_store(sums->dls + c, n, vf_fma(branch, dx, vf_load(sums->dls + c, n)));
    }
}

VF_INLINE void norm_backward_as(const tg_norm_backward *given, const tg_norm_sums *given_sums,
                                size_t begin, size_t end, tg_dtype dtype)
{
    const tg_norm_backward copy = *given, *a = &copy;
    const tg_norm_sums copied_sums = *given_sums, *sums = &copied_sums;
    const size_t whole = a->C - a->C % VF_LANES;
    for (size_t r = begin; r < end; r++) {
        norm_row row = {.r = r, .mean = vf_set(0), .rstd = vf_set(0)};
        row.s = vf_set(norm_sample_factor(a->sample_scale, a->row0 + r, a->rows_per_sample));
        if (a->dy) {
            row.mean = vf_set(a->mean[r]);
            row.rstd = vf_set(a->rstd[r]);
            norm_sum_row(a, &row, sums, dtype);
        }
        for (size_t c = 0; c < whole; c += VF_LANES)
            norm_backward_lanes(a, &row, sums, c, VF_LANES, dtype);
        if (whole < a->C)
            norm_backward_lanes(a, &row, sums, whole, a->C - whole, dtype);
    }
}

static inline void norm_backward_rows(const tg_norm_backward *a, const tg_norm_sums *sums,
                                      size_t begin, size_t end)
{
    if (a->dtype == TG_BF16)
        norm_backward_as(a, sums, begin, end, TG_BF16);
    else
        norm_backward_as(a, sums, begin, end, TG_F32);
}

#endif
