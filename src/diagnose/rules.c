#include "diagnose/rules.h"

#include <strings.h>

/* clang-format off */
static const tg_rule *const RULES[] = {
    /* loaders and cores */
    &tg_rule_cpu_bottleneck,
    &tg_rule_dataloader,
    &tg_rule_io_bottleneck,
    &tg_rule_loader_oversubscription,
    &tg_rule_loader_starvation,
    &tg_rule_disk_slow,
    &tg_rule_wrong_affinity,
    &tg_rule_cgroup_throttling,
    &tg_rule_other_jobs,
    &tg_rule_low_frequency,
    /* how the step is made */
    &tg_rule_float32_where_bfloat16,
    &tg_rule_larger_batch,
    &tg_rule_optimizer_not_sharded,
    &tg_rule_exposed_communication,
    &tg_rule_straggler,
    &tg_rule_teacher_cost,
    /* memory */
    &tg_rule_memory_near_limit,
    &tg_rule_swap_used,
    /* how much of the machine is used */
    &tg_rule_low_gpu_utilization,
    &tg_rule_low_utilization,
    &tg_rule_batch_size,
    &tg_rule_load_balancing,
    /* over time */
    &tg_rule_stall,
    &tg_rule_gpu_memory_increase,
    &tg_rule_memory_increase,
    &tg_rule_max_initialization_time,
    &tg_rule_step_outlier,
    /* whether it learns */
    &tg_rule_non_finite_loss,
    &tg_rule_flat_loss,
    &tg_rule_teacher_disagrees,
    &tg_rule_kd_share_small,
    &tg_rule_preprocessing_differs,
    &tg_rule_loss_not_decreasing,
    &tg_rule_exploding_tensor,
    &tg_rule_vanishing_gradient,
    &tg_rule_overfit,
    &tg_rule_overtraining,
    &tg_rule_stalled_training,
    &tg_rule_class_imbalance,
    /* always said */
    &tg_rule_overall_framework_metrics,
    &tg_rule_overall_system_usage,
};
/* clang-format on */

const tg_rule *const *tg_rules(size_t *out_count)
{
    *out_count = sizeof RULES / sizeof *RULES;
    return RULES;
}

const tg_rule *tg_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (strcasecmp(RULES[i]->name, name) == 0)
            return RULES[i];
    return NULL;
}
