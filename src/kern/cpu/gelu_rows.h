/* gelu_rows.h - bodies of GELU and its slope (kern/cpu/gelu.h) for one instruction set.
 *
 * fp32 exact  Phi(-a) = exp(-a^2/2) M(a) with a minimax rational M (2^-27) on [0, 14], so that the
 *             left tail keeps its digits; a^2 is taken with its rounding error.
 * fp32 tanh   s = 1 / (1 + exp(-2u)) with exp of the negative side only.
 * bf16        AVX-512: quadratics picked from tables that live in registers (gelu_table.h), 1e-5
 *             absolute for Phi and 4e-5 for the slope; others: as fp32. */
#ifndef TG_KERN_CPU_GELU_ROWS_H
#define TG_KERN_CPU_GELU_ROWS_H

#include "kern/cpu/rows.h"
#include "kern/cpu/simd.h"
#if defined(__AVX512F__)
#include "kern/cpu/gelu_table.h"
#endif

/* Beyond it Phi(-|h|) is below the smallest normal number. */
#define GELU_EDGE 14.0f

/* a^2 - hi, where hi = a^2 rounded */
VF_INLINE vf gelu_square_rest(vf a, vf hi)
{
#if defined(__AVX2__)
    return vf_fma(a, a, vf_set(0) - hi);
#else
    vf top = (vf)((vf_bits)a & (vf_bits){-4096, -4096, -4096, -4096}), rest = a - top;
    return ((top * top - hi) + 2 * top * rest) + rest * rest;
#endif
}

/* Phi(h) and, for the slope, h phi(h) sqrt(2 pi). */
VF_INLINE void gelu_exact_parts(vf h, vf *out_phi, vf *out_h_density)
{
    vf a = vf_min(vf_set(GELU_EDGE), vf_abs(h));
    vf square = a * a;
    vf e = vf_exp(vf_set(-0.5f) * square);
    e = vf_fma(vf_set(-0.5f) * gelu_square_rest(a, square), e, e);
    vf n = vf_fma(vf_set(0.00407760840173442f), a, vf_set(0.040372535058956216f));
    n = vf_fma(n, a, vf_set(0.18246176159060892f));
    n = vf_fma(n, a, vf_set(0.43725079689661156f));
    n = vf_fma(n, a, vf_set(0.5f));
    vf d = vf_fma(vf_set(0.010220919757996634f), a, vf_set(0.10120574792763977f));
    d = vf_fma(d, a, vf_set(0.4674289224482106f));
    d = vf_fma(d, a, vf_set(1.1992904111986573f));
    d = vf_fma(d, a, vf_set(1.6723865491906291f));
    d = vf_fma(d, a, vf_set(1));
    vf tail = e * n / d;
    *out_phi = vf_if_negative(h, tail, vf_set(1) - tail);
    *out_h_density = vf_if_negative(h, vf_set(0) - a, a) * e;
}

/* s = (1 + tanh u) / 2 and, for the slope, 2 h s (1 - s) u'. */
VF_INLINE void gelu_tanh_parts(vf h, vf *out_s, vf *out_h_slope)
{
    const vf root = vf_set(0.7978845608f);
    vf a = vf_min(vf_set(GELU_EDGE), vf_abs(h));
    vf square = a * a;
    vf u = root * vf_fma(vf_set(0.044715f) * square, a, a);
    vf e = vf_exp(vf_set(-2) * u);
    vf s = vf_set(1) / (vf_set(1) + e);
    vf rest = e * s;
    vf du = root * vf_fma(vf_set(3 * 0.044715f), square, vf_set(1));
    *out_s = vf_if_negative(h, rest, s);
    *out_h_slope = vf_if_negative(h, vf_set(-2) * a, vf_set(2) * a) * s * rest * du;
}

VF_INLINE vf gelu_value(vf h, tg_gelu kind)
{
    vf s, slope;
    if (kind == TG_GELU_EXACT)
        gelu_exact_parts(h, &s, &slope);
    else
        gelu_tanh_parts(h, &s, &slope);
    return h * s;
}

