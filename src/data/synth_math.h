/* synth_math.h - the arithmetic of the picture generator, exact on every machine.
 *
 * libm's last bits differ between systems, so sines and angles are short polynomials here, made of
 * operations that IEEE 754 defines exactly (the build forbids fused multiply-add contraction).
 * Errors of the polynomials: sine 2e-4, angle 2e-3 radians; the eye does not see them.
 * Everything is reentrant and allocates nothing.
 */
#ifndef TG_DATA_SYNTH_MATH_H
#define TG_DATA_SYNTH_MATH_H

#include "base/rng.h"

#include <stdint.h>

#define TG_SYNTH_PI 3.14159265f

typedef struct tg_synth_rgb {
    float r, g, b; /* 0..1 as displayed */
} tg_synth_rgb;

static inline float tg_synth_abs(float x)
{
    return x < 0 ? -x : x;
}

static inline float tg_synth_min(float a, float b)
{
    return a < b ? a : b;
}

static inline float tg_synth_max(float a, float b)
{
    return a > b ? a : b;
}

static inline float tg_synth_clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static inline float tg_synth_mix(float a, float b, float t)
{
    return a + (b - a) * t;
}

static inline float tg_synth_sqrt(float x)
{
    return x > 0 ? __builtin_sqrtf(x) : 0;
}

static inline float tg_synth_length(float x, float y)
{
    return tg_synth_sqrt(x * x + y * y);
}

/* Largest whole number <= x; |x| < 2^31. */
static inline float tg_synth_floor(float x)
{
    float whole = (float)(int32_t)x;
    return whole > x ? whole - 1 : whole;
}

static inline float tg_synth_fract(float x)
{
    return x - tg_synth_floor(x);
}

/* 0 below `low`, 1 above `high`, a smooth step between. */
static inline float tg_synth_step(float low, float high, float x)
{
    float t = tg_synth_clamp((x - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

/* sin(x): odd polynomial after folding to [-pi/2, pi/2]. */
static inline float tg_synth_sin(float x)
{
    float turn = tg_synth_fract(x * (0.5f / TG_SYNTH_PI) + 0.25f);
    float y = (1 - tg_synth_abs(turn * 2 - 1)) * TG_SYNTH_PI - TG_SYNTH_PI / 2;
    float q = y * y;
    return y * (1 - q * (0.16666667f - q * (0.00833333f - q * 0.00018f)));
}

static inline float tg_synth_cos(float x)
{
    return tg_synth_sin(x + TG_SYNTH_PI / 2);
}

/* Angle of (x, y) in (-pi, pi]. */
static inline float tg_synth_angle(float y, float x)
{
    float ax = tg_synth_abs(x), ay = tg_synth_abs(y);
    float large = tg_synth_max(ax, ay) + 1e-12f;
    float t = tg_synth_min(ax, ay) / large;
    float a =
        t * (0.9998f - t * t * (0.3303f - t * t * (0.1803f - t * t * (0.0852f - t * t * 0.0208f))));
    if (ay > ax)
        a = TG_SYNTH_PI / 2 - a;
    if (x < 0)
        a = TG_SYNTH_PI - a;
    return y < 0 ? -a : a;
}

static inline uint32_t tg_synth_hash(uint32_t x, uint32_t y, uint32_t seed)
{
    uint32_t h = x * 0x9E3779B1u ^ y * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;
    h = (h ^ (h >> 15)) * 0x2C1B3C6Du;
    h = (h ^ (h >> 12)) * 0x297A2D39u;
    return h ^ (h >> 15);
}

static inline float tg_synth_hash_unit(uint32_t x, uint32_t y, uint32_t seed)
{
    return (float)(tg_synth_hash(x, y, seed) >> 8) * (1.0f / 16777216.0f);
}

/* Value noise in [0,1): a random number on each whole grid point, smooth between. */
static inline float tg_synth_noise(float x, float y, uint32_t seed)
{
    float fx = tg_synth_floor(x), fy = tg_synth_floor(y);
    uint32_t ix = (uint32_t)(int32_t)fx, iy = (uint32_t)(int32_t)fy;
    float tx = x - fx, ty = y - fy;
    tx = tx * tx * (3 - 2 * tx);
    ty = ty * ty * (3 - 2 * ty);
    float top =
        tg_synth_mix(tg_synth_hash_unit(ix, iy, seed), tg_synth_hash_unit(ix + 1, iy, seed), tx);
    float bottom = tg_synth_mix(tg_synth_hash_unit(ix, iy + 1, seed),
                                tg_synth_hash_unit(ix + 1, iy + 1, seed), tx);
    return tg_synth_mix(top, bottom, ty);
}

static inline tg_synth_rgb tg_synth_rgb_mix(tg_synth_rgb a, tg_synth_rgb b, float t)
{
    return (tg_synth_rgb){tg_synth_mix(a.r, b.r, t), tg_synth_mix(a.g, b.g, t),
                          tg_synth_mix(a.b, b.b, t)};
}

static inline tg_synth_rgb tg_synth_rgb_scale(tg_synth_rgb a, float k)
{
    return (tg_synth_rgb){a.r * k, a.g * k, a.b * k};
}

/* Hue in turns (any real number), saturation and value clamped to 0..1. */
static inline tg_synth_rgb tg_synth_hsv(float hue, float saturation, float value)
{
    float s = tg_synth_clamp(saturation, 0, 1), v = tg_synth_clamp(value, 0, 1);
    float out[3];
    for (int i = 0; i < 3; i++) {
        float k = tg_synth_abs(tg_synth_fract(hue + (float)(3 - i) / 3.0f) * 6 - 3) - 1;
        out[i] = v * (1 - s + s * tg_synth_clamp(k, 0, 1));
    }
    return (tg_synth_rgb){out[0], out[1], out[2]};
}

/* Uniform in [low, high). */
static inline float tg_synth_range(tg_rng *rng, float low, float high)
{
    return low + (high - low) * ((float)(tg_rng_u32(rng) >> 8) * (1.0f / 16777216.0f));
}

/* True with the given probability. */
static inline int tg_synth_chance(tg_rng *rng, float probability)
{
    return tg_synth_range(rng, 0, 1) < probability;
}

/* Whole number in [low, high]. */
static inline int tg_synth_count(tg_rng *rng, int low, int high)
{
    return low + (int)tg_rng_below(rng, (uint32_t)(high - low + 1));
}

#endif
