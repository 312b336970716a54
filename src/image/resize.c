#include "image/resize.h"

#include "base/checked.h"
#include "image/resize_kernel.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { HORIZONTAL, VERTICAL };

/* Everything about one call, with the defaults of the spec filled in. */
typedef struct work {
    const uint8_t *pixels; /* of the crop's left top corner */
    size_t stride;
    tg_image_rect crop, part;
    tg_image_box box;
    const tg_resize_spec *spec;
    tg_image_scratch *scratch;
    bool horizontal, vertical; /* which passes are needed */
    bool is_view;
    tg_resize_horizontal run_horizontal;
    tg_resize_vertical run_vertical;
} work;

static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

int tg_resize_has_level(tg_resize_level level)
{
#if defined(__x86_64__)
    if (level == TG_RESIZE_AVX2)
        return __builtin_cpu_supports("avx2") != 0;
#endif
    return level == TG_RESIZE_AUTO || level == TG_RESIZE_PLAIN;
}

static void choose_kernels(work *w)
{
    w->run_horizontal = tg_resize_horizontal_plain;
    w->run_vertical = tg_resize_vertical_plain;
#if defined(__x86_64__)
    if (w->spec->level != TG_RESIZE_PLAIN && tg_resize_has_level(TG_RESIZE_AVX2)) {
        w->run_horizontal = tg_resize_horizontal_avx2;
        w->run_vertical = tg_resize_vertical_avx2;
    }
#endif
}

static bool rect_fits(tg_image_rect r, int width_px, int height_px)
{
    return r.left_px >= 0 && r.top_px >= 0 && r.width_px > 0 && r.height_px > 0 &&
           r.width_px <= width_px - r.left_px && r.height_px <= height_px - r.top_px;
}

static bool box_fits(tg_image_box b, tg_image_rect crop)
{
    return b.left_px >= 0 && b.top_px >= 0 && b.left_px < b.right_px && b.top_px < b.bottom_px &&
           b.right_px <= crop.width_px && b.bottom_px <= crop.height_px;
}

static tg_status set_up(work *w, const tg_image *source)
{
    const tg_resize_spec *s = w->spec;
    w->crop =
        s->crop.width_px ? s->crop : (tg_image_rect){0, 0, source->width_px, source->height_px};
    w->part = s->part.width_px ? s->part : (tg_image_rect){0, 0, s->width_px, s->height_px};
    w->box =
        s->box.right_px > 0 ? s->box : (tg_image_box){0, 0, w->crop.width_px, w->crop.height_px};
    if (s->width_px < 1 || s->height_px < 1 || !rect_fits(w->part, s->width_px, s->height_px) ||
        !rect_fits(w->crop, source->width_px, source->height_px) || !box_fits(w->box, w->crop))
        return tg_fail(TG_ERROR_USAGE,
                       "cannot resize %d x %d pixels to %d x %d: target, crop, box "
                       "or part is empty or outside",
                       source->width_px, source->height_px, s->width_px, s->height_px);
    if (!tg_resize_has_level(s->level))
        return tg_fail(TG_ERROR_USAGE, "this machine lacks the instructions of the asked resize");
    w->stride = (size_t)source->width_px * 3;
    w->pixels = source->rgb + (size_t)w->crop.top_px * w->stride + (size_t)w->crop.left_px * 3;
    w->is_view = source->capacity_bytes == 0;
    w->horizontal =
        s->width_px != w->crop.width_px || w->box.left_px > 0 || w->box.right_px < w->crop.width_px;
    w->vertical = s->height_px != w->crop.height_px || w->box.top_px > 0 ||
                  w->box.bottom_px < w->crop.height_px;
    choose_kernels(w);
    return TG_OK;
}

static tg_image_table_key table_key(const work *w, int axis)
{
    bool h = axis == HORIZONTAL;
    return (tg_image_table_key){.from = (float)(h ? w->box.left_px : w->box.top_px),
                                .to = (float)(h ? w->box.right_px : w->box.bottom_px),
                                .source_px = h ? w->crop.width_px : w->crop.height_px,
                                .target_px = h ? w->spec->width_px : w->spec->height_px,
                                .first_px = h ? w->part.left_px : w->part.top_px,
                                .count = h ? w->part.width_px : w->part.height_px,
                                .filter = w->spec->filter};
}

static bool same_key(const tg_image_table_key *a, const tg_image_table_key *b)
{
    return a->taps > 0 && a->from == b->from && a->to == b->to && a->source_px == b->source_px &&
           a->target_px == b->target_px && a->first_px == b->first_px && a->count == b->count &&
           a->filter == b->filter;
}

