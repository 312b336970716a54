/* sane.h - numbers of a run's files that cannot be: damage, or a clock that was nowhere, is not known, so that one line does
 * not spoil every table. */
#ifndef TG_PROFILE_SANE_H
#define TG_PROFILE_SANE_H

#include <math.h>

/* NaN unless it is a duration below 300 years. */
static inline double tg_sane_seconds(double seconds)
{
    return seconds >= 0 && seconds < 1e10 ? seconds : NAN;
}

/* NaN unless it is a moment from 1970 to the year 5000. */
static inline double tg_sane_moment(double time)
{
    return time >= 0 && time < 1e11 ? time : NAN;
}

/* As tg_sane_seconds; 0 for what is not known, for sums. */
static inline double tg_sane_sum(double seconds)
{
    return seconds >= 0 && seconds < 1e10 ? seconds : 0;
}

#endif
