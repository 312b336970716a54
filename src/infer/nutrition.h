/* nutrition.h - the nutrition table: what 100 g, and a serving, of each class of food hold.
 *
 * Columns  class, display_name, fdc_or_ndb_id, source_description, serving_description, serving_g,
 *          kcal_per_100g, carbohydrate_g, sugars_g, fiber_g, protein_g, fat_g, saturated_fat_g,
 *          sodium_mg, note; and kj_per_100g in tables of the user's own. In any order; only `class`
 *          must be there, a column that is missing is unknown in every row. A column of another
 * name is refused: "sodium_g" must not pass for sodium_mg. Values   decimal point under every
 * locale, >= 0, per 100 g of edible portion (serving_g: grams of a serving). An empty cell is
 * unknown (NaN here), never 0; one that is no number is an error with its line. Energy   is held
 * against what the macronutrients can give: the extremes of the specific Atwater factors (Merrill,
 * Watt, "Energy value of foods", USDA Handbook 74, 1973; the general ones are 4-4-9), protein 2.44
 * to 4.36, fat 8.37 to 9.02 and carbohydrate 2.48 to 4.16 kcal/g, fibre counting from 0, with 5
 * kcal for rounding; kJ against kcal at 4.184 within 2 % and 5 kJ. Rows outside, or with more than
 * 105 g of macronutrients in 100 g, are marked doubtful and named in `warnings`: a kJ value in a
 * kcal column does not pass unseen. Lookup   by class name, ASCII case aside, with blanks, '-' and
 * '_' equal. Memory   owned by the table (heap). Errors   TG_ERROR_INPUT with file and line;
 * TG_ERROR_MACHINE for memory and reading. Threads  reentrant; a loaded table may be read by many.
 */
#ifndef TG_INFER_NUTRITION_H
#define TG_INFER_NUTRITION_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_nutrient {
    TG_NUTRIENT_ENERGY,
    TG_NUTRIENT_CARBOHYDRATE,
    TG_NUTRIENT_SUGARS,
    TG_NUTRIENT_FIBER,
    TG_NUTRIENT_PROTEIN,
    TG_NUTRIENT_FAT,
    TG_NUTRIENT_SATURATED_FAT,
    TG_NUTRIENT_SODIUM,
    TG_NUTRIENT_COUNT
} tg_nutrient;

typedef struct tg_nutrition_row {
    const char *class_name;   /* as in the table */
    const char *display_name; /* the class name when the table has none */
    const char *record_id, *source_description, *serving_description, *note; /* "" when empty */
    double serving_g;                                                        /* NaN: unknown */
    double per_100g[TG_NUTRIENT_COUNT]; /* in the nutrient's unit; NaN: unknown */
    bool doubtful;                      /* energy and macronutrients disagree */
    size_t line;
} tg_nutrition_row;

typedef struct tg_nutrition {
    tg_nutrition_row *rows; /* in the order of the table */
    size_t count, capacity;
    char *bytes; /* what the texts point into */
    tg_text warnings;
    size_t warning_count;
} tg_nutrition;

/* "energy", "kcal", and the key of a JSON object: "energy_kcal". */
const char *tg_nutrient_name(tg_nutrient nutrient);
const char *tg_nutrient_unit(tg_nutrient nutrient);
const char *tg_nutrient_key(tg_nutrient nutrient);

/* The table that comes with the program. */
tg_status tg_nutrition_shipped(tg_nutrition *out) TG_MUST_CHECK;
/* A file of the user's own. */
tg_status tg_nutrition_read(const char *path, tg_nutrition *out) TG_MUST_CHECK;
/* `name` for messages. */
tg_status tg_nutrition_parse(const char *bytes, size_t length, const char *name,
                             tg_nutrition *out) TG_MUST_CHECK;
/* Accepts NULL and a zeroed object. */
void tg_nutrition_done(tg_nutrition *table);

/* NULL when the table has no such class. Borrowed. */
const tg_nutrition_row *tg_nutrition_find(const tg_nutrition *table, const char *class_name);
/* What a serving holds; NaN when the value or the serving's weight is unknown. */
double tg_nutrition_per_serving(const tg_nutrition_row *row, tg_nutrient nutrient);

#endif
