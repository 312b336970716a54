/* median.h - the middle of a few numbers, and other parts of their order. No NaN among them. */
#ifndef TG_BASE_MEDIAN_H
#define TG_BASE_MEDIAN_H

#include <stddef.h>

/* From the least to the most. */
void tg_sort_doubles(double *values, size_t n);
/* Sorts; of an even count, the mean of the two in the middle. n >= 1. */
double tg_median(double *values, size_t n);
/* The value below which a share (0 to 1) of n sorted ones lies, between neighbours in proportion; NaN of none. */
double tg_quantile(const double *sorted, size_t n, double share);

#endif
