#include "model/config.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const float linear_std = 0.02f, token_std = 1e-6f;

static void fill_constant(float *out, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        out[i] = value;
}

/* Uniform in (0,1], so that its logarithm is finite. */
static float positive_uniform(tg_rng *rng)
{
    return (float)(((double)tg_rng_u32(rng) + 1) * 0x1.0p-32);
}

/* Box-Muller with both of its values used: a large model has 10^8 of them. */
static void fill_normal(tg_rng *rng, float *out, size_t n, float std)
{
    for (size_t i = 0; i < n; i += 2) {
        float radius = std * sqrtf(-2.0f * logf(positive_uniform(rng)));
        float angle = 6.28318530717958647692f * positive_uniform(rng);
        out[i] = radius * cosf(angle);
        if (i + 1 < n)
            out[i + 1] = radius * sinf(angle);
    }
}

/* PyTorch's Conv2d default: weight and bias uniform in +-1/sqrt(fan in). */
static void fill_uniform(tg_rng *rng, float *out, size_t n, float bound)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bound * (float)(2 * tg_rng_uniform(rng) - 1);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

static void init_tensor(const tg_vit_config *config, const tg_param *param, tg_rng *rng, float *out)
{
    const char *name = param->name;
    size_t n = param->count;
    if (strncmp(name, "patch_embed.", 12) == 0)
        fill_uniform(rng, out, n, 1.0f / sqrtf(3.0f * (float)config->patch * (float)config->patch));
    else if (strcmp(name, "cls_token") == 0 || strcmp(name, "reg_token") == 0)
        fill_normal(rng, out, n, token_std);
    else if (param->ndim >= 2) /* the cut at 2 lies 100 std out: fill_normal ends at 6.7 */
        fill_normal(rng, out, n, linear_std);
    else if (ends_with(name, ".gamma"))
        fill_constant(out, n, config->layer_scale_init);
    else if (ends_with(name, ".weight"))
        fill_constant(out, n, 1.0f);
    else
        fill_constant(out, n, 0.0f);
}

void tg_vit_init_tensor(const tg_vit_config *config, const tg_param_table *table, size_t index,
                        uint64_t seed, float *out_params)
{
    tg_rng rng = tg_rng_init(seed, 0, index, TG_RNG_INIT);
    init_tensor(config, &table->items[index], &rng, out_params + table->items[index].offset);
}

void tg_vit_init_weights(const tg_vit_config *config, const tg_param_table *table, uint64_t seed,
                         float *out_params)
{
    memset(out_params, 0, table->elements * sizeof *out_params);
    for (size_t i = 0; i < table->count; i++)
        tg_vit_init_tensor(config, table, i, seed, out_params);
}
