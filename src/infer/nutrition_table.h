/* nutrition_table.h - data/nutrition.csv as bytes in the program, made by cmake/Embed.cmake, so
 * that nothing has to be found at run time. */
#ifndef TG_INFER_NUTRITION_TABLE_H
#define TG_INFER_NUTRITION_TABLE_H

#include <stddef.h>

extern const unsigned char tg_nutrition_table[];
extern const size_t tg_nutrition_table_bytes;

#endif
