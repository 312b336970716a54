#include "train/outlier.h"

#include "base/median.h"

#include <math.h>

static const double DEVIATIONS = 5, MAD_TO_SIGMA = 1.4826, LEAST_SHARE = 0.25, LEAST_S = 0.002;

/* Beyond which a step is one; infinite while there are too few. */
static double bound_of(tg_outlier *rule)
{
    double sorted[TG_OUTLIER_WINDOW];
    const size_t n = rule->seen < TG_OUTLIER_WINDOW ? rule->seen : TG_OUTLIER_WINDOW;
    if (n < TG_OUTLIER_FIRST)
        return INFINITY;
    for (size_t i = 0; i < n; i++)
        sorted[i] = rule->seconds[i];
    const double median = tg_median(sorted, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = fabs(rule->seconds[i] - median);
    const double sigma = MAD_TO_SIGMA * tg_median(sorted, n);
    rule->median = median;
    return median + fmax(DEVIATIONS * sigma, fmax(LEAST_SHARE * median, LEAST_S));
}

bool tg_outlier_add(tg_outlier *rule, double seconds)
{
    const bool is = seconds > bound_of(rule);
    rule->seconds[rule->seen++ % TG_OUTLIER_WINDOW] = seconds;
    return is;
}
