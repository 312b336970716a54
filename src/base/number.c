#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C locale is a static object of the C library: newlocale finds it without allocating, and
 * freeing it does nothing. */
void *tg_number_locale_enter(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (void *)uselocale(c);
}

void tg_number_locale_leave(void *previous)
{
    uselocale((locale_t)previous);
}

static size_t skip_digits(const char *text, size_t length, size_t at)
{
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

static size_t skip_sign(const char *text, size_t length, size_t at)
{
    return at < length && (text[at] == '-' || text[at] == '+') ? at + 1 : at;
}

static bool is_decimal(const char *text, size_t length)
{
    size_t start = skip_sign(text, length, 0);
    size_t at = skip_digits(text, length, start);
    size_t digits = at - start;
    if (at < length && text[at] == '.') {
        size_t end = skip_digits(text, length, at + 1);
        digits += end - at - 1;
        at = end;
    }
    if (digits == 0)
        return false;
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        size_t first = skip_sign(text, length, at + 1);
        at = skip_digits(text, length, first);
        if (at == first)
            return false;
    }
    return at == length;
}

/* The C routines need a terminator, which a slice of a file lacks. */
static bool copy_decimal(const char *text, size_t length, char out[TG_NUMBER_MAX_BYTES])
{
    if (length == 0 || length >= TG_NUMBER_MAX_BYTES || !is_decimal(text, length))
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

bool tg_number_parse_double(const char *text, size_t length, double *out)
{
    char copy[TG_NUMBER_MAX_BYTES];
    if (!copy_decimal(text, length, copy))
        return false;
    void *previous = tg_number_locale_enter();
    double value = strtod(copy, NULL);
    tg_number_locale_leave(previous);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool tg_number_parse_float(const char *text, size_t length, float *out)
{
    char copy[TG_NUMBER_MAX_BYTES];
    if (!copy_decimal(text, length, copy))
        return false;
    void *previous = tg_number_locale_enter();
    float value = strtof(copy, NULL);
    tg_number_locale_leave(previous);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool tg_number_parse_u64(const char *text, size_t length, uint64_t *out)
{
    size_t at = length && text[0] == '+' ? 1 : 0;
    if (at == length)
        return false;
    uint64_t value = 0;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[at] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool tg_number_parse_i64(const char *text, size_t length, int64_t *out)
{
    bool negative = length && text[0] == '-';
    uint64_t magnitude;
    if (negative && length > 1 && text[1] == '+')
        return false;
    if (!tg_number_parse_u64(text + negative, length - negative, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

int tg_number_vprint(char *out, size_t size, const char *format, va_list args)
{
    void *previous = tg_number_locale_enter();
    int n = vsnprintf(out, size, format, args);
    tg_number_locale_leave(previous);
    return n;
}

int tg_number_print(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = tg_number_vprint(out, size, format, args);
    va_end(args);
    return n;
}

/* A decimal of DBL_DIG digits survives the way through a normal double, so "%.15g" already gives
 * back every shorter text, its trailing zeros dropped. Subnormals hold fewer digits. */
size_t tg_number_format_double(double value, char out[TG_NUMBER_BYTES])
{
    int digits = isnormal(value) ? DBL_DIG : 1;
    void *previous = tg_number_locale_enter();
    int n;
    do {
        n = snprintf(out, TG_NUMBER_BYTES, "%.*g", digits, value);
    } while (digits++ < DBL_DECIMAL_DIG && isfinite(value) && strtod(out, NULL) != value);
    tg_number_locale_leave(previous);
    return (size_t)n;
}

size_t tg_number_format_float(float value, char out[TG_NUMBER_BYTES])
{
    int digits = isnormal(value) ? FLT_DIG : 1;
    void *previous = tg_number_locale_enter();
    int n;
    do {
        n = snprintf(out, TG_NUMBER_BYTES, "%.*g", digits, (double)value);
    } while (digits++ < FLT_DECIMAL_DIG && isfinite(value) && strtof(out, NULL) != value);
    tg_number_locale_leave(previous);
    return (size_t)n;
}
