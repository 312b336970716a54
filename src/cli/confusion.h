/* confusion.h - which classes a model gets right and which it takes for one another, as text. */
#ifndef TG_CLI_CONFUSION_H
#define TG_CLI_CONFUSION_H

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

/* counts [K,K]: photos of class row whose first choice was column. Shows the share that is right for
 * each class (the worst ones where there are many) and the pairs most often confused. */
void tg_confusion_text(const uint64_t *counts, char *const *names, size_t K, tg_text *out);

#endif
