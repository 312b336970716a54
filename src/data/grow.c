#include "data/grow.h"

#include "base/checked.h"

#include <stdlib.h>

tg_status tg_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
    size_t bytes, wanted = *capacity < 16 ? 16 : *capacity;
    if (needed <= *capacity)
        return TG_OK;
    while (wanted < needed)
        if (!tg_mul_size(wanted, 2, &wanted))
            return tg_fail(TG_ERROR_MACHINE, "list of %zu items is too long for memory", needed);
    void *grown = tg_mul_size(wanted, item_bytes, &bytes) ? realloc(*items, bytes) : NULL;
    if (!grown)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a list of %zu items of %zu bytes",
                       wanted, item_bytes);
    *items = grown;
    *capacity = wanted;
    return TG_OK;
}
