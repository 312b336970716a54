#include "base/nearest.h"

#include <string.h>

#define WORD_MAX 63

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][WORD_MAX + 1]; /* this row and the two above it, taken in turn */
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t differs = a[i - 1] != b[j - 1];
            now[j] = smallest(above[j] + 1, now[j - 1] + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < now[j])
                now[j] = above2[j - 2] + 1;
        }
    }
    return rows[na % 3][nb];
}

void tg_nearest_offer(tg_nearest *nearest, const char *candidate)
{
    size_t n = strlen(nearest->word), m = strlen(candidate);
    if (n > WORD_MAX || m > WORD_MAX)
        return;
    size_t limit = n / 3 > 2 ? n / 3 : 2;
    size_t d = distance(nearest->word, n, candidate, m);
    if (d > limit || d >= m || (nearest->best && d >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = d;
}

const char *tg_nearest_of(const char *word, const char *const *names, size_t count)
{
    tg_nearest nearest = {.word = word};
    for (size_t i = 0; i < count; i++)
        tg_nearest_offer(&nearest, names[i]);
    return nearest.best;
}
