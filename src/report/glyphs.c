#include "report/glyphs.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

void tg_glyphs_color(const tg_glyphs *glyphs, tg_color color, tg_text *out)
{
    static const char *const CODES[] = {
        [TG_COLOR_PLAIN] = "\033[0m",  [TG_COLOR_DIM] = "\033[2m",
        [TG_COLOR_BOLD] = "\033[1m",   [TG_COLOR_RED] = "\033[31m",
        [TG_COLOR_GREEN] = "\033[32m", [TG_COLOR_YELLOW] = "\033[33m",
        [TG_COLOR_BLUE] = "\033[34m",  [TG_COLOR_MAGENTA] = "\033[35m",
        [TG_COLOR_CYAN] = "\033[36m",
    };
    if (glyphs->color)
        tg_text_append_string(out, CODES[color]);
}

static const char *const BLOCKS[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const SHADES[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
enum { LEVELS = 8 };

static void append_level(const tg_glyphs *glyphs, int level, tg_text *out)
{
    tg_text_append_string(out, (glyphs->unicode ? BLOCKS : SHADES)[level]);
}

void tg_glyphs_cell(const tg_glyphs *glyphs, double share, tg_text *out)
{
    if (isnan(share)) {
        tg_text_append_char(out, '?');
        return;
    }
    append_level(glyphs, (int)lround(fmin(fmax(share, 0), 1) * LEVELS), out);
}

/* Mean of the finite values of [from, to); NaN: none. */
static double mean_of(const double *values, size_t from, size_t to)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            n++;
        }
    return n ? sum / (double)n : NAN;
}

