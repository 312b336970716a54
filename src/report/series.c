#include "report/series.h"

#include <math.h>

static double mean(double a, double weight_a, double b, double weight_b)
{
    if (isnan(a))
        return b;
    return isnan(b) ? a : (a * weight_a + b * weight_b) / (weight_a + weight_b);
}

/* An even count: it is full. */
static void halve(tg_series *s)
{
    for (size_t i = 0; i < TG_SERIES_VALUES / 2; i++)
        s->values[i] = mean(s->values[2 * i], 1, s->values[2 * i + 1], 1);
    s->count = TG_SERIES_VALUES / 2;
    s->merged *= 2;
}

void tg_series_add(tg_series *s, double value)
{
    if (s->merged == 0)
        s->merged = 1;
    if (s->count && s->pending < s->merged) {
        double *last = &s->values[s->count - 1];
        *last = mean(*last, (double)s->pending, value, 1);
        s->pending++;
        return;
    }
    if (s->count == TG_SERIES_VALUES)
        halve(s);
    s->values[s->count++] = value;
    s->pending = 1;
}

double tg_series_last(const tg_series *s)
{
    return s->count ? s->values[s->count - 1] : NAN;
}
