/* loss.h - losses on logits: value per sample and gradient, fp32.
 *
 * Cross-entropy   loss[b] = - sum_k target[b,k] log softmax(logits[b])[k]       soft targets
 *                 dlogits[b,k] (+)= weight * (softmax * sum_k target - target)
 * KL              p = softmax(teacher/T), q = softmax(student/T)
 *                 loss[b] = T^2 * sum_k p_k (log p_k - log q_k)
 *                 dlogits[b,k] (+)= weight * T * (q_k - p_k)
 *                 (mean over samples is weight = 1/B; DeiT's element mean is weight = 1/(B K))
 * Squared error   loss[b] = mean_k (x - y)^2;   dx (+)= weight * 2 (x - y) / K
 * Arguments  logits, target, teacher, dlogits fp32 [B,K] packed; out_loss fp32 [B] unweighted.
 *            `weight` scales the gradient only; out_d may be NULL (evaluation).
 * Accuracy   log-softmax with the row maximum taken out; sums in double: 1e-6 relative.
 */
#ifndef TG_KERN_LOSS_H
#define TG_KERN_LOSS_H

#include "dev/dev.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_loss_ops {
    void (*cross_entropy)(tg_stream *stream, size_t B, size_t K, const float *logits,
                          const float *target, float weight, float *out_loss, float *out_dlogits,
                          bool accumulate);
    void (*kl)(tg_stream *stream, size_t B, size_t K, const float *student, const float *teacher,
               float temperature, float weight, float *out_loss, float *out_dlogits,
               bool accumulate);
    void (*squared_error)(tg_stream *stream, size_t B, size_t K, const float *x, const float *y,
                          float weight, float *out_loss, float *out_dx, bool accumulate);
} tg_loss_ops;

#endif
