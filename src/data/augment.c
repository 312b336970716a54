#include "data/augment.h"

#include "base/number.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define UNIFORM_ABOVE 100.0 /* timm: a deviation above this means uniform magnitudes */

tg_augment tg_augment_default(void)
{
    return (tg_augment){.scale_min = 0.08,
                        .scale_max = 1.0,
                        .ratio_min = 3.0 / 4.0,
                        .ratio_max = 4.0 / 3.0,
                        .hflip = 0.5,
                        .rand_magnitude_max = 10,
                        .rand_prob = 0.5,
                        .mix_prob = 1.0,
                        .mix_switch_prob = 0.5};
}

/* The number behind `key` when the section is exactly key and number. */
static bool read_section(const char *section, size_t length, const char *key, bool whole,
                         double *out)
{
    size_t key_length = strlen(key);
    int64_t integer;
    if (length <= key_length || strncmp(section, key, key_length) != 0)
        return false;
    const char *digits = section + key_length;
    if (*digits < '0' || *digits > '9')
        return false;
    if (!whole)
        return tg_number_parse_double(digits, length - key_length, out);
    if (!tg_number_parse_i64(digits, length - key_length, &integer) || integer > 1000000)
        return false;
    *out = (double)integer;
    return true;
}

static tg_status read_rand(const char *text, const char *section, size_t length, tg_augment *inout)
{
    double value;
    if (read_section(section, length, "mstd", false, &value)) {
        inout->rand_std = value;
    } else if (read_section(section, length, "mmax", true, &value)) {
        inout->rand_magnitude_max = value;
    } else if (read_section(section, length, "m", true, &value)) {
        inout->rand_magnitude = value;
    } else if (read_section(section, length, "n", true, &value) && value >= 1 &&
               value <= TG_AUGMENT_MAX_OPS) {
        inout->rand_ops = (int)value;
    } else if (read_section(section, length, "p", false, &value) && value <= 1) {
        inout->rand_prob = value;
    } else if (read_section(section, length, "inc", true, &value)) {
        inout->rand_increasing = value != 0;
    } else {
        return tg_fail(TG_ERROR_USAGE,
                       "augmentation '%s': section '%.*s' is not understood; known are m, n (1 to "
                       "%d), p (0 to 1), mstd, mmax and inc, each followed by its number",
                       text, (int)length, section, TG_AUGMENT_MAX_OPS);
    }
    return TG_OK;
}

tg_status tg_augment_parse_aa(const char *text, tg_augment *inout)
{
    tg_augment parsed = *inout;
    parsed.rand_ops = 0;
    if (text[0] == 0 || strcmp(text, "none") == 0) {
        *inout = parsed;
        return TG_OK;
    }
    size_t length = strcspn(text, "-");
    if (length != 4 || strncmp(text, "rand", 4) != 0)
        return tg_fail(TG_ERROR_USAGE,
                       "augmentation '%s': only RandAugment is known; write it as "
                       "'rand-m9-mstd0.5-inc1'",
                       text);
    parsed.rand_ops = 2;
    parsed.rand_magnitude = 10;
    parsed.rand_magnitude_max = 10;
    parsed.rand_std = 0;
    parsed.rand_prob = 0.5;
    parsed.rand_increasing = false;
    for (const char *section = text + length; *section == '-'; section += length) {
        section++;
        length = strcspn(section, "-");
        TG_TRY(read_rand(text, section, length, &parsed));
    }
    if (parsed.rand_std > UNIFORM_ABOVE)
        parsed.rand_std = INFINITY;
    *inout = parsed;
    return TG_OK;
}

static tg_status check_share(double value, const char *name)
{
    if (value >= 0 && value <= 1)
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE, "augmentation: %s is %g, but must be from 0 to 1", name, value);
}

static tg_status check_strength(double value, const char *name)
{
    if (value >= 0 && !isnan(value))
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE, "augmentation: %s is %g, but must not be negative", name, value);
}

static tg_status check_range(double low, double high, double limit, const char *name)
{
    if (low > 0 && low <= high && high <= limit)
        return TG_OK;
    return tg_fail(TG_ERROR_USAGE, "augmentation: %s %g to %g is not a range of positive numbers%s",
                   name, low, high, limit == 1 ? " up to 1" : "");
}

tg_status tg_augment_check(const tg_augment *augment)
{
    TG_TRY(check_range(augment->scale_min, augment->scale_max, 1, "crop scale"));
    TG_TRY(check_range(augment->ratio_min, augment->ratio_max, 1000, "crop ratio"));
    TG_TRY(check_share(augment->hflip, "hflip"));
    TG_TRY(check_share(augment->vflip, "vflip"));
    TG_TRY(check_share(augment->rand_prob, "probability of a RandAugment op"));
    TG_TRY(check_share(augment->reprob, "reprob"));
    TG_TRY(check_share(augment->mix_prob, "mix probability"));
    TG_TRY(check_share(augment->mix_switch_prob, "mix switch probability"));
    TG_TRY(check_strength(augment->color_jitter, "color jitter"));
    TG_TRY(check_strength(augment->rand_magnitude, "RandAugment magnitude"));
    TG_TRY(check_strength(augment->rand_magnitude_max, "RandAugment magnitude bound"));
    TG_TRY(check_strength(augment->rand_std, "RandAugment deviation"));
    TG_TRY(check_strength(augment->mixup, "mixup"));
    TG_TRY(check_strength(augment->cutmix, "cutmix"));
    if (!(augment->smoothing >= 0 && augment->smoothing < 1))
        return tg_fail(TG_ERROR_USAGE, "augmentation: smoothing is %g, but must be in [0,1)",
                       augment->smoothing);
    if (augment->rand_ops < 0 || augment->rand_ops > TG_AUGMENT_MAX_OPS)
        return tg_fail(TG_ERROR_USAGE, "augmentation: %d RandAugment ops are not 0 to %d",
                       augment->rand_ops, TG_AUGMENT_MAX_OPS);
    return TG_OK;
}
