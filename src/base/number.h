/* number.h - numbers as text, with the point as decimal mark whatever the locale of the process.
 *
 * C's strtod and printf follow setlocale(); files, options and answers must not. Everything here
 * works under the C locale of the calling thread only for the length of the call (uselocale), so a
 * library that calls setlocale() before, after or meanwhile changes nothing.
 *
 * Parsing is strict: the whole text of `length` bytes is one decimal number
 * ([+-] digits [. digits] [e [+-] digits]), no blanks, no hexadecimal, no "inf" or "nan", nothing
 * behind it. Results that leave the type's range are refused; a result too small becomes the
 * nearest subnormal or 0. Parsers return false and leave *out alone on refusal: the caller knows
 * what was being read and says so.
 *
 * Memory  none, or the caller's. Threads  reentrant.
 */
#ifndef TG_BASE_NUMBER_H
#define TG_BASE_NUMBER_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text that is looked at; longer ones are refused. */
#define TG_NUMBER_MAX_BYTES 512
/* Room that any formatted number needs, terminator included. */
#define TG_NUMBER_BYTES 32

bool tg_number_parse_double(const char *text, size_t length, double *out);
/* Rounded once, from the decimal text (not through double). */
bool tg_number_parse_float(const char *text, size_t length, float *out);
/* Optional sign and digits only. */
bool tg_number_parse_i64(const char *text, size_t length, int64_t *out);
bool tg_number_parse_u64(const char *text, size_t length, uint64_t *out);

/* Shortest "%.*g" text that reads back as the same value; "nan", "inf", "-inf" for those. Writes at
 * most TG_NUMBER_BYTES with the terminator and returns the length. */
size_t tg_number_format_double(double value, char out[TG_NUMBER_BYTES]);
size_t tg_number_format_float(float value, char out[TG_NUMBER_BYTES]);

/* snprintf and vsnprintf under the C locale; same return value. */
int tg_number_print(char *out, size_t size, const char *format, ...) TG_PRINTF(3, 4);
int tg_number_vprint(char *out, size_t size, const char *format, va_list args);

/* Puts the calling thread under the C locale, for calls into libraries that read or write numbers;
 * give the returned value back to tg_number_locale_leave on the same thread. */
void *tg_number_locale_enter(void);
void tg_number_locale_leave(void *previous);

#endif