VF_INLINE void gelu_both(vf h, tg_gelu kind, vf *out_g, vf *out_slope)
{
    vf s, slope;
    if (kind == TG_GELU_EXACT) {
        gelu_exact_parts(h, &s, &slope);
        slope = slope * vf_set(0.3989422804f);
    } else {
        gelu_tanh_parts(h, &s, &slope);
    }
    *out_g = h * s;
    *out_slope = s + slope;
}

VF_INLINE void gelu_forward_as(tg_gelu kind, tg_dtype dtype, size_t n, const void *h, void *out_g)
{
    const size_t whole = n - n % VF_LANES;
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store_as(out_g, dtype, i, VF_LANES, gelu_value(vf_load_as(h, dtype, i, VF_LANES), kind));
    if (whole < n)
        vf_store_as(out_g, dtype, whole, n - whole,
                    gelu_value(vf_load_as(h, dtype, whole, n - whole), kind));
}

VF_INLINE void gelu_backward_lanes(tg_gelu kind, tg_dtype dtype, size_t i, size_t n, const void *h,
                                   const void *dg, void *out_g, void *out_dh)
{
    vf g, slope;
    gelu_both(vf_load_as(h, dtype, i, n), kind, &g, &slope);
    vf_store_as(out_dh, dtype, i, n, vf_load_as(dg, dtype, i, n) * slope);
    if (out_g)
        vf_store_as(out_g, dtype, i, n, g);
}

VF_INLINE void gelu_backward_as(tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                                const void *dg, void *out_g, void *out_dh)
{
    const size_t whole = n - n % VF_LANES;
    for (size_t i = 0; i < whole; i += VF_LANES)
        gelu_backward_lanes(kind, dtype, i, VF_LANES, h, dg, out_g, out_dh);
    if (whole < n)
        gelu_backward_lanes(kind, dtype, whole, n - whole, h, dg, out_g, out_dh);
}

#if defined(__AVX512F__)

typedef struct gelu_registers {
    vf low[3], high[3];
} gelu_registers;

VF_INLINE gelu_registers gelu_registers_load(const gelu_table *table)
{
    gelu_registers t;
    for (size_t i = 0; i < 3; i++) {
        t.low[i] = vf_load(table->c[i], VF_LANES);
        t.high[i] = vf_load(table->c[i] + VF_LANES, VF_LANES);
    }
    return t;
}

/* f(t) */
VF_INLINE vf gelu_offset(const gelu_registers *table, vf t, __m512i piece)
{
    vf c0 = _mm512_permutex2var_ps(table->low[0], piece, table->high[0]);
    vf c1 = _mm512_permutex2var_ps(table->low[1], piece, table->high[1]);
    vf c2 = _mm512_permutex2var_ps(table->low[2], piece, table->high[2]);
    return vf_fma(vf_fma(c2, t, c1), t, c0);
}

/* 1/2 + sign(h) f(t) */
VF_INLINE vf gelu_lookup(const gelu_registers *table, vf h, vf t, __m512i piece)
{
    vf f = gelu_offset(table, t, piece);
    __m512i sign = _mm512_and_si512(_mm512_castps_si512(h), _mm512_set1_epi32(INT32_MIN));
    return vf_set(0.5f) + _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(f), sign));
}

/* t = |h| inside the table; the low bits of t * 6 + 1.5 2^23 are the number of its piece. */
VF_INLINE vf gelu_place(vf h, __m512i *out_piece)
{
    vf t = vf_min(vf_set(5.2f), vf_abs(h));
    *out_piece = _mm512_castps_si512(vf_fma(t, vf_set(6), vf_set(0x1.8p23f)));
    return t;
}

VF_INLINE void gelu_table_lanes(const gelu_registers *value, size_t i, size_t n, const void *h,
                                void *out_g)
{
    __m512i piece;
    vf x = vf_load_as(h, TG_BF16, i, n), t = gelu_place(x, &piece);
    vf_store_as(out_g, TG_BF16, i, n, x * gelu_lookup(value, x, t, piece));
}

