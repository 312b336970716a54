#include "image/resize_kernel.h"

static uint8_t round_and_clip(int32_t sum)
{
    int32_t v = sum >> TG_RESIZE_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void tg_resize_horizontal_plain(const tg_resize_table *table, const uint8_t *source,
                                size_t source_stride, int rows, uint8_t *out, size_t out_stride)
{
    for (int y = 0; y < rows; y++, source += source_stride, out += out_stride) {
        for (int x = 0; x < table->count; x++) {
            const uint8_t *p = source + (size_t)table->start[x] * 3;
            const int32_t *w = table->weight + (size_t)x * (size_t)table->taps;
            int32_t r = 1 << (TG_RESIZE_BITS - 1), g = r, b = r;
            for (int k = 0; k < table->used[x]; k++, p += 3) {
                r += w[k] * p[0];
                g += w[k] * p[1];
                b += w[k] * p[2];
            }
            out[x * 3] = round_and_clip(r);
            out[x * 3 + 1] = round_and_clip(g);
            out[x * 3 + 2] = round_and_clip(b);
        }
    }
}

void tg_resize_vertical_plain(const tg_resize_table *table, int i, const uint8_t *source,
                              size_t source_stride, size_t samples, uint8_t *out)
{
    const uint8_t *first = source + (size_t)table->start[i] * source_stride;
    const int32_t *w = table->weight + (size_t)i * (size_t)table->taps;
    for (size_t x = 0; x < samples; x++) {
        const uint8_t *p = first + x;
        int32_t sum = 1 << (TG_RESIZE_BITS - 1);
        for (int k = 0; k < table->used[i]; k++, p += source_stride)
            sum += w[k] * *p;
        out[x] = round_and_clip(sum);
    }
}
