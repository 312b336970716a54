#include "optim/schedule.h"

#include <math.h>

double tg_schedule_lr(const tg_schedule *s, int64_t step)
{
    if (step < s->warmup_steps)
        return s->warmup_lr + (s->lr - s->warmup_lr) * (double)step / (double)s->warmup_steps;
    if (s->kind == TG_SCHEDULE_CONSTANT)
        return s->lr;
    if (step >= s->total_steps)
        return s->min_lr;
    double share = (double)step / (double)s->total_steps;
    return s->min_lr + 0.5 * (s->lr - s->min_lr) * (1 + cos(3.14159265358979323846 * share));
}