VF_INLINE void gelu_table_forward(tg_gelu kind, size_t n, const void *h, void *out_g)
{
    const size_t whole = n - n % VF_LANES;
    const gelu_registers value =
        gelu_registers_load(kind == TG_GELU_EXACT ? &gelu_exact_value : &gelu_tanh_value);
    for (size_t i = 0; i < whole; i += VF_LANES)
        gelu_table_lanes(&value, i, VF_LANES, h, out_g);
    if (whole < n)
        gelu_table_lanes(&value, whole, n - whole, h, out_g);
}

VF_INLINE void gelu_table_both_lanes(const gelu_registers *value, const gelu_registers *slope,
                                     size_t i, size_t n, const void *h, const void *dg, void *out_g,
                                     void *out_dh)
{
    __m512i piece;
    vf x = vf_load_as(h, TG_BF16, i, n), t = gelu_place(x, &piece);
    vf dh = vf_load_as(dg, TG_BF16, i, n) * gelu_lookup(slope, x, t, piece);
    vf_store_as(out_dh, TG_BF16, i, n, dh);
    if (out_g)
        vf_store_as(out_g, TG_BF16, i, n, x * gelu_lookup(value, x, t, piece));
}

VF_INLINE void gelu_table_backward(tg_gelu kind, size_t n, const void *h, const void *dg,
                                   void *out_g, void *out_dh)
{
    const size_t whole = n - n % VF_LANES;
    const gelu_registers value =
        gelu_registers_load(kind == TG_GELU_EXACT ? &gelu_exact_value : &gelu_tanh_value);
    const gelu_registers slope =
        gelu_registers_load(kind == TG_GELU_EXACT ? &gelu_exact_slope : &gelu_tanh_slope);
    for (size_t i = 0; i < whole; i += VF_LANES)
        gelu_table_both_lanes(&value, &slope, i, VF_LANES, h, dg, out_g, out_dh);
    if (whole < n)
        gelu_table_both_lanes(&value, &slope, whole, n - whole, h, dg, out_g, out_dh);
}

#else

VF_INLINE void gelu_table_forward(tg_gelu kind, size_t n, const void *h, void *out_g)
{
    if (kind == TG_GELU_EXACT)
        gelu_forward_as(TG_GELU_EXACT, TG_BF16, n, h, out_g);
    else
        gelu_forward_as(TG_GELU_TANH, TG_BF16, n, h, out_g);
}

VF_INLINE void gelu_table_backward(tg_gelu kind, size_t n, const void *h, const void *dg,
                                   void *out_g, void *out_dh)
{
    if (kind == TG_GELU_EXACT)
        gelu_backward_as(TG_GELU_EXACT, TG_BF16, n, h, dg, out_g, out_dh);
    else
        gelu_backward_as(TG_GELU_TANH, TG_BF16, n, h, dg, out_g, out_dh);
}

#endif

static inline void gelu_forward_rows(tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                                     void *out_g)
{
    if (dtype == TG_BF16)
        gelu_table_forward(kind, n, h, out_g);
    else if (kind == TG_GELU_EXACT)
        gelu_forward_as(TG_GELU_EXACT, TG_F32, n, h, out_g);
    else
        gelu_forward_as(TG_GELU_TANH, TG_F32, n, h, out_g);
}

static inline void gelu_backward_rows(tg_gelu kind, tg_dtype dtype, size_t n, const void *h,
                                      const void *dg, void *out_g, void *out_dh)
{
    if (dtype == TG_BF16)
        gelu_table_backward(kind, n, h, dg, out_g, out_dh);
    else if (kind == TG_GELU_EXACT)
        gelu_backward_as(TG_GELU_EXACT, TG_F32, n, h, dg, out_g, out_dh);
    else
        gelu_backward_as(TG_GELU_TANH, TG_F32, n, h, dg, out_g, out_dh);
}

#endif
