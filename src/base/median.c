#include "base/median.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tg_sort_doubles(double *values, size_t n)
{
    if (n)
        qsort(values, n, sizeof *values, compare);
}

double tg_median(double *values, size_t n)
{
    tg_sort_doubles(values, n);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

double tg_quantile(const double *sorted, size_t n, double share)
{
    if (!n)
        return NAN;
    const double at = share * (double)(n - 1);
    const size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}