/* Source pixels a target pixel; the difference is taken in single precision, as Pillow does. */
static double key_scale(const tg_image_table_key *key)
{
    return (double)(key->to - key->from) / key->target_px;
}

/* Weights of one target pixel, normalised and in fixed point; zeros up to `taps`. */
static int fill_weights(const tg_image_table_key *key, int pixel, int32_t *out_start,
                        int32_t *out_weight)
{
    double (*filter)(double) = key->filter == TG_BICUBIC ? cubic : triangle;
    double scale = key_scale(key), stretch = scale < 1 ? 1 : scale;
    double support = (key->filter == TG_BICUBIC ? 2.0 : 1.0) * stretch, inverse = 1.0 / stretch;
    double center = key->from + (pixel + 0.5) * scale, sum = 0;
    int first = (int)(center - support + 0.5), end = (int)(center + support + 0.5);
    if (first < 0)
        first = 0;
    if (end > key->source_px)
        end = key->source_px;
    for (int i = first; i < end; i++)
        sum += filter((i - center + 0.5) * inverse);
    double normal = sum != 0 ? sum : 1;
    for (int i = first; i < end; i++) {
        double v = filter((i - center + 0.5) * inverse) / normal * (1 << TG_RESIZE_BITS);
        out_weight[i - first] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
    memset(out_weight + (end - first), 0, sizeof(int32_t) * (size_t)(key->taps - (end - first)));
    *out_start = first;
    return end - first;
}

/* Lays the table's arrays out in one block of `bytes`. */
static tg_resize_table lay_out(const tg_image_table_key *key, void *block)
{
    size_t cells = (size_t)key->count * (size_t)key->taps;
    int32_t *start = block, *used = start + key->count, *weight = used + key->count;
    int16_t *high = (int16_t *)(weight + cells);
    return (tg_resize_table){.count = key->count,
                             .taps = key->taps,
                             .start = start,
                             .used = used,
                             .weight = weight,
                             .high = high,
                             .low = high + cells};
}

static void fill_table(const tg_image_table_key *key, void *block)
{
    tg_resize_table t = lay_out(key, block);
    size_t cells = (size_t)key->count * (size_t)key->taps;
    int32_t *start = block, *used = start + key->count, *weight = used + key->count;
    int16_t *high = (int16_t *)(weight + cells), *low = high + cells;
    for (int i = 0; i < key->count; i++)
        used[i] =
            fill_weights(key, key->first_px + i, start + i, weight + (size_t)i * (size_t)t.taps);
    for (size_t i = 0; i < cells; i++) {
        high[i] = (int16_t)(weight[i] >> TG_RESIZE_LOW_BITS);
        low[i] = (int16_t)(weight[i] & ((1 << TG_RESIZE_LOW_BITS) - 1));
    }
}

static tg_status make_table(work *w, int axis, tg_resize_table *out)
{
    tg_image_block_use use =
        axis == HORIZONTAL ? TG_IMAGE_BLOCK_HORIZONTAL : TG_IMAGE_BLOCK_VERTICAL;
    tg_image_table_key *cached = &w->scratch->table[axis], key = table_key(w, axis);
    if (same_key(cached, &key)) {
        *out = lay_out(cached, w->scratch->block[use].data);
        return TG_OK;
    }
    double scale = key_scale(&key);
    double support = (key.filter == TG_BICUBIC ? 2.0 : 1.0) * (scale < 1 ? 1 : scale);
    size_t bytes;
    key.taps = ((int)ceil(support) * 2 + 1 + 3) & ~3;
    if (!tg_mul_size((size_t)key.count * 8, (size_t)key.taps + 1, &bytes))
        return tg_fail(TG_ERROR_MACHINE, "the filter table of a resize does not fit in memory");
    cached->taps = 0;
    void *block = tg_image_block_reserve(w->scratch, use, bytes);
    if (!block)
        return TG_ERROR_MACHINE;
    fill_table(&key, block);
    *cached = key;
    *out = lay_out(&key, block);
    return TG_OK;
}

/* The vector pass reads a little past the last row's end; a view gives no room for that. */
static void run_horizontal(const work *w, const tg_resize_table *table, int first_row, int rows,
                           uint8_t *out, size_t out_stride)
{
    const uint8_t *from = w->pixels + (size_t)first_row * w->stride;
    int safe = w->is_view ? rows - 1 : rows;
    if (safe > 0)
        w->run_horizontal(table, from, w->stride, safe, out, out_stride);
    if (safe < rows)
        tg_resize_horizontal_plain(table, from + (size_t)safe * w->stride, w->stride, 1,
                                   out + (size_t)safe * out_stride, out_stride);
}

/* Rows or columns of the source that a table reaches. */
static void table_span(const tg_resize_table *table, int *out_first, int *out_count)
{
    int last = table->count - 1;
    *out_first = table->start[0];
    *out_count = table->start[last] + table->used[last] - table->start[0];
}

static uint8_t *reserve_pass(work *w, size_t row_bytes, int rows)
{
    size_t bytes;
    if (!tg_mul_size(row_bytes, (size_t)rows, &bytes)) {
        (void)tg_fail(TG_ERROR_MACHINE, "the rows of a resize do not fit in memory");
        return NULL;
    }
    return tg_image_block_reserve(w->scratch, TG_IMAGE_BLOCK_PASS, bytes);
}

/* All target rows from source row 0 at `origin`. */
static void run_vertical(const work *w, const tg_resize_table *table, const uint8_t *origin,
                         size_t stride, size_t samples, uint8_t *out)
{
    for (int y = 0; y < table->count; y++)
        w->run_vertical(table, y, origin, stride, samples, out + (size_t)y * samples);
}

static tg_status horizontal_then_vertical(work *w, const tg_resize_table *across,
                                          const tg_resize_table *down, tg_image *out)
{
    int first, rows;
    size_t samples = (size_t)w->part.width_px * 3;
    table_span(down, &first, &rows);
    uint8_t *pass = reserve_pass(w, samples, rows);
    if (!pass)
        return TG_ERROR_MACHINE;
    run_horizontal(w, across, first, rows, pass, samples);
    run_vertical(w, down, pass - (size_t)first * samples, samples, samples, out->rgb);
    return TG_OK;
}

static tg_status vertical_then_horizontal(work *w, const tg_resize_table *across,
                                          const tg_resize_table *down, tg_image *out)
{
    int first, columns;
    table_span(across, &first, &columns);
    size_t samples = (size_t)columns * 3, skipped = (size_t)first * 3;
    uint8_t *pass = reserve_pass(w, samples, w->part.height_px);
    if (!pass)
        return TG_ERROR_MACHINE;
    run_vertical(w, down, w->pixels + skipped, w->stride, samples, pass);
    w->run_horizontal(across, pass - skipped, samples, w->part.height_px, out->rgb,
                      (size_t)w->part.width_px * 3);
    return TG_OK;
}

static void copy_part(const work *w, tg_image *out)
{
    size_t bytes = (size_t)w->part.width_px * 3;
    const uint8_t *from =
        w->pixels + (size_t)w->part.top_px * w->stride + (size_t)w->part.left_px * 3;
    for (int y = 0; y < w->part.height_px; y++, from += w->stride)
        memcpy(out->rgb + (size_t)y * bytes, from, bytes);
}

/* Pillow 13's choice; earlier versions always go horizontally first. */
static bool is_vertical_first(const work *w)
{
    int64_t narrower = (int64_t)w->crop.width_px - w->spec->width_px;
    int64_t lower = (int64_t)w->crop.height_px - w->spec->height_px;
    return !w->spec->horizontal_first && lower > 0 && lower > 2 * narrower;
}

static tg_status run(work *w, tg_image *out)
{
    tg_resize_table across = {0}, down = {0};
    size_t samples = (size_t)w->part.width_px * 3;
    if (w->horizontal)
        TG_TRY(make_table(w, HORIZONTAL, &across));
    if (w->vertical)
        TG_TRY(make_table(w, VERTICAL, &down));
    TG_TRY(tg_image_reserve(out, w->part.width_px, w->part.height_px));
    if (w->horizontal && w->vertical)
        return is_vertical_first(w) ? vertical_then_horizontal(w, &across, &down, out)
                                    : horizontal_then_vertical(w, &across, &down, out);
    if (w->horizontal)
        run_horizontal(w, &across, w->part.top_px, w->part.height_px, out->rgb, samples);
    else if (w->vertical)
        run_vertical(w, &down, w->pixels + (size_t)w->part.left_px * 3, w->stride, samples,
                     out->rgb);
    else
        copy_part(w, out);
    return TG_OK;
}

tg_status tg_image_resize(const tg_image *source, const tg_resize_spec *spec,
                          tg_image_scratch *scratch, tg_image *out)
{
    work w = {.spec = spec, .scratch = scratch};
    TG_TRY(set_up(&w, source));
    return run(&w, out);
}
