#include "base/text.h"

#include "base/checked.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tg_text_done(tg_text *text)
{
    free(text->data);
    *text = (tg_text){0};
}

void tg_text_clear(tg_text *text)
{
    text->length = 0;
    text->failed = false;
    if (text->data)
        text->data[0] = '\0';
}

const char *tg_text_string(const tg_text *text)
{
    return text->data ? text->data : "";
}

/* Makes room for `extra` bytes and the terminator. */
static bool reserve(tg_text *text, size_t extra)
{
    size_t need;
    if (text->failed)
        return false;
    if (!tg_add_size(text->length, extra, &need) || !tg_add_size(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity < 128 ? 128 : text->capacity;
    while (capacity < need)
        if (!tg_mul_size(capacity, 2, &capacity))
            capacity = need;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void tg_text_append(tg_text *text, const void *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void tg_text_append_string(tg_text *text, const char *string)
{
    tg_text_append(text, string, strlen(string));
}

void tg_text_append_char(tg_text *text, char c)
{
    tg_text_append(text, &c, 1);
}

void tg_text_append_format(tg_text *text, const char *format, ...)
{
    char line[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = tg_number_vprint(line, sizeof line, format, args);
    if (n < 0) {
        text->failed = true;
    } else if ((size_t)n < sizeof line) {
        tg_text_append(text, line, (size_t)n);
    } else if (reserve(text, (size_t)n)) {
        tg_number_vprint(text->data + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void tg_text_append_double(tg_text *text, double value)
{
    char number[TG_NUMBER_BYTES];
    tg_text_append(text, number, tg_number_format_double(value, number));
}

/* Length of the valid UTF-8 sequence at the start of bytes (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF), or 0. */
static size_t utf8_sequence(const unsigned char *bytes, size_t length)
{
    unsigned char lead = bytes[0];
    if (lead < 0x80)
        return 1;
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length < need)
        return 0;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
    return need;
}

bool tg_text_is_utf8(const char *bytes, size_t length)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < length;) {
        size_t n = utf8_sequence(p + i, length - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

static void append_escaped_ascii(tg_text *text, unsigned char c)
{
    if (c == '"' || c == '\\')
        tg_text_append_format(text, "\\%c", c);
    else if (c == '\n')
        tg_text_append_string(text, "\\n");
    else if (c == '\t')
        tg_text_append_string(text, "\\t");
    else if (c < 0x20 || c == 0x7F)
        tg_text_append_format(text, "\\u%04x", c);
    else
        tg_text_append_char(text, (char)c);
}

void tg_text_append_json_string(tg_text *text, const char *bytes, size_t length)
{
    const unsigned char *p = (const unsigned char *)bytes;
    tg_text_append_char(text, '"');
    for (size_t i = 0; i < length;) {
        size_t n = utf8_sequence(p + i, length - i);
        if (n == 0)
            tg_text_append_string(text, "\xEF\xBF\xBD");
        else if (n == 1)
            append_escaped_ascii(text, p[i]);
        else
            tg_text_append(text, p + i, n);
        i += n ? n : 1;
    }
    tg_text_append_char(text, '"');
}

/* Bytes at `at` that may not be shown as they are: 0, 1, or 2 for U+0080 to U+009F. */
static size_t unfit_bytes(const unsigned char *at, const char *keep)
{
    if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0)
        return 2;
    bool control = at[0] < 0x20 || at[0] == 0x7F || at[0] == '\\';
    return control && !strchr(keep, at[0]);
}

void tg_text_append_visible(tg_text *text, const char *string, const char *keep)
{
    const unsigned char *at = (const unsigned char *)string;
    while (*at) {
        size_t n = unfit_bytes(at, keep);
        if (n == 0)
            tg_text_append_char(text, (char)*at++);
        for (; n; n--)
            tg_text_append_format(text, "\\x%02x", *at++);
    }
}

void tg_text_append_wrapped(tg_text *text, const char *words, size_t indent, size_t width)
{
    static const char *const GAPS = " \n";
    size_t column = indent;
    for (const char *at = words + strspn(words, GAPS); *at; at += strspn(at, GAPS)) {
        size_t length = strcspn(at, GAPS);
        if (column > indent && column + 1 + length > width) {
            tg_text_append_format(text, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            tg_text_append_char(text, ' ');
            column++;
        }
        tg_text_append(text, at, length);
        column += length;
        at += length;
    }
}

tg_status tg_text_check(const tg_text *text, const char *what)
{
    if (text->failed)
        return tg_fail(TG_ERROR_MACHINE, "%s: out of memory after %zu bytes", what, text->length);
    return TG_OK;
}
