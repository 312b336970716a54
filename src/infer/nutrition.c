#include "infer/nutrition.h"

#include "base/nearest.h"
#include "base/number.h"
#include "infer/csv.h"
#include "infer/nutrition_table.h"
#include "os/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_MAX_BYTES = 64 << 20, TABLE_MAX_ROWS = 16384 };
static const double KJ_PER_KCAL = 4.184;

static const struct nutrient_words {
    const char *name, *unit, *key, *column;
} NUTRIENTS[TG_NUTRIENT_COUNT] = {
    [TG_NUTRIENT_ENERGY] = {"energy", "kcal", "energy_kcal", "kcal_per_100g"},
    [TG_NUTRIENT_CARBOHYDRATE] = {"carbohydrate", "g", "carbohydrate_g", "carbohydrate_g"},
    [TG_NUTRIENT_SUGARS] = {"sugars", "g", "sugars_g", "sugars_g"},
    [TG_NUTRIENT_FIBER] = {"fiber", "g", "fiber_g", "fiber_g"},
    [TG_NUTRIENT_PROTEIN] = {"protein", "g", "protein_g", "protein_g"},
    [TG_NUTRIENT_FAT] = {"fat", "g", "fat_g", "fat_g"},
    [TG_NUTRIENT_SATURATED_FAT] = {"saturated fat", "g", "saturated_fat_g", "saturated_fat_g"},
    [TG_NUTRIENT_SODIUM] = {"sodium", "mg", "sodium_mg", "sodium_mg"},
};

const char *tg_nutrient_name(tg_nutrient nutrient)
{
    return NUTRIENTS[nutrient].name;
}

const char *tg_nutrient_unit(tg_nutrient nutrient)
{
    return NUTRIENTS[nutrient].unit;
}

const char *tg_nutrient_key(tg_nutrient nutrient)
{
    return NUTRIENTS[nutrient].key;
}

/* Columns: texts, then serving_g and kJ, then the nutrients. */
enum {
    COLUMN_CLASS,
    COLUMN_DISPLAY_NAME,
    COLUMN_RECORD_ID,
    COLUMN_SOURCE,
    COLUMN_SERVING,
    COLUMN_NOTE,
    COLUMN_SERVING_G,
    COLUMN_KJ,
    COLUMN_NUTRIENT,
    COLUMN_COUNT = COLUMN_NUTRIENT + TG_NUTRIENT_COUNT
};

static const char *column_name(size_t column)
{
    static const char *const names[] = {
        "class", "display_name", "fdc_or_ndb_id", "source_description", "serving_description",
        "note",  "serving_g",    "kj_per_100g"};
    return column < COLUMN_NUTRIENT ? names[column] : NUTRIENTS[column - COLUMN_NUTRIENT].column;
}

/* Where each column stands in a record; SIZE_MAX: nowhere. */
typedef struct table_layout {
    size_t place[COLUMN_COUNT];
    size_t fields;
} table_layout;

static tg_status place_column(const char *name, size_t field, table_layout *layout)
{
    tg_nearest nearest = {.word = name};
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        tg_nearest_offer(&nearest, column_name(c));
        if (strcmp(name, column_name(c)) != 0)
            continue;
        if (layout->place[c] != SIZE_MAX)
            return tg_fail(TG_ERROR_INPUT, "line 1: two columns \"%s\"", name);
        layout->place[c] = field;
        return TG_OK;
    }
    return tg_fail(TG_ERROR_INPUT, "line 1: \"%s\" is no column of a nutrition table%s%s%s", name,
                   TG_NEAREST_HINT(nearest.best));
}

static tg_status read_layout(tg_csv *csv, table_layout *out)
{
    char *fields[TG_CSV_FIELDS_MAX];
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        out->place[c] = SIZE_MAX;
    tg_status status = tg_csv_next(csv, fields, &out->fields);
    TG_TRY(status);
    if (status == TG_END)
        return tg_fail(TG_ERROR_INPUT, "the table is empty: it has no line of column names");
    for (size_t f = 0; f < out->fields; f++)
        TG_TRY(place_column(fields[f], f, out));
    if (out->place[COLUMN_CLASS] == SIZE_MAX)
        return tg_fail(TG_ERROR_INPUT, "line 1: there is no column \"class\"");
    return TG_OK;
}

static const char *text_of(const table_layout *layout, char *const *fields, size_t column)
{
    return layout->place[column] == SIZE_MAX ? "" : fields[layout->place[column]];
}

/* "" for columns that are no nutrient's. */
static const char *unit_of(size_t column)
{
    return column < COLUMN_NUTRIENT ? "" : NUTRIENTS[column - COLUMN_NUTRIENT].unit;
}

