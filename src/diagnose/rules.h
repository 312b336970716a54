/* rules.h - every rule that there is, each in the file of its theme; rules.c puts them in order. */
#ifndef TG_DIAGNOSE_RULES_H
#define TG_DIAGNOSE_RULES_H

#include "diagnose/rule.h"

/* The withdrawn tool's, by its names. */
extern const tg_rule tg_rule_cpu_bottleneck;            /* old_loader.c */
extern const tg_rule tg_rule_dataloader;                /* old_loader.c */
extern const tg_rule tg_rule_io_bottleneck;             /* old_disk.c */
extern const tg_rule tg_rule_low_gpu_utilization;       /* old_use.c */
extern const tg_rule tg_rule_low_utilization;           /* old_use.c */
extern const tg_rule tg_rule_batch_size;                /* old_use.c */
extern const tg_rule tg_rule_overall_system_usage;      /* old_use.c */
extern const tg_rule tg_rule_load_balancing;            /* old_ranks.c */
extern const tg_rule tg_rule_gpu_memory_increase;       /* old_memory.c */
extern const tg_rule tg_rule_memory_increase;           /* old_memory.c */
extern const tg_rule tg_rule_max_initialization_time;   /* old_steps.c */
extern const tg_rule tg_rule_step_outlier;              /* old_outliers.c */
extern const tg_rule tg_rule_overall_framework_metrics; /* old_steps.c */
extern const tg_rule tg_rule_loss_not_decreasing;       /* learning.c */
extern const tg_rule tg_rule_exploding_tensor;          /* learning.c */
extern const tg_rule tg_rule_vanishing_gradient;        /* learning.c */
extern const tg_rule tg_rule_overfit;                   /* validation.c */
extern const tg_rule tg_rule_overtraining;              /* validation.c */
extern const tg_rule tg_rule_stalled_training;          /* validation.c */
extern const tg_rule tg_rule_class_imbalance;           /* validation.c */

/* What that tool missed. */
extern const tg_rule tg_rule_loader_oversubscription; /* workers.c */
extern const tg_rule tg_rule_loader_starvation;       /* workers.c */
extern const tg_rule tg_rule_cgroup_throttling;       /* cores.c */
extern const tg_rule tg_rule_wrong_affinity;          /* affinity.c */
extern const tg_rule tg_rule_other_jobs;              /* cores.c */
extern const tg_rule tg_rule_low_frequency;           /* cores.c */
extern const tg_rule tg_rule_float32_where_bfloat16;  /* precision.c */
extern const tg_rule tg_rule_larger_batch;            /* memory.c */
extern const tg_rule tg_rule_optimizer_not_sharded;   /* memory.c */
extern const tg_rule tg_rule_memory_near_limit;       /* memory_use.c */
extern const tg_rule tg_rule_swap_used;               /* memory_use.c */
extern const tg_rule tg_rule_disk_slow;               /* disk.c */
extern const tg_rule tg_rule_exposed_communication;   /* exchange.c */
extern const tg_rule tg_rule_straggler;               /* slow_rank.c */
extern const tg_rule tg_rule_teacher_cost;            /* teacher.c */
extern const tg_rule tg_rule_teacher_disagrees;       /* teacher.c */
extern const tg_rule tg_rule_kd_share_small;          /* teacher.c */
extern const tg_rule tg_rule_preprocessing_differs;   /* preprocessing.c */
extern const tg_rule tg_rule_stall;                   /* stall.c */
extern const tg_rule tg_rule_non_finite_loss;         /* losses.c */
extern const tg_rule tg_rule_flat_loss;               /* losses.c */

#endif
