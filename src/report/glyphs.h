/* glyphs.h - small pictures in lines of text, and lines that fit a terminal: bars, curves, shaded cells.
 *
 * In UTF-8 with block characters, else in ASCII. Widths are columns of a terminal: an East Asian wide character takes
 * two, a combining one none. All append to a tg_text, which remembers a lack of memory. Threads reentrant.
 */
#ifndef TG_REPORT_GLYPHS_H
#define TG_REPORT_GLYPHS_H

#include "base/text.h"

typedef struct tg_glyphs {
    bool unicode;
    bool color; /* escape sequences for colours */
} tg_glyphs;

typedef enum tg_color {
    TG_COLOR_PLAIN,
    TG_COLOR_DIM,
    TG_COLOR_BOLD,
    TG_COLOR_RED,
    TG_COLOR_GREEN,
    TG_COLOR_YELLOW,
    TG_COLOR_BLUE,
    TG_COLOR_MAGENTA,
    TG_COLOR_CYAN
} tg_color;

/* Begins a colour, and ends it with TG_COLOR_PLAIN; nothing where there are none. */
void tg_glyphs_color(const tg_glyphs *glyphs, tg_color color, tg_text *out);

/* A cell as full as `share` (0 to 1): ' ' to a full block; '?' unknown (NaN). */
void tg_glyphs_cell(const tg_glyphs *glyphs, double share, tg_text *out);

/* `width` cells for `count` values from the left; where there are more, each cell is the mean of some. Scaled between the
 * least and the most that is finite; a flat curve is of low blocks; unknown ones are blank. */
void tg_glyphs_curve(const tg_glyphs *glyphs, const double *values, size_t count, size_t width,
                     tg_text *out);

/* `width` cells, filled to `share`; NaN: none. "[####....]" without the brackets. */
void tg_glyphs_bar(const tg_glyphs *glyphs, double share, size_t width, tg_text *out);

/* `width` cells dealt out to `count` parts by size, each in its own pattern and colour; what is left of `whole` is blank.
 * A part of more than a half of a cell has at least one. */
void tg_glyphs_parts(const tg_glyphs *glyphs, const double *parts, size_t count, double whole,
                     size_t width, tg_text *out);
/* The pattern's character of part `index`, for its legend. */
void tg_glyphs_part(const tg_glyphs *glyphs, size_t index, tg_text *out);

/* Columns that these bytes of UTF-8 take; escape sequences of colours take none. */
size_t tg_glyphs_width(const char *string, size_t length);
/* As much of the string as fits `columns`; "..." stands for the rest. Outside of UTF-8 other than ASCII become '?'.
 * Controls are left out. Returns the columns taken. */
size_t tg_glyphs_fit(const tg_glyphs *glyphs, const char *string, size_t columns, tg_text *out);

/* "1.2k", "34.5M" (decimal), "-" unknown; at most 6 columns. */
void tg_glyphs_count(double value, tg_text *out);
/* "12.3 MiB"; "-" unknown. */
void tg_glyphs_bytes(double bytes, tg_text *out);
/* "412 ms", "1.23 s", "3:20", "1:02:03", "2d 03h"; "-" unknown. */
void tg_glyphs_seconds(double seconds, tg_text *out);

#endif
