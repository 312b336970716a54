#include "tensor/param.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_FLOATS = 16 };

static tg_status grow(tg_param_table *table)
{
    if (table->count < table->capacity)
        return TG_OK;
    size_t capacity = table->capacity ? table->capacity * 2 : 64;
    tg_param *items = realloc(table->items, capacity * sizeof *items);
    if (!items)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a table of %zu parameters", capacity);
    table->items = items;
    table->capacity = capacity;
    return TG_OK;
}

tg_status tg_param_add(tg_param_table *table, const char *name, int ndim, const size_t *shape,
                       int layer, bool decay)
{
    TG_TRY(grow(table));
    tg_param *p = &table->items[table->count];
    *p = (tg_param){.ndim = ndim, .count = 1, .offset = table->elements, .layer = layer,
                    .decay = decay};
    if (ndim < 0 || ndim > TG_PARAM_MAX_DIMS)
        return tg_fail(TG_ERROR_INPUT, "parameter %s: %d dimensions", name, ndim);
    if (snprintf(p->name, sizeof p->name, "%s", name) >= (int)sizeof p->name)
        return tg_fail(TG_ERROR_INPUT, "parameter name too long: %s", name);
    for (int i = 0; i < ndim; i++) {
        p->shape[i] = shape[i];
        if (shape[i] == 0 || !tg_mul_size(p->count, shape[i], &p->count))
            return tg_fail(TG_ERROR_INPUT, "parameter %s: impossible size in dimension %d", name,
                           i);
    }
    size_t place, end, bytes;
    if (!tg_round_up_size(p->count, PLACE_FLOATS, &place) ||
        !tg_add_size(table->elements, place, &end) || !tg_mul_size(end, 16, &bytes))
        return tg_fail(TG_ERROR_INPUT, "parameter %s: the model is too large to address", name);
    table->elements = end;
    table->count++;
    return TG_OK;
}

const tg_param *tg_param_find(const tg_param_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->items[i].name, name) == 0)
            return &table->items[i];
    return NULL;
}

size_t tg_param_total(const tg_param_table *table)
{
    size_t total = 0;
    for (size_t i = 0; i < table->count; i++)
        total += table->items[i].count;
    return total;
}

void tg_param_table_done(tg_param_table *table)
{
    if (!table)
        return;
    free(table->items);
    *table = (tg_param_table){0};
}
