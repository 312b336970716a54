/* scores.h - from logits to what people read: shares of certainty and the best classes.
 *
 * Memory  the caller's. Threads reentrant.
 */
#ifndef TG_INFER_SCORES_H
#define TG_INFER_SCORES_H

#include <stdbool.h>
#include <stddef.h>

/* False when a value is NaN or infinite. */
bool tg_scores_finite(const float *values, size_t count);

/* out[k] = exp(logits[k] - max) / sum, summed in double. in place allowed. K >= 1, finite logits. */
void tg_scores_softmax(const float *logits, size_t K, float *out);

/* Indices of the `count` largest values, largest first, equal ones by index (as evaluation ranks
 * them). count is cut to K; returns how many were written. */
size_t tg_scores_top(const float *values, size_t K, size_t count, size_t *out_index);

#endif
