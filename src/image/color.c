#include "image/color.h"

#include <math.h>
#include <string.h>

static size_t sample_count(const tg_image *image)
{
    return (size_t)image->width_px * 3 * (size_t)image->height_px;
}

static void apply_table(tg_image *image, const uint8_t table[256])
{
    size_t n = sample_count(image);
    for (size_t i = 0; i < n; i++)
        image->rgb[i] = table[image->rgb[i]];
}

/* from + factor (to - from) in float, truncated and clipped. */
static uint8_t blend(int from, int to, float factor)
{
    float v = (float)from + factor * (float)(to - from);
    return (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v);
}

static void blend_with_level(tg_image *image, int level, double factor)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = blend(level, i, (float)factor);
    apply_table(image, table);
}

static unsigned luminance(const uint8_t *p)
{
    return (p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16;
}

void tg_color_brightness(tg_image *image, double factor)
{
    blend_with_level(image, 0, factor);
}

void tg_color_contrast(tg_image *image, double factor)
{
    size_t n = sample_count(image);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i += 3)
        sum += luminance(image->rgb + i);
    blend_with_level(image, (int)((double)sum / (double)(n / 3) + 0.5), factor);
}

void tg_color_saturation(tg_image *image, double factor)
{
    size_t n = sample_count(image);
    for (size_t i = 0; i < n; i += 3) {
        uint8_t *p = image->rgb + i;
        int gray = (int)luminance(p);
        for (int c = 0; c < 3; c++)
            p[c] = blend(gray, p[c], (float)factor);
    }
}

/* Mean of 3x3 with weight 5 in the middle, 13 in all, rounded to nearest. */
static unsigned smooth(const uint8_t *p, size_t row)
{
    const uint8_t *above = p - row, *below = p + row;
    unsigned sum = above[-3] + above[0] + above[3] + p[-3] + 5u * p[0] + p[3] + below[-3] +
                   below[0] + below[3];
    return (2 * sum + 13) / 26;
}

tg_status tg_color_sharpness(tg_image *image, double factor, tg_image_scratch *scratch)
{
    size_t row = (size_t)image->width_px * 3;
    TG_TRY(tg_image_copy(image, &scratch->picture));
    for (int y = 1; y < image->height_px - 1; y++) {
        size_t first = (size_t)y * row;
        for (size_t i = first + 3; i < first + row - 3; i++) {
            const uint8_t *p = scratch->picture.rgb + i;
            image->rgb[i] = blend((int)smooth(p, row), *p, (float)factor);
        }
    }
    return TG_OK;
}

typedef struct hsv {
    uint8_t h, s, v;
} hsv;

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

static int max3(int a, int b, int c)
{
    int m = a > b ? a : b;
    return m > c ? m : c;
}

static hsv to_hsv(const uint8_t *p)
{
    int r = p[0], g = p[1], b = p[2], high = max3(r, g, b), low = min3(r, g, b);
    if (high == low)
        return (hsv){0, 0, (uint8_t)high};
    float range = (float)(high - low), s = range / (float)high, h;
    float rc = (float)(high - r) / range, gc = (float)(high - g) / range;
    float bc = (float)(high - b) / range;
    if (r == high)
        h = bc - gc;
    else if (g == high)
        h = (float)(2.0 + rc - bc);
    else
        h = (float)(4.0 + gc - rc);
    h = (float)fmod(h / 6.0 + 1.0, 1.0);
    return (hsv){(uint8_t)(int)(h * 255.0), (uint8_t)(int)(s * 255.0), (uint8_t)high};
}

static void from_hsv(hsv c, uint8_t *p)
{
    float place = (float)(c.h * 6.0 / 255.0);
    int sector = (int)place;
    float f = (float)(c.h * 6.0 / 255.0 - sector), s = (float)(c.s / 255.0);
    uint8_t low = (uint8_t)lround(c.v * (1.0 - s));
    uint8_t falling = (uint8_t)lround(c.v * (1.0 - s * f));
    uint8_t rising = (uint8_t)lround(c.v * (1.0 - s * (1.0 - f)));
    const uint8_t rgb[6][3] = {{c.v, rising, low},  {falling, c.v, low}, {low, c.v, rising},
                               {low, falling, c.v}, {rising, low, c.v},  {c.v, low, falling}};
    memcpy(p, rgb[sector % 6], 3);
}

void tg_color_hue(tg_image *image, double factor)
{
    size_t n = sample_count(image);
    uint8_t shift = (uint8_t)(int)(factor * 255);
    for (size_t i = 0; i < n; i += 3) {
        hsv c = to_hsv(image->rgb + i);
        c.h = (uint8_t)(c.h + shift);
        from_hsv(c, image->rgb + i);
    }
}

void tg_color_grayscale(tg_image *image)
{
    size_t n = sample_count(image);
    for (size_t i = 0; i < n; i += 3)
        memset(image->rgb + i, (int)luminance(image->rgb + i), 3);
}

void tg_color_posterize(tg_image *image, int bits)
{
    uint8_t table[256];
    int mask = bits >= 8 ? 255 : bits <= 0 ? 0 : 255 & ~((1 << (8 - bits)) - 1);
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i & mask);
    apply_table(image, table);
}

void tg_color_solarize(tg_image *image, int threshold)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i < threshold ? i : 255 - i);
    apply_table(image, table);
}

void tg_color_solarize_add(tg_image *image, int add, int threshold)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++) {
        int v = i < threshold ? i + add : i;
        table[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    apply_table(image, table);
}

void tg_color_invert(tg_image *image)
{
    tg_color_solarize(image, 0);
}

static void count_levels(const tg_image *image, int channel, uint32_t histogram[256])
{
    size_t n = sample_count(image);
    memset(histogram, 0, 256 * sizeof *histogram);
    for (size_t i = (size_t)channel; i < n; i += 3)
        histogram[image->rgb[i]]++;
}

static void apply_to_channel(tg_image *image, int channel, const uint8_t table[256])
{
    size_t n = sample_count(image);
    for (size_t i = (size_t)channel; i < n; i += 3)
        image->rgb[i] = table[image->rgb[i]];
}

static void equalize_channel(tg_image *image, int channel)
{
    uint32_t histogram[256];
    uint8_t table[256];
    uint64_t total = 0;
    int last = 0;
    count_levels(image, channel, histogram);
    for (int i = 0; i < 256; i++) {
        total += histogram[i];
        last = histogram[i] ? i : last;
    }
    uint64_t step = (total - histogram[last]) / 255, n = step / 2;
    if (step == 0)
        return;
    for (int i = 0; i < 256; n += histogram[i++])
        table[i] = (uint8_t)(n / step > 255 ? 255 : n / step);
    apply_to_channel(image, channel, table);
}

static void stretch_channel(tg_image *image, int channel)
{
    uint32_t histogram[256];
    uint8_t table[256];
    int low = 0, high = 255;
    count_levels(image, channel, histogram);
    while (low < 255 && !histogram[low])
        low++;
    while (high > 0 && !histogram[high])
        high--;
    if (high <= low)
        return;
    double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; i++) {
        int v = (int)(i * scale + offset);
        table[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
    apply_to_channel(image, channel, table);
}

void tg_color_equalize(tg_image *image)
{
    for (int c = 0; c < 3; c++)
        equalize_channel(image, c);
}

void tg_color_autocontrast(tg_image *image)
{
    for (int c = 0; c < 3; c++)
        stretch_channel(image, c);
}
