#include "diagnose/series.h"

#include "base/median.h"

#include <math.h>

double tg_series_median(double *values, size_t n)
{
    return n ? tg_median(values, n) : NAN;
}

double tg_series_deviation(double *values, size_t n, double median)
{
    for (size_t i = 0; i < n; i++)
        values[i] = fabs(values[i] - median);
    return 1.4826 * tg_series_median(values, n);
}

double tg_series_mean(const double *values, size_t n, double *out_error, size_t *out_known)
{
    double sum = 0, squares = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            known++;
        }
    const double mean = known ? sum / (double)known : NAN;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            squares += (values[i] - mean) * (values[i] - mean);
    *out_error = known > 1 ? sqrt(squares / (double)(known - 1) / (double)known) : NAN;
    *out_known = known;
    return mean;
}

void tg_series_parts(double *values, size_t n, size_t parts, double *out)
{
    for (size_t p = 0; p < parts; p++) {
        const size_t begin = p * n / parts, end = (p + 1) * n / parts;
        size_t known = 0;
        for (size_t i = begin; i < end; i++)
            if (isfinite(values[i]))
                values[begin + known++] = values[i];
        out[p] = tg_series_median(values + begin, known);
    }
}
