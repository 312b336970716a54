#include "data/augment.h"

tg_augment tg_augment_default(void)
{
    return (tg_augment){.scale_min = 0.08,
                        .scale_max = 1.0,
                        .ratio_min = 3.0 / 4.0,
                        .ratio_max = 4.0 / 3.0,
                        .hflip = 0.5,
                        .mix_prob = 1.0,
                        .mix_switch_prob = 0.5};
}
