/* outlier.h - steps that took much longer than their like.
 *
 * A step is one when it took more than the median of the up to 64 steps before it by 5 deviations (1.4826 times the median
 * absolute deviation: what a normal distribution calls one), by a quarter of the median, and by 2 ms. The first 16 steps
 * of a process are only looked at. Every step joins the others afterwards, so that a new pace is soon the usual one.
 *
 * Memory none besides the struct. Threads: one at a time.
 */
#ifndef TG_TRAIN_OUTLIER_H
#define TG_TRAIN_OUTLIER_H

#include <stdbool.h>
#include <stddef.h>

enum { TG_OUTLIER_WINDOW = 64, TG_OUTLIER_FIRST = 16 };

typedef struct tg_outlier {
    double seconds[TG_OUTLIER_WINDOW];
    size_t seen;
    double median; /* of the steps before the last one; 0: too few */
} tg_outlier;

/* Whether the step just done, which took `seconds`, is one. Zeroed at first. */
bool tg_outlier_add(tg_outlier *rule, double seconds);

#endif
