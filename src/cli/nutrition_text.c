#include "cli/nutrition_text.h"

#include <math.h>
#include <string.h>

enum { CELL_BYTES = 32 };

static void format_cell(double value, const char *unit, char out[CELL_BYTES])
{
    tg_text text = {0};
    if (isnan(value))
        tg_text_append_string(&text, "unknown");
    else
        tg_text_append_format(&text, strcmp(unit, "g") == 0 ? "%.1f %s" : "%.0f %s", value, unit);
    size_t n = text.length < CELL_BYTES ? text.length : CELL_BYTES - 1;
    memcpy(out, tg_text_string(&text), n);
    out[n] = '\0';
    tg_text_done(&text);
}

static void append_heading(const tg_nutrition_row *row, tg_text *out)
{
    tg_text_append_format(out, "    %-14s %10s", "", "per 100 g");
    if (isnan(row->serving_g)) {
        tg_text_append_char(out, '\n');
        return;
    }
    tg_text_append_format(out, "   per serving");
    if (row->serving_description[0])
        tg_text_append_format(out, " (%s, %.0f g)\n", row->serving_description, row->serving_g);
    else
        tg_text_append_format(out, " (%.0f g)\n", row->serving_g);
}

void tg_nutrition_text(const tg_nutrition_row *row, tg_text *out)
{
    char cell[CELL_BYTES], serving[CELL_BYTES];
    append_heading(row, out);
    for (tg_nutrient n = 0; n < TG_NUTRIENT_COUNT; n++) {
        format_cell(row->per_100g[n], tg_nutrient_unit(n), cell);
        tg_text_append_format(out, "    %-14s %10s", tg_nutrient_name(n), cell);
        format_cell(tg_nutrition_per_serving(row, n), tg_nutrient_unit(n), serving);
        if (!isnan(row->serving_g))
            tg_text_append_format(out, "   %11s", serving);
        tg_text_append_char(out, '\n');
    }
    if (row->source_description[0])
        tg_text_append_format(out, "    source: %s%s%s\n", row->source_description,
                              row->record_id[0] ? ", " : "", row->record_id);
    if (row->note[0])
        tg_text_append_format(out, "    note: %s\n", row->note);
    if (row->doubtful)
        tg_text_append_string(out, "    doubtful: energy and macronutrients disagree\n");
}

static void put_text(tg_json_writer *out, const char *key, const char *text)
{
    tg_json_put_string(out, key, text[0] ? text : NULL);
}

/* Products of two decimal numbers, without the tail that binary arithmetic gives them. */
static double thousandths(double value)
{
    return round(value * 1000) / 1000;
}

void tg_nutrition_json(const tg_nutrition_row *row, const char *key, tg_json_writer *out)
{
    if (!row) {
        tg_json_put_null(out, key);
        return;
    }
    tg_json_begin_object(out, key);
    tg_json_put_string(out, "class", row->class_name);
    tg_json_put_string(out, "display_name", row->display_name);
    tg_json_begin_object(out, "per_100g");
    for (tg_nutrient n = 0; n < TG_NUTRIENT_COUNT; n++)
        tg_json_put_double(out, tg_nutrient_key(n), row->per_100g[n]);
    tg_json_end_object(out);
    put_text(out, "serving_description", row->serving_description);
    tg_json_put_double(out, "serving_g", row->serving_g);
    tg_json_begin_object(out, "per_serving");
    for (tg_nutrient n = 0; n < TG_NUTRIENT_COUNT; n++)
        tg_json_put_double(out, tg_nutrient_key(n), thousandths(tg_nutrition_per_serving(row, n)));
    tg_json_end_object(out);
    put_text(out, "source", row->source_description);
    put_text(out, "record", row->record_id);
    put_text(out, "note", row->note);
    tg_json_put_bool(out, "doubtful", row->doubtful);
    tg_json_end_object(out);
}
