/* tokens_rows.h - bodies of the patch and token kernels (kern/patch.h, kern/tokens.h) and of
 * conversions and column sums, for one instruction set. */
#ifndef TG_KERN_CPU_TOKENS_ROWS_H
#define TG_KERN_CPU_TOKENS_ROWS_H

#include "kern/cpu/rows.h"
#include "kern/cpu/simd.h"

VF_INLINE void convert_as(size_t n, const void *x, tg_dtype from, tg_dtype to, void *out)
{
    const size_t whole = n - n % VF_LANES;
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store_as(out, to, i, VF_LANES, vf_load_as(x, from, i, VF_LANES));
    if (whole < n)
        vf_store_as(out, to, whole, n - whole, vf_load_as(x, from, whole, n - whole));
}

static inline void convert_rows(size_t n, const void *x, tg_dtype from, tg_dtype to, void *out)
{
    if (from == TG_BF16)
        convert_as(n, x, TG_BF16, TG_F32, out);
    else if (to == TG_BF16)
        convert_as(n, x, TG_F32, TG_BF16, out);
    else
        memcpy(out, x, n * sizeof(float));
}

/* One row of pixels of one channel belongs to GW patches, P pixels each. */
VF_INLINE void patch_row_as(const float *pixels, size_t GW, size_t P, void *out, size_t at,
                            tg_dtype dtype)
{
    for (size_t gx = 0; gx < GW; gx++)
        for (size_t px = 0; px < P; px += VF_LANES)
            vf_store_as(out, dtype, at + gx * 3 * P * P + px, P - px,
                        vf_load(pixels + gx * P + px, P - px));
}

static inline void patch_rows(const tg_patch_shape *s, const float *image, void *out, size_t begin,
                              size_t end)
{
    const size_t P = s->P, GW = s->S_w / P, GH = s->S_h / P;
    for (size_t i = begin; i < end; i++) {
        size_t b = i / s->S_h, y = i % s->S_h;
        size_t first = (b * GH + y / P) * GW * 3 * P * P + y % P * P;
        for (size_t c = 0; c < 3; c++) {
            const float *pixels = image + ((b * 3 + c) * s->S_h + y) * s->S_w;
            if (s->dtype == TG_BF16)
                patch_row_as(pixels, GW, P, out, first + c * P * P, TG_BF16);
            else
                patch_row_as(pixels, GW, P, out, first + c * P * P, TG_F32);
        }
    }
}

VF_INLINE void add_position_as(size_t n, const void *patch, size_t at, const float *pos, float *out,
                               tg_dtype dtype)
{
    for (size_t c = 0; c < n; c += VF_LANES)
        vf_store(out + c, n - c, vf_load_as(patch, dtype, at + c, n - c) + vf_load(pos + c, n - c));
}

static inline void tokens_assemble_rows(const tg_tokens_shape *s, const void *patch,
                                        const float *prefix, const float *pos, float *out_x,
                                        size_t begin, size_t end)
{
    const size_t T = s->prefix_count + s->N, C = s->C;
    for (size_t i = begin; i < end; i++) {
        size_t b = i / T, t = i % T;
        if (t < s->prefix_count) {
            memcpy(out_x + i * C, prefix + t * C, C * sizeof *prefix);
            continue;
        }
        size_t n = t - s->prefix_count, at = (b * s->N + n) * C;
        if (s->dtype == TG_BF16)
            add_position_as(C, patch, at, pos + n * C, out_x + i * C, TG_BF16);
        else
            add_position_as(C, patch, at, pos + n * C, out_x + i * C, TG_F32);
    }
}

/* Token t of all samples, lanes c..c+n: dpatch of each and, if asked for, their sum. */
VF_INLINE void token_backward_lanes(const tg_tokens_shape *s, const float *dx, void *out_dpatch,
                                    float *sum, bool accumulate, size_t t, size_t c, size_t n,
                                    tg_dtype dtype)
{
    const size_t T = s->prefix_count + s->N, C = s->C;
    vf total = sum && accumulate ? vf_load(sum + c, n) : vf_set(0);
    for (size_t b = 0; b < s->B; b++) {
        vf d = vf_load(dx + (b * T + t) * C + c, n);
        if (t >= s->prefix_count)
            vf_store_as(out_dpatch, dtype, (b * s->N + t - s->prefix_count) * C + c, n, d);
        total = total + d;
    }
    if (sum)
        vf_store(sum + c, n, total);
}

