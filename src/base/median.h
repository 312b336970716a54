/* median.h - the middle of a few numbers; of an even count, the mean of the two in the middle. */
#ifndef TG_BASE_MEDIAN_H
#define TG_BASE_MEDIAN_H

#include <stddef.h>

/* n >= 1. Sorts the values from the least to the most. No NaN. */
double tg_median(double *values, size_t n);

#endif