/* The most that 100 g can hold of what is weighed in that unit. */
static double most_of(const char *unit)
{
    return strcmp(unit, "g") == 0 ? 100 : strcmp(unit, "mg") == 0 ? 100e3 : INFINITY;
}

static tg_status number_of(const table_layout *layout, char *const *fields, size_t column,
                           size_t line, double *out)
{
    const char *text = text_of(layout, fields, column);
    double value = NAN;
    if (text[0] && (!tg_number_parse_double(text, strlen(text), &value) || value < 0))
        return tg_fail(TG_ERROR_INPUT,
                       "line %zu, column %s: \"%.40s\" is no number of 0 or more (leave the cell "
                       "empty when the value is unknown)",
                       line, column_name(column), text);
    if (value > most_of(unit_of(column)))
        return tg_fail(TG_ERROR_INPUT, "line %zu, column %s: 100 g hold no %.40s %s of it", line,
                       column_name(column), text, unit_of(column));
    *out = value;
    return TG_OK;
}

/* Case and word marks aside: the next byte that counts, '_' for any run of marks, 0 at the end. */
static char next_key_byte(const char **at)
{
    const char *p = *at;
    size_t marks = strspn(p, " _-");
    char c = marks ? '_' : *p;
    *at = marks ? p + marks : p + (*p != '\0');
    if (marks && **at == '\0')
        return '\0';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_class(const char *a, const char *b)
{
    a += strspn(a, " _-");
    b += strspn(b, " _-");
    for (;;) {
        char x = next_key_byte(&a), y = next_key_byte(&b);
        if (x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

/* By name as same_class compares it, then by line. */
static int compare_rows(const void *a, const void *b)
{
    const tg_nutrition_row *x = *(const tg_nutrition_row *const *)a;
    const tg_nutrition_row *y = *(const tg_nutrition_row *const *)b;
    const char *p = x->class_name + strspn(x->class_name, " _-");
    const char *q = y->class_name + strspn(y->class_name, " _-");
    for (;;) {
        unsigned char c = (unsigned char)next_key_byte(&p), d = (unsigned char)next_key_byte(&q);
        if (c != d)
            return c < d ? -1 : 1;
        if (c == '\0')
            return x->line < y->line ? -1 : x->line > y->line;
    }
}

static tg_status refuse_repeats(const tg_nutrition *table)
{
    const tg_nutrition_row **rows = malloc((table->count + 1) * sizeof *rows);
    const tg_nutrition_row *first = NULL, *again = NULL;
    if (!rows)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu rows", table->count);
    for (size_t i = 0; i < table->count; i++)
        rows[i] = &table->rows[i];
    if (table->count > 1)
        qsort(rows, table->count, sizeof *rows, compare_rows);
    for (size_t i = 1; i < table->count; i++)
        if (same_class(rows[i - 1]->class_name, rows[i]->class_name) &&
            (!again || rows[i]->line < again->line)) {
            first = rows[i - 1];
            again = rows[i];
        }
    free(rows);
    return again ? tg_fail(TG_ERROR_INPUT, "line %zu: class \"%s\" is already in line %zu",
                           again->line, again->class_name, first->line)
                 : TG_OK;
}

const tg_nutrition_row *tg_nutrition_find(const tg_nutrition *table, const char *class_name)
{
    for (size_t i = 0; i < table->count; i++)
        if (same_class(table->rows[i].class_name, class_name))
            return &table->rows[i];
    return NULL;
}

double tg_nutrition_per_serving(const tg_nutrition_row *row, tg_nutrient nutrient)
{
    return row->per_100g[nutrient] * row->serving_g / 100;
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static void doubt(tg_nutrition *table, tg_nutrition_row *row, const char *name, const char *what,
                  double stated, double low, double high, const char *unit)
{
    row->doubtful = true;
    table->warning_count++;
    tg_text_append_format(&table->warnings,
                          "%s: line %zu, %s: %s is %g %s, but its other values say %.0f to %.0f\n",
                          name, row->line, row->class_name, what, stated, unit, low, high);
}

static void check_energy(tg_nutrition *table, tg_nutrition_row *row, double kj, const char *name)
{
    const double *v = row->per_100g;
    double kcal = v[TG_NUTRIENT_ENERGY], C = v[TG_NUTRIENT_CARBOHYDRATE],
           P = v[TG_NUTRIENT_PROTEIN], F = v[TG_NUTRIENT_FAT];
    double want_kj = kcal * KJ_PER_KCAL, slack_kj = 0.02 * want_kj + 5;
    if (fabs(kj - want_kj) > slack_kj)
        doubt(table, row, name, "kj_per_100g", kj, want_kj - slack_kj, want_kj + slack_kj, "kJ");
    double macros = C + P + F;
    if (macros > 105)
        doubt(table, row, name, "carbohydrate, protein and fat of 100 g", macros, 0, 105, "g");
    double digestible = fmax(C - or_zero(v[TG_NUTRIENT_FIBER]), 0);
    double low = 2.44 * P + 8.37 * F + 2.48 * digestible - 5;
    double high = 4.36 * P + 9.02 * F + 4.16 * C + 5;
    if (kcal < low || kcal > high)
        doubt(table, row, name, "kcal_per_100g", kcal, fmax(low, 0), high, "kcal");
}

static tg_status read_row(tg_nutrition *table, const table_layout *layout, char *const *fields,
                          size_t line, const char *name, tg_nutrition_row *out)
{
    tg_nutrition_row row = {
        .class_name = text_of(layout, fields, COLUMN_CLASS),
        .display_name = text_of(layout, fields, COLUMN_DISPLAY_NAME),
        .record_id = text_of(layout, fields, COLUMN_RECORD_ID),
        .source_description = text_of(layout, fields, COLUMN_SOURCE),
        .serving_description = text_of(layout, fields, COLUMN_SERVING),
        .note = text_of(layout, fields, COLUMN_NOTE),
        .line = line,
    };
    if (row.class_name[strspn(row.class_name, " _-")] == '\0')
        return tg_fail(TG_ERROR_INPUT, "line %zu: the class is empty", line);
    if (row.display_name[0] == '\0')
        row.display_name = row.class_name;
    double kj;
    TG_TRY(number_of(layout, fields, COLUMN_SERVING_G, line, &row.serving_g));
    TG_TRY(number_of(layout, fields, COLUMN_KJ, line, &kj));
    for (size_t n = 0; n < TG_NUTRIENT_COUNT; n++)
        TG_TRY(number_of(layout, fields, COLUMN_NUTRIENT + n, line, &row.per_100g[n]));
    if (isnan(row.per_100g[TG_NUTRIENT_ENERGY]))
        row.per_100g[TG_NUTRIENT_ENERGY] = kj / KJ_PER_KCAL;
    check_energy(table, &row, kj, name);
    *out = row;
    return TG_OK;
}

static tg_status reserve_row(tg_nutrition *table)
{
    if (table->count < table->capacity)
        return TG_OK;
    if (table->count == TABLE_MAX_ROWS)
        return tg_fail(TG_ERROR_INPUT, "more than %d rows", TABLE_MAX_ROWS);
    size_t capacity = table->capacity ? 2 * table->capacity : 256;
    tg_nutrition_row *rows = realloc(table->rows, capacity * sizeof *rows);
    if (!rows)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for %zu rows", capacity);
    table->rows = rows;
    table->capacity = capacity;
    return TG_OK;
}

static tg_status read_rows(tg_nutrition *table, size_t length, const char *name)
{
    char *fields[TG_CSV_FIELDS_MAX];
    size_t count;
    table_layout layout;
    tg_csv csv = tg_csv_init(table->bytes, length);
    TG_TRY(read_layout(&csv, &layout));
    for (;;) {
        tg_status status = tg_csv_next(&csv, fields, &count);
        TG_TRY(status);
        if (status == TG_END) {
            TG_TRY(refuse_repeats(table));
            return tg_text_check(&table->warnings, "the warnings");
        }
        if (count != layout.fields)
            return tg_fail(TG_ERROR_INPUT, "line %zu: %zu fields, but there are %zu columns",
                           csv.record_line, count, layout.fields);
        TG_TRY(reserve_row(table));
        TG_TRY(read_row(table, &layout, fields, csv.record_line, name, &table->rows[table->count]));
        table->count++;
    }
}

tg_status tg_nutrition_parse(const char *bytes, size_t length, const char *name, tg_nutrition *out)
{
    tg_nutrition table = {.bytes = length < SIZE_MAX ? malloc(length + 1) : NULL};
    if (!table.bytes)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for a table of %zu bytes", length);
    if (length)
        memcpy(table.bytes, bytes, length);
    tg_status status = read_rows(&table, length, name);
    if (status < 0) {
        tg_nutrition_done(&table);
        return tg_fail_prefix(status, "%s", name);
    }
    *out = table;
    return TG_OK;
}

tg_status tg_nutrition_read(const char *path, tg_nutrition *out)
{
    char *bytes;
    size_t length;
    TG_TRY(tg_file_read(path, TABLE_MAX_BYTES, &bytes, &length));
    tg_status status = tg_nutrition_parse(bytes, length, path, out);
    free(bytes);
    return status;
}

tg_status tg_nutrition_shipped(tg_nutrition *out)
{
    return tg_nutrition_parse((const char *)tg_nutrition_table, tg_nutrition_table_bytes,
                              "built-in nutrition table", out);
}

void tg_nutrition_done(tg_nutrition *table)
{
    if (!table)
        return;
    free(table->rows);
    free(table->bytes);
    tg_text_done(&table->warnings);
    *table = (tg_nutrition){0};
}
