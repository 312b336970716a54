/* series.h - small statistics over plain arrays that noise and a few wild values do not sway. */
#ifndef TG_DIAGNOSE_SERIES_H
#define TG_DIAGNOSE_SERIES_H

#include <stddef.h>

/* Sorts the values. n 0: NaN. */
double tg_series_median(double *values, size_t n);
/* 1.4826 times the median distance from the median: the standard deviation of normal noise, whatever outliers do. The
 * values are lost. */
double tg_series_deviation(double *values, size_t n, double median);

/* Mean and its standard error of those that are finite; *out_known of them. NaN: none, or one. */
double tg_series_mean(const double *values, size_t n, double *out_error, size_t *out_known);

/* Medians of `parts` equal parts of a series, in order; NaN where a part has no finite value. The values are lost. */
void tg_series_parts(double *values, size_t n, size_t parts, double *out);

#endif
