/* nearest.h - the right name for a mistyped one.
 *
 * Distance: Damerau-Levenshtein, restricted form (insertions, deletions, substitutions and swaps of
 * neighbours cost 1). Only names within max(2, a third of the word's length) count as near.
 * Memory none; words longer than 63 bytes are near nothing. Reentrant.
 */
#ifndef TG_BASE_NEAREST_H
#define TG_BASE_NEAREST_H

#include <stddef.h>

/* Keeps the best of many candidates that are offered one by one. Start zeroed but for `word`. */
typedef struct tg_nearest {
    const char *word; /* as typed */
    const char *best; /* nearest so far, or NULL; borrowed from the caller */
    size_t distance;  /* of best */
} tg_nearest;

void tg_nearest_offer(tg_nearest *nearest, const char *candidate);

/* The nearest of `count` names, the first of equals, or NULL. */
const char *tg_nearest_of(const char *word, const char *const *names, size_t count);

/* Text for the end of a message: "; did you mean NAME?" or "" when best is NULL. */
#define TG_NEAREST_HINT(best)                                                                      \
    (best) ? "; did you mean " : "", (best) ? (best) : "", (best) ? "?" : ""
#define TG_NEAREST_FORMAT "%s%s%s"

#endif
