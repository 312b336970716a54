#include "base/json_writer.h"

#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

tg_json_writer tg_json_writer_init(tg_text *text)
{
    return (tg_json_writer){.text = text};
}

/* The comma and the key that come before every value. */
static void lead_in(tg_json_writer *writer, const char *key)
{
    uint64_t bit = UINT64_C(1) << writer->depth;
    if (writer->filled & bit)
        tg_text_append_char(writer->text, ',');
    if (writer->depth)
        writer->filled |= bit;
    if (key) {
        tg_text_append_json_string(writer->text, key, strlen(key));
        tg_text_append_char(writer->text, ':');
    }
}

static void begin(tg_json_writer *writer, const char *key, char bracket)
{
    lead_in(writer, key);
    tg_text_append_char(writer->text, bracket);
    writer->depth++;
    assert(writer->depth < 64);
    writer->filled &= ~(UINT64_C(1) << writer->depth);
}

static void end(tg_json_writer *writer, char bracket)
{
    assert(writer->depth > 0);
    writer->depth--;
    tg_text_append_char(writer->text, bracket);
}

void tg_json_begin_object(tg_json_writer *writer, const char *key)
{
    begin(writer, key, '{');
}

void tg_json_end_object(tg_json_writer *writer)
{
    end(writer, '}');
}

void tg_json_begin_array(tg_json_writer *writer, const char *key)
{
    begin(writer, key, '[');
}

void tg_json_end_array(tg_json_writer *writer)
{
    end(writer, ']');
}

void tg_json_put_int(tg_json_writer *writer, const char *key, int64_t value)
{
    lead_in(writer, key);
    tg_text_append_format(writer->text, "%" PRId64, value);
}

void tg_json_put_uint(tg_json_writer *writer, const char *key, uint64_t value)
{
    lead_in(writer, key);
    tg_text_append_format(writer->text, "%" PRIu64, value);
}

void tg_json_put_double(tg_json_writer *writer, const char *key, double value)
{
    lead_in(writer, key);
    if (isfinite(value))
        tg_text_append_double(writer->text, value);
    else
        tg_text_append_string(writer->text, "null");
}

void tg_json_put_float(tg_json_writer *writer, const char *key, float value)
{
    char number[TG_NUMBER_BYTES];
    lead_in(writer, key);
    if (isfinite(value))
        tg_text_append(writer->text, number, tg_number_format_float(value, number));
    else
        tg_text_append_string(writer->text, "null");
}

void tg_json_put_bool(tg_json_writer *writer, const char *key, bool value)
{
    lead_in(writer, key);
    tg_text_append_string(writer->text, value ? "true" : "false");
}

void tg_json_put_string(tg_json_writer *writer, const char *key, const char *value)
{
    lead_in(writer, key);
    if (value)
        tg_text_append_json_string(writer->text, value, strlen(value));
    else
        tg_text_append_string(writer->text, "null");
}

void tg_json_put_null(tg_json_writer *writer, const char *key)
{
    tg_json_put_string(writer, key, NULL);
}
