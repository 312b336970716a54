/* nutrition_text.h - a row of the nutrition table as people and as programs read it. */
#ifndef TG_CLI_NUTRITION_TEXT_H
#define TG_CLI_NUTRITION_TEXT_H

#include "base/json_writer.h"
#include "infer/nutrition.h"

/* A table per 100 g and per serving, "unknown" where a value is, with its source and note. */
void tg_nutrition_text(const tg_nutrition_row *row, tg_text *out);
/* An object under `key`; null when row is NULL. Unknown values are null. */
void tg_nutrition_json(const tg_nutrition_row *row, const char *key, tg_json_writer *out);

#endif
