/* objective.h - what a training step minimises: the label loss, the teacher's loss, and their mix.
 *
 * Source     Hinton, Vinyals, Dean, 2015 (soft); Touvron et al. (DeiT), 2021 (hard, distillation
 *            token); feature matching: Romero et al., FitNets, 2015. Formulas: docs/NUMERICS.md.
 * Formula    total = (1 - alpha) task + alpha kd, means over the samples of the optimizer step.
 *            A student with a distillation token gives the task term its class head and the kd term
 *            its distillation head; otherwise both terms are on the one head. Where no kd term is on
 *            logits (none, feature), the task term is on the mean of the two heads, as in inference.
 * Gradients  are scaled by 1/mean_over, the nominal number of samples of an optimizer step: exact
 *            means for any number of micro-batches after the optimizer multiplies by
 *            mean_over / samples really seen.
 * Memory     the caller's arena: tg_objective_bytes.
 */
#ifndef TG_LOSS_OBJECTIVE_H
#define TG_LOSS_OBJECTIVE_H

#include "base/arena.h"
#include "kern/kern.h"

typedef enum tg_kd_loss { TG_KD_NONE, TG_KD_KL, TG_KD_HARD, TG_KD_FEATURE } tg_kd_loss;
typedef enum tg_kd_reduction { TG_KD_BATCHMEAN, TG_KD_MEAN } tg_kd_reduction;

typedef struct tg_objective {
    tg_kd_loss kd;
    double alpha;       /* share of the kd term; 0 with TG_KD_NONE */
    double temperature; /* of TG_KD_KL */
    tg_kd_reduction reduction;
} tg_objective;

/* Projection of student features to the teacher's width (TG_KD_FEATURE), trained along. */
typedef struct tg_projection {
    tg_weight *weight;         /* [C_t,C_s] */
    const float *bias;         /* [C_t] */
    float *dw, *db;            /* gradients */
    size_t C_s, C_t;
    tg_dtype dtype;            /* compute dtype of the weight */
} tg_projection;

typedef struct tg_objective_input {
    size_t B, K;
    size_t mean_over;
    bool accumulate;                /* of the projection's gradients */
    const float *target;            /* [B,K] soft labels; NULL only when alpha is 1 */
    const float *logits;            /* [B,K] class head */
    const float *logits_dist;       /* [B,K] distillation head, or NULL */
    const float *feature;           /* [B,C_s] */
    const float *teacher_logits;    /* [B,K] (kl, hard) */
    const float *teacher_feature;   /* [B,C_t] (feature) */
    const tg_projection *projection;
} tg_objective_input;

typedef struct tg_objective_output {
    double task, kd;                /* sums over the B samples; NaN: not used */
    float *dlogits;                 /* [B,K]; NULL when the head gets no gradient */
    float *dlogits_dist;            /* [B,K] or NULL */
    float *dfeature;                /* [B,C_s] or NULL */
} tg_objective_output;

size_t tg_objective_bytes(size_t B, size_t K, size_t C_s, size_t C_t);
tg_status tg_objective_run(const tg_objective *objective, const tg_kern *kern, tg_stream *stream,
                           tg_arena *arena, const tg_objective_input *input,
                           tg_objective_output *out) TG_MUST_CHECK;

#endif
