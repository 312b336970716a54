#include "infer/csv.h"

#include <stdbool.h>
#include <string.h>

tg_csv tg_csv_init(char *bytes, size_t length)
{
    size_t mark = length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return (tg_csv){.at = bytes + mark, .end = bytes + length, .line = 1};
}

/* Bytes of the line end at `p`: 0 when there is none. */
static size_t line_end(const tg_csv *csv, const char *p)
{
    if (p < csv->end && p[0] == '\n')
        return 1;
    return p + 1 < csv->end && p[0] == '\r' && p[1] == '\n' ? 2 : 0;
}

static bool field_ends(const tg_csv *csv, const char *p)
{
    return p == csv->end || *p == ',' || line_end(csv, p) > 0;
}

/* *out_end: where the field's own text ends; csv->at: behind it. */
static tg_status read_plain(tg_csv *csv, char **out_end)
{
    char *p = csv->at;
    for (; !field_ends(csv, p); p++) {
        if (*p == '"')
            return tg_fail(TG_ERROR_INPUT,
                           "line %zu: a quote inside an unquoted field; put the whole field in "
                           "quotes and double those inside",
                           csv->line);
        if (*p == '\r')
            return tg_fail(TG_ERROR_INPUT, "line %zu: a carriage return without line feed",
                           csv->line);
        if (*p == '\0')
            return tg_fail(TG_ERROR_INPUT, "line %zu: a zero byte; this is no text", csv->line);
    }
    csv->at = *out_end = p;
    return TG_OK;
}

/* As read_plain, from the opening quote on; the text moves to the field's first byte. */
static tg_status read_quoted(tg_csv *csv, char **out_end)
{
    char *from = csv->at + 1, *to = csv->at;
    for (;; from++) {
        if (from == csv->end)
            return tg_fail(TG_ERROR_INPUT,
                           "line %zu: the record that begins here has a quoted field without end",
                           csv->record_line);
        if (*from == '\0')
            return tg_fail(TG_ERROR_INPUT, "line %zu: a zero byte; this is no text", csv->line);
        if (*from == '"') {
            if (from + 1 == csv->end || from[1] != '"')
                break;
            from++;
        }
        csv->line += *from == '\n';
        *to++ = *from;
    }
    csv->at = from + 1;
    *out_end = to;
    if (!field_ends(csv, csv->at))
        return tg_fail(TG_ERROR_INPUT, "line %zu: text behind a closing quote", csv->line);
    return TG_OK;
}

static void skip_empty_lines(tg_csv *csv)
{
    size_t n;
    while ((n = line_end(csv, csv->at)) > 0) {
        csv->at += n;
        csv->line++;
    }
}

tg_status tg_csv_next(tg_csv *csv, char *out_fields[TG_CSV_FIELDS_MAX], size_t *out_count)
{
    size_t count = 0;
    skip_empty_lines(csv);
    if (csv->at == csv->end)
        return TG_END;
    csv->record_line = csv->line;
    for (;;) {
        char *text_end = csv->at;
        if (count == TG_CSV_FIELDS_MAX)
            return tg_fail(TG_ERROR_INPUT, "line %zu: more than %d fields", csv->line,
                           TG_CSV_FIELDS_MAX);
        out_fields[count++] = csv->at;
        bool quoted = csv->at < csv->end && *csv->at == '"';
        TG_TRY(quoted ? read_quoted(csv, &text_end) : read_plain(csv, &text_end));
        bool more = csv->at < csv->end && *csv->at == ',';
        size_t n = more ? 1 : line_end(csv, csv->at);
        *text_end = '\0'; /* only now: it may stand on the comma or line end */
        csv->at += n;
        csv->line += !more && n > 0;
        if (!more)
            break;
    }
    *out_count = count;
    return TG_OK;
}
