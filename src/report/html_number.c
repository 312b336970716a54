/* Numbers and bytes of the page's data. */
#include "report/html_parts.h"

#include <math.h>
#include <stdlib.h>

static void append_number(tg_text *out, double value)
{
    if (!isfinite(value))
        tg_text_append_string(out, "null");
    else if (value == 0)
        tg_text_append_char(out, '0');
    else
        tg_text_append_format(out, "%.5g", value);
}

void tg_html_put_numbers(tg_json_writer *w, const char *key, const double *values, size_t count)
{
    tg_json_begin_array(w, key);
    for (size_t i = 0; i < count; i++) {
        if (i)
            tg_text_append_char(w->text, ',');
        append_number(w->text, values[i]);
    }
    tg_json_end_array(w);
}

void tg_html_put_number(tg_json_writer *w, const char *key, double value)
{
    if (isfinite(value)) {
        const double size = value == 0 ? 0 : pow(10, 5 - ceil(log10(fabs(value))));
        const double rounded = size == 0 || !isfinite(size) ? value : round(value * size) / size;
        tg_json_put_double(w, key, rounded);
    } else
        tg_json_put_null(w, key);
}

tg_status tg_html_put_bytes(tg_json_writer *w, const char *key, const uint8_t *bytes, size_t count)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((count + 2) / 3 * 4 + 1), *at = text;
    if (!text)
        return tg_fail(TG_ERROR_MACHINE, "out of memory for the report");
    for (size_t i = 0; i < count; i += 3) {
        const size_t left = count - i;
        const uint32_t three = (uint32_t)bytes[i] << 16 |
                               (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                               (left > 2 ? bytes[i + 2] : 0);
        *at++ = DIGITS[three >> 18];
        *at++ = DIGITS[three >> 12 & 63];
        *at++ = left > 1 ? DIGITS[three >> 6 & 63] : '=';
        *at++ = left > 2 ? DIGITS[three & 63] : '=';
    }
    *at = '\0';
    tg_json_put_string(w, key, text);
    free(text);
    return TG_OK;
}

uint8_t tg_html_share_byte(double share)
{
    if (isnan(share))
        return 255;
    return (uint8_t)lround(254 * fmin(1, fmax(0, share)));
}
