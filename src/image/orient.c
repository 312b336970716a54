#include "image/orient.h"

#include <string.h>

enum { TILE_PX = 32 };

static bool mirrors_x(int orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool mirrors_y(int orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

bool tg_orientation_is_transposed(int orientation)
{
    return orientation >= 5;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Copies a tile of the output; step_x and step_y are bytes in the source per output pixel. */
static void copy_tile(const uint8_t *origin, ptrdiff_t step_x, ptrdiff_t step_y, tg_image *out,
                      int left, int top)
{
    int right = min_int(left + TILE_PX, out->width_px);
    int bottom = min_int(top + TILE_PX, out->height_px);
    for (int y = top; y < bottom; y++) {
        uint8_t *to = out->rgb + ((size_t)y * (size_t)out->width_px + (size_t)left) * 3;
        const uint8_t *from = origin + y * step_y + left * step_x;
        for (int x = left; x < right; x++, from += step_x, to += 3)
            memcpy(to, from, 3);
    }
}

tg_status tg_image_orient(const tg_image *source, int orientation, tg_image *out)
{
    int w = source->width_px, h = source->height_px;
    bool transposed = tg_orientation_is_transposed(orientation);
    ptrdiff_t row = (ptrdiff_t)w * 3;
    ptrdiff_t step_x = mirrors_x(orientation) ? -3 : 3;
    ptrdiff_t step_y = mirrors_y(orientation) ? -row : row;
    const uint8_t *origin =
        source->rgb + (step_x < 0 ? row - 3 : 0) + (step_y < 0 ? (h - 1) * row : 0);
    if (orientation == 1)
        return tg_image_copy(source, out);
    TG_TRY(tg_image_reserve(out, transposed ? h : w, transposed ? w : h));
    if (transposed) {
        ptrdiff_t swap = step_x;
        step_x = step_y;
        step_y = swap;
    }
    for (int top = 0; top < out->height_px; top += TILE_PX)
        for (int left = 0; left < out->width_px; left += TILE_PX)
            copy_tile(origin, step_x, step_y, out, left, top);
    return TG_OK;
}

tg_image_rect tg_rect_to_stored(tg_image_rect upright, int orientation, int stored_width_px,
                                int stored_height_px)
{
    tg_image_rect r = upright;
    if (tg_orientation_is_transposed(orientation))
        r = (tg_image_rect){upright.top_px, upright.left_px, upright.height_px, upright.width_px};
    if (mirrors_x(orientation))
        r.left_px = stored_width_px - r.left_px - r.width_px;
    if (mirrors_y(orientation))
        r.top_px = stored_height_px - r.top_px - r.height_px;
    return r;
}

tg_image_box tg_box_to_upright(tg_image_box stored, int orientation, int stored_width_px,
                               int stored_height_px)
{
    tg_image_box b = stored;
    if (mirrors_x(orientation)) {
        b.left_px = stored_width_px - stored.right_px;
        b.right_px = stored_width_px - stored.left_px;
    }
    if (mirrors_y(orientation)) {
        b.top_px = stored_height_px - stored.bottom_px;
        b.bottom_px = stored_height_px - stored.top_px;
    }
    if (tg_orientation_is_transposed(orientation))
        b = (tg_image_box){b.top_px, b.left_px, b.bottom_px, b.right_px};
    return b;
}
