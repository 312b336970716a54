/* text.h - a byte buffer that grows: for messages, records and files built in memory.
 *
 * Appending never returns an error: when memory runs out the buffer drops what does not fit and
 * remembers it; ask once at the end with tg_text_check. The bytes are always followed by a NUL that
 * is not counted. Once grown, tg_text_clear keeps the memory, so a record written every step
 * allocates nothing after the first.
 *
 * States  zeroed struct -> append ... clear ... -> done. done accepts a zeroed struct.
 * Memory  heap, owned by the struct. Threads  one at a time.
 */
#ifndef TG_BASE_TEXT_H
#define TG_BASE_TEXT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_text {
    char *data; /* NULL before the first append */
    size_t length;
    size_t capacity;
    bool failed; /* memory ran out since the last clear */
} tg_text;

void tg_text_done(tg_text *text);
/* Empties it and forgets a failure; keeps the memory. */
void tg_text_clear(tg_text *text);
/* The bytes as a C string, "" before the first append; valid until the next append. */
const char *tg_text_string(const tg_text *text);

void tg_text_append(tg_text *text, const void *bytes, size_t length);
void tg_text_append_string(tg_text *text, const char *string);
void tg_text_append_char(tg_text *text, char c);
/* printf with the numbers of the C locale. */
void tg_text_append_format(tg_text *text, const char *format, ...) TG_PRINTF(2, 3);
/* Shortest text that reads back; "nan", "inf" as tg_number_format_double gives them. */
void tg_text_append_double(tg_text *text, double value);
/* A JSON string with its quotes. Control characters, quotes and backslashes are escaped; bytes that
 * are not valid UTF-8 (a file name may hold any) become U+FFFD, one for each bad byte. */
void tg_text_append_json_string(tg_text *text, const char *bytes, size_t length);

/* The string with every byte that would end the line or command a terminal (controls below 0x20, 0x7f,
 * and U+0080 to U+009F) and every backslash written as \xHH. `keep` lists those that stay: "" for a
 * file's name, "\\" for a sentence that may quote one, "\\\n" for several lines. */
void tg_text_append_visible(tg_text *text, const char *string, const char *keep);

/* Its words, with one space between, on lines of `width` bytes at most where no word is longer. The text
 * stands in column `indent`, and so do the lines that follow. */
void tg_text_append_wrapped(tg_text *text, const char *words, size_t indent, size_t width);

/* Is it valid UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF)? */
bool tg_text_is_utf8(const char *bytes, size_t length);

/* TG_ERROR_MACHINE naming `what` when memory ran out since the last clear. */
tg_status tg_text_check(const tg_text *text, const char *what) TG_MUST_CHECK;

#endif
