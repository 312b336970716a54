/* grow.h - one way to lengthen a heap array; for the lists that scanning a folder makes. */
#ifndef TG_DATA_GROW_H
#define TG_DATA_GROW_H

#include "base/status.h"

#include <stddef.h>

/* Makes `*items` (heap or NULL, `*capacity` items of item_bytes) hold at least `needed` items, at
 * least doubling. TG_ERROR_MACHINE when memory is short; then nothing has changed. */
tg_status tg_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes) TG_MUST_CHECK;

#endif
