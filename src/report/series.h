/* series.h - a curve of a run in bounded room: when it is full, neighbours become their mean.
 *
 * Unknown values (NaN) are kept as such; the mean of one and a known one is the known one. Threads: one at a time.
 */
#ifndef TG_REPORT_SERIES_H
#define TG_REPORT_SERIES_H

#include <stddef.h>

enum { TG_SERIES_VALUES = 256 };

typedef struct tg_series {
    double values[TG_SERIES_VALUES];
    size_t count;
    size_t merged;  /* added ones in one of these: 1, 2, 4, ...; 0: empty */
    size_t pending; /* of the last one */
} tg_series;

void tg_series_add(tg_series *series, double value);
/* The last value, or NaN. */
double tg_series_last(const tg_series *series);

#endif
