#include "base/rng.h"

#include <math.h>

static void philox_block(const uint32_t key_in[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key_in[0], k1 = key_in[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

tg_rng tg_rng_init(uint64_t seed, uint64_t epoch, uint64_t sample, tg_rng_purpose purpose)
{
    tg_rng rng = {0};
    rng.key[0] = (uint32_t)seed;
    rng.key[1] = (uint32_t)(seed >> 32);
    rng.counter[1] = (uint32_t)sample;
    /* epochs and samples above 2^32 fold in here: distinct for every realistic pair */
    rng.counter[2] = (uint32_t)epoch ^ ((uint32_t)(sample >> 32) * 0x85EBCA6Bu);
    rng.counter[3] = (uint32_t)purpose ^ ((uint32_t)(epoch >> 32) * 0xC2B2AE35u);
    rng.used = 4;
    return rng;
}

uint32_t tg_rng_u32(tg_rng *rng)
{
    if (rng->used == 4) {
        philox_block(rng->key, rng->counter, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

double tg_rng_uniform(tg_rng *rng)
{
    uint64_t high = tg_rng_u32(rng);
    uint64_t low = tg_rng_u32(rng);
    return (double)(((high << 32) | low) >> 11) * 0x1.0p-53;
}

uint32_t tg_rng_below(tg_rng *rng, uint32_t n)
{
    uint32_t threshold = (uint32_t)(-n) % n; /* Lemire: reject the uneven remainder */
    for (;;) {
        uint64_t product = (uint64_t)tg_rng_u32(rng) * n;
        if ((uint32_t)product >= threshold)
            return (uint32_t)(product >> 32);
    }
}

double tg_rng_normal(tg_rng *rng)
{
    double u = 1.0 - tg_rng_uniform(rng); /* (0,1]: the logarithm stays finite */
    double v = tg_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

/* Marsaglia and Tsang (2000), for shape >= 1. */
static double gamma_at_least_one(tg_rng *rng, double shape)
{
    double d = shape - 1.0 / 3.0;
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = tg_rng_normal(rng);
        double t = 1.0 + c * x;
        if (t <= 0)
            continue;
        double v = t * t * t;
        double u = 1.0 - tg_rng_uniform(rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

double tg_rng_beta(tg_rng *rng, double alpha)
{
    if (alpha > 1) {
        double a = gamma_at_least_one(rng, alpha);
        double b = gamma_at_least_one(rng, alpha);
        return a / (a + b);
    }
    for (;;) { /* Joehnk; in logarithms, since u^(1/alpha) underflows for small alpha */
        double x = log(1.0 - tg_rng_uniform(rng)) / alpha;
        double y = log(1.0 - tg_rng_uniform(rng)) / alpha;
        double m = x > y ? x : y;
        double log_sum = m + log(exp(x - m) + exp(y - m));
        if (log_sum <= 0)
            return exp(x - log_sum);
    }
}

void tg_rng_permutation(tg_rng *rng, uint32_t *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = tg_rng_below(rng, i);
        uint32_t t = out[i - 1];
        out[i - 1] = out[j];
        out[j] = t;
    }
}
