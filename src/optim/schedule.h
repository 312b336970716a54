/* schedule.h - learning rate as a pure function of the optimizer step: nothing to save or restore.
 *
 * Source   Loshchilov, Hutter, "SGDR", 2017; linear warm-up: Goyal et al., 2017. As timm's cosine
 *          with --sched-on-updates: the cosine runs over all steps, warm-up included.
 * Formula  step s counts from 0; s < W:  warmup_lr + (lr - warmup_lr) s / W
 *          else cosine:    min_lr + (lr - min_lr) (1 + cos(pi s / total)) / 2   (min_lr beyond)
 *          else constant:  lr
 */
#ifndef TG_OPTIM_SCHEDULE_H
#define TG_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum tg_schedule_kind { TG_SCHEDULE_COSINE, TG_SCHEDULE_CONSTANT } tg_schedule_kind;

typedef struct tg_schedule {
    tg_schedule_kind kind;
    double lr, min_lr, warmup_lr;
    int64_t warmup_steps, total_steps;
} tg_schedule;

double tg_schedule_lr(const tg_schedule *schedule, int64_t step);

#endif
