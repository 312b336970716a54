/* measure.h - a mean with the interval that its noise leaves it in, and what may be said of two of them.
 *
 * Interval  values of one run hang together (a neighbour on the machine stays for minutes), so the interval is not that of
 *           single values: they are cut into TG_MEASURE_BLOCKS runs of neighbours, and the means of these, which hang
 *           together much less, give it (batch means, Student's t, 95 %). Source: Law & Kelton, Simulation Modeling and
 *           Analysis, 9.5.3.
 * Change    none where the difference lies within both intervals together, or is below 1 %: what two runs of the same
 *           settings differ by on a quiet machine.
 * Unknown   NaN values are left out; fewer than twice TG_MEASURE_BLOCKS have no interval (half_width NaN), and then no change is
 *           claimed below 10 %.
 */
#ifndef TG_REPORT_MEASURE_H
#define TG_REPORT_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum { TG_MEASURE_BLOCKS = 10 };

typedef struct tg_measure {
    double mean, half_width; /* NaN: not known */
    size_t count;            /* of the values that are known */
} tg_measure;

typedef enum tg_change {
    TG_CHANGE_UNKNOWN,
    TG_CHANGE_NONE,
    TG_CHANGE_LESS,
    TG_CHANGE_MORE
} tg_change;

/* Of the values in their order. */
tg_measure tg_measure_of(const double *values, size_t count);
/* A number that has no noise, or whose noise nobody knows. */
tg_measure tg_measure_exact(double value);
/* Times a factor. */
tg_measure tg_measure_scale(tg_measure measure, double factor);

/* From a to b. */
tg_change tg_measure_compare(const tg_measure *a, const tg_measure *b);
/* "none", "less", "more", "unknown". */
const char *tg_change_name(tg_change change);

#endif
