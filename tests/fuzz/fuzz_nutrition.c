/* A nutrition table of arbitrary bytes: parsed, and every class looked up again. */
#include "infer/nutrition.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tg_nutrition table;
    if (tg_nutrition_parse((const char *)data, size, "fuzz", &table) < 0)
        return 0;
    for (size_t i = 0; i < table.count; i++)
        if (tg_nutrition_find(&table, table.rows[i].class_name) != &table.rows[i])
            abort();
    tg_nutrition_done(&table);
    return 0;
}