static inline void tokens_backward_rows(const tg_tokens_shape *s, const float *dx, void *out_dpatch,
                                        float *dprefix, float *dpos, bool accumulate, size_t begin,
                                        size_t end)
{
    for (size_t t = begin; t < end; t++) {
        float *sum = t < s->prefix_count ? dprefix : dpos;
        if (sum)
            sum += (t < s->prefix_count ? t : t - s->prefix_count) * s->C;
        for (size_t c = 0; c < s->C; c += VF_LANES)
            if (s->dtype == TG_BF16)
                token_backward_lanes(s, dx, out_dpatch, sum, accumulate, t, c, s->C - c, TG_BF16);
            else
                token_backward_lanes(s, dx, out_dpatch, sum, accumulate, t, c, s->C - c, TG_F32);
    }
}

static inline void tokens_mean_rows(size_t T, size_t C, size_t first, const float *x,
                                    float *out_mean, size_t begin, size_t end)
{
    const vf count = vf_set((float)(T - first));
    for (size_t b = begin; b < end; b++)
        for (size_t c = 0; c < C; c += VF_LANES) {
            vf sum = vf_set(0);
            for (size_t t = first; t < T; t++)
                sum = sum + vf_load(x + (b * T + t) * C + c, C - c);
            vf_store(out_mean + b * C + c, C - c, sum / count);
        }
}

VF_INLINE void mean_backward_lanes(size_t T, size_t first, float *dres, size_t C, size_t n, vf d,
                                   bool dres_zero)
{
    for (size_t t = 0; t < T; t++, dres += C) {
        vf own = t < first ? vf_set(0) : d;
        vf_store(dres, n, dres_zero ? own : vf_load(dres, n) + own);
    }
}

static inline void tokens_mean_backward_rows(size_t T, size_t C, size_t first, const float *d_out,
                                             float *dres, bool dres_zero, size_t begin, size_t end)
{
    const vf count = vf_set((float)(T - first));
    for (size_t b = begin; b < end; b++)
        for (size_t c = 0; c < C; c += VF_LANES)
            mean_backward_lanes(T, first, dres + b * T * C + c, C, C - c,
                                vf_load(d_out + b * C + c, C - c) / count, dres_zero);
}

/* 64 rows of 4 vectors of columns at a time: the sums stay in registers. */
VF_INLINE void column_sums_as(size_t R, size_t ld, const void *dy, size_t at, size_t n, float *out,
                              tg_dtype dtype)
{
    for (size_t r = 0; r < R; r += 64) {
        vf s[4] = {vf_set(0), vf_set(0), vf_set(0), vf_set(0)};
        size_t last = r + 64 < R ? r + 64 : R;
        for (size_t i = r; i < last; i++)
            for (size_t v = 0; v < 4; v++)
                if (v * VF_LANES < n)
                    s[v] =
                        s[v] + vf_load_as(dy, dtype, i * ld + at + v * VF_LANES, n - v * VF_LANES);
        for (size_t v = 0; v < 4 && v * VF_LANES < n; v++) {
            float *to = out + v * VF_LANES;
            vf_store(to, n - v * VF_LANES, vf_load(to, n - v * VF_LANES) + s[v]);
        }
    }
}

static inline void column_sums_rows(tg_dtype dtype, size_t R, size_t C, size_t ld, const void *dy,
                                    float *out, bool accumulate)
{
    const size_t step = 4 * VF_LANES;
    if (!accumulate)
        memset(out, 0, C * sizeof *out);
    for (size_t c = 0; c < C; c += step) {
        if (dtype == TG_BF16 && C - c >= step)
            column_sums_as(R, ld, dy, c, step, out + c, TG_BF16);
        else if (dtype == TG_BF16)
            column_sums_as(R, ld, dy, c, C - c, out + c, TG_BF16);
        else if (C - c >= step)
            column_sums_as(R, ld, dy, c, step, out + c, TG_F32);
        else
            column_sums_as(R, ld, dy, c, C - c, out + c, TG_F32);
    }
}

#endif
