#include "infer/scores.h"

#include <math.h>

bool tg_scores_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

void tg_scores_softmax(const float *logits, size_t K, float *out)
{
    double sum = 0;
    float largest = logits[0];
    for (size_t k = 1; k < K; k++)
        largest = logits[k] > largest ? logits[k] : largest;
    for (size_t k = 0; k < K; k++)
        sum += exp((double)logits[k] - largest);
    for (size_t k = 0; k < K; k++)
        out[k] = (float)(exp((double)logits[k] - largest) / sum);
}

/* Whether class a ranks before class b. */
static int ranks_before(const float *values, size_t a, size_t b)
{
    return values[a] > values[b] || (values[a] == values[b] && a < b);
}

size_t tg_scores_top(const float *values, size_t K, size_t count, size_t *out_index)
{
    size_t kept = 0;
    count = count < K ? count : K;
    for (size_t k = 0; k < K && count; k++) {
        if (kept == count && !ranks_before(values, k, out_index[kept - 1]))
            continue;
        size_t at = kept < count ? kept++ : kept - 1;
        for (; at > 0 && ranks_before(values, k, out_index[at - 1]); at--)
            out_index[at] = out_index[at - 1];
        out_index[at] = k;
    }
    return kept;
}