void tg_glyphs_curve(const tg_glyphs *glyphs, const double *values, size_t count, size_t width,
                     tg_text *out)
{
    const size_t cells = count < width ? count : width;
    double low = INFINITY, high = -INFINITY;
    for (size_t c = 0; c < cells; c++) {
        const double value = mean_of(values, c * count / cells, (c + 1) * count / cells);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    for (size_t c = 0; c < cells; c++) {
        const double value = mean_of(values, c * count / cells, (c + 1) * count / cells);
        const double share = high > low ? (value - low) / (high - low) : 0;
        append_level(glyphs, isnan(value) ? 0 : 1 + (int)lround(share * (LEVELS - 1)), out);
    }
    for (size_t c = cells; c < width; c++)
        tg_text_append_char(out, ' ');
}

void tg_glyphs_bar(const tg_glyphs *glyphs, double share, size_t width, tg_text *out)
{
    const size_t filled =
        isnan(share) ? 0 : (size_t)lround(fmin(fmax(share, 0), 1) * (double)width);
    for (size_t i = 0; i < width; i++)
        tg_text_append_string(out, i < filled ? (glyphs->unicode ? "█" : "#")
                                              : (glyphs->unicode ? "░" : "."));
}

static const tg_color PART_COLORS[] = {
    TG_COLOR_RED,   TG_COLOR_MAGENTA, TG_COLOR_BLUE,    TG_COLOR_CYAN, TG_COLOR_YELLOW,
    TG_COLOR_GREEN, TG_COLOR_DIM,     TG_COLOR_MAGENTA, TG_COLOR_CYAN, TG_COLOR_YELLOW};
static const char *const PART_BLOCKS[] = {"█", "▓", "▒", "░", "▚", "▞", "·", "▙", "▛", "▟"};
static const char PART_LETTERS[] = "#*+=%:.~-o";
enum { PARTS = sizeof PART_LETTERS - 1 };

void tg_glyphs_part(const tg_glyphs *glyphs, size_t index, tg_text *out)
{
    tg_glyphs_color(glyphs, PART_COLORS[index % PARTS], out);
    if (glyphs->unicode)
        tg_text_append_string(out, PART_BLOCKS[index % PARTS]);
    else
        tg_text_append_char(out, PART_LETTERS[index % PARTS]);
    tg_glyphs_color(glyphs, TG_COLOR_PLAIN, out);
}

void tg_glyphs_parts(const tg_glyphs *glyphs, const double *parts, size_t count, double whole,
                     size_t width, tg_text *out)
{
    double sum = 0;
    size_t done = 0;
    for (size_t p = 0; p < count && whole > 0; p++) {
        sum += parts[p] > 0 ? parts[p] : 0;
        const size_t end = (size_t)lround(fmin(sum / whole, 1) * (double)width);
        for (; done < end; done++)
            tg_glyphs_part(glyphs, p, out);
    }
    for (; done < width; done++)
        tg_text_append_char(out, ' ');
}

/* One character of UTF-8, or a byte that is none as U+FFFD; its length. */
static size_t decode(const char *bytes, size_t length, uint32_t *out)
{
    const unsigned char first = (unsigned char)bytes[0];
    size_t n = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    *out = first < 0x80 ? first : 0xFFFD;
    if (n == 1 || n > length || !tg_text_is_utf8(bytes, n))
        return 1;
    *out = first & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        *out = *out << 6 | ((unsigned char)bytes[i] & 0x3F);
    return n;
}

/* Ranges of UAX #11 "wide" that occur in names, roughly; combining marks take nothing. */
static size_t columns_of(uint32_t c)
{
    if ((c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200F) || (c >= 0xFE00 && c <= 0xFE0F))
        return 0;
    const bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
                      (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
                      (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                      (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
                      (c >= 0x20000 && c <= 0x3FFFD);
    return wide ? 2 : 1;
}

size_t tg_glyphs_width(const char *string, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length;) {
        uint32_t c;
        if (string[i] == '\033') {
            while (i < length && string[i] != 'm')
                i++;
            i += i < length;
            continue;
        }
        i += decode(string + i, length - i, &c);
        columns += columns_of(c);
    }
    return columns;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

size_t tg_glyphs_fit(const tg_glyphs *glyphs, const char *string, size_t columns, tg_text *out)
{
    const size_t length = strlen(string);
    const bool cut = tg_glyphs_width(string, length) > columns;
    const size_t room = cut ? (columns > 3 ? columns - 3 : 0) : columns;
    size_t taken = 0;
    for (size_t i = 0; i < length;) {
        uint32_t c;
        const size_t n = decode(string + i, length - i, &c), wide = columns_of(c);
        if (taken + wide > room)
            break;
        if (!is_control(c)) {
            if (c < 0x80 || (glyphs->unicode && c != 0xFFFD))
                tg_text_append(out, string + i, n);
            else
                for (size_t k = 0; k < wide; k++)
                    tg_text_append_char(out, '?');
            taken += wide;
        }
        i += n;
    }
    if (!cut)
        return taken;
    const size_t dots = columns < 3 ? columns : 3;
    tg_text_append(out, "...", dots);
    return taken + dots;
}

void tg_glyphs_count(double value, tg_text *out)
{
    static const char UNITS[] = " kMGT";
    int unit = 0;
    if (isnan(value)) {
        tg_text_append_char(out, '-');
        return;
    }
    while (fabs(value) >= 999.5 && unit < 4) {
        value /= 1000;
        unit++;
    }
    const double size = fabs(value);
    tg_text_append_format(out, size < 9.95 ? "%.2f" : size < 99.5 ? "%.1f" : "%.0f", value);
    if (unit)
        tg_text_append_char(out, UNITS[unit]);
}

void tg_glyphs_bytes(double bytes, tg_text *out)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    if (!isfinite(bytes)) {
        tg_text_append_char(out, '-');
        return;
    }
    while (fabs(bytes) >= 1000 && unit < 4) { /* never four digits */
        bytes /= 1024;
        unit++;
    }
    tg_text_append_format(out, unit && fabs(bytes) < 99.95 ? "%.1f %s" : "%.0f %s", bytes,
                          UNITS[unit]);
}

void tg_glyphs_seconds(double seconds, tg_text *out)
{
    if (!isfinite(seconds) || seconds < 0) {
        tg_text_append_char(out, '-');
        return;
    }
    if (seconds < 0.0995)
        tg_text_append_format(out, "%.1f ms", 1e3 * seconds);
    else if (seconds < 0.9995)
        tg_text_append_format(out, "%.0f ms", 1e3 * seconds);
    else if (seconds < 9.995)
        tg_text_append_format(out, "%.2f s", seconds);
    else if (seconds < 59.95)
        tg_text_append_format(out, "%.1f s", seconds);
    else if (seconds < 3599.5)
        tg_text_append_format(out, "%.0f:%02.0f", floor(round(seconds) / 60),
                              fmod(round(seconds), 60));
    else if (seconds < 172800)
        tg_text_append_format(out, "%.0f:%02.0f:%02.0f", floor(seconds / 3600),
                              fmod(floor(seconds / 60), 60), fmod(floor(seconds), 60));
    else
        tg_text_append_format(out, "%.0fd %02.0fh", floor(seconds / 86400),
                              fmod(floor(seconds / 3600), 24));
}
