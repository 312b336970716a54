#include "report/measure.h"

#include <math.h>

/* Student's t, two-sided 95 %, 9 degrees of freedom. */
#define T_BLOCKS 2.262
#define LEAST_CHANGE 0.01
#define LEAST_UNKNOWN 0.10

_Static_assert(TG_MEASURE_BLOCKS == 10, "T_BLOCKS is of so many");

/* Sums and numbers of the known ones, dealt out to blocks of neighbours. */
static void sum_blocks(const double *values, size_t count, size_t known,
                       double sums[TG_MEASURE_BLOCKS], size_t counts[TG_MEASURE_BLOCKS])
{
    size_t k = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        const size_t block = k++ * TG_MEASURE_BLOCKS / known;
        sums[block] += values[i];
        counts[block]++;
    }
}

tg_measure tg_measure_of(const double *values, size_t count)
{
    double sums[TG_MEASURE_BLOCKS] = {0}, sum = 0, squares = 0;
    size_t counts[TG_MEASURE_BLOCKS] = {0}, known = 0;
    for (size_t i = 0; i < count; i++)
        known += isfinite(values[i]) != 0;
    if (!known)
        return tg_measure_exact(NAN);
    sum_blocks(values, count, known, sums, counts);
    for (int b = 0; b < TG_MEASURE_BLOCKS; b++)
        sum += sums[b];
    tg_measure measure = {.mean = sum / (double)known, .half_width = NAN, .count = known};
    if (known < 2 * TG_MEASURE_BLOCKS)
        return measure;
    for (int b = 0; b < TG_MEASURE_BLOCKS; b++) {
        const double off = sums[b] / (double)counts[b] - measure.mean;
        squares += off * off;
    }
    const double blocks = TG_MEASURE_BLOCKS;
    measure.half_width = T_BLOCKS * sqrt(squares / (blocks - 1) / blocks);
    return measure;
}

tg_measure tg_measure_exact(double value)
{
    return (tg_measure){.mean = value, .half_width = NAN, .count = isnan(value) ? 0 : 1};
}

tg_measure tg_measure_scale(tg_measure measure, double factor)
{
    measure.mean *= factor;
    measure.half_width *= fabs(factor);
    return measure;
}

tg_change tg_measure_compare(const tg_measure *a, const tg_measure *b)
{
    const double difference = b->mean - a->mean;
    const double size = fmax(fabs(a->mean), fabs(b->mean));
    if (isnan(difference))
        return TG_CHANGE_UNKNOWN;
    const bool noise = !isnan(a->half_width) && !isnan(b->half_width);
    const double within = noise ? fmax(hypot(a->half_width, b->half_width), LEAST_CHANGE * size)
                                : LEAST_UNKNOWN * size;
    if (fabs(difference) <= within)
        return TG_CHANGE_NONE;
    return difference < 0 ? TG_CHANGE_LESS : TG_CHANGE_MORE;
}

const char *tg_change_name(tg_change change)
{
    static const char *const NAMES[] = {"unknown", "none", "less", "more"};
    return NAMES[change];
}
