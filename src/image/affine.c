#include "image/affine.h"

#include <math.h>
#include <string.h>

static int clip(int v, int n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static double linear(double a, double b, double d)
{
    return a + (b - a) * d;
}

static double cubic(const double v[4], double d)
{
    double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
    double p4 = -v[0] + v[1] - v[2] + v[3];
    return v[1] + d * (p2 + d * (p3 + d * p4));
}

/* Rows outside the picture repeat the nearest one, columns too. */
static void sample_linear(const tg_image *image, double x, double y, uint8_t out[3])
{
    int x0 = (int)floor(x), y0 = (int)floor(y), w = image->width_px, h = image->height_px;
    size_t row = (size_t)w * 3;
    const uint8_t *upper = image->rgb + (size_t)clip(y0, h) * row;
    const uint8_t *lower = image->rgb + (size_t)clip(y0 + 1, h) * row;
    int left = clip(x0, w) * 3, right = clip(x0 + 1, w) * 3;
    for (int c = 0; c < 3; c++) {
        double a = linear(upper[left + c], upper[right + c], x - x0);
        double b = linear(lower[left + c], lower[right + c], x - x0);
        out[c] = (uint8_t)linear(a, b, y - y0);
    }
}

static void sample_cubic(const tg_image *image, double x, double y, uint8_t out[3])
{
    int x0 = (int)floor(x), y0 = (int)floor(y), w = image->width_px, h = image->height_px;
    const uint8_t *row[4];
    int column[4];
    for (int i = 0; i < 4; i++) {
        row[i] = image->rgb + (size_t)clip(y0 - 1 + i, h) * (size_t)w * 3;
        column[i] = clip(x0 - 1 + i, w) * 3;
    }
    for (int c = 0; c < 3; c++) {
        double down[4];
        for (int i = 0; i < 4; i++) {
            const double across[4] = {row[i][column[0] + c], row[i][column[1] + c],
                                      row[i][column[2] + c], row[i][column[3] + c]};
            down[i] = cubic(across, x - x0);
        }
        double v = cubic(down, y - y0);
        out[c] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v);
    }
}

tg_status tg_image_affine(tg_image *image, const double m[6], tg_interpolation filter,
                          const uint8_t fill[3], tg_image_scratch *scratch)
{
    TG_TRY(tg_image_copy(image, &scratch->picture));
    const tg_image *source = &scratch->picture;
    uint8_t *out = image->rgb;
    for (int y = 0; y < image->height_px; y++)
        for (int x = 0; x < image->width_px; x++, out += 3) {
            double sx = m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2];
            double sy = m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5];
            if (!(sx >= 0 && sx < source->width_px && sy >= 0 && sy < source->height_px))
                memcpy(out, fill, 3);
            else if (filter == TG_BICUBIC)
                sample_cubic(source, sx - 0.5, sy - 0.5, out);
            else
                sample_linear(source, sx - 0.5, sy - 0.5, out);
        }
    return TG_OK;
}

/* Pillow rounds the matrix to 15 decimals, which makes quarter turns exact. */
static double fifteen_decimals(double v)
{
    return nearbyint(v * 1e15) / 1e15;
}

tg_status tg_image_rotate(tg_image *image, double degrees, tg_interpolation filter,
                          const uint8_t fill[3], tg_image_scratch *scratch)
{
    double angle = fmod(degrees, 360.0);
    if (angle == 0)
        return TG_OK;
    double radians = -(angle < 0 ? angle + 360 : angle) * (M_PI / 180);
    double c = fifteen_decimals(cos(radians)), s = fifteen_decimals(sin(radians));
    double cx = image->width_px / 2.0, cy = image->height_px / 2.0;
    const double matrix[6] = {c, s, c * -cx + s * -cy + cx, -s, c, -s * -cx + c * -cy + cy};
    return tg_image_affine(image, matrix, filter, fill, scratch);
}

tg_status tg_image_shear_x(tg_image *image, double factor, tg_interpolation filter,
                           const uint8_t fill[3], tg_image_scratch *scratch)
{
    const double matrix[6] = {1, factor, 0, 0, 1, 0};
    return tg_image_affine(image, matrix, filter, fill, scratch);
}

tg_status tg_image_shear_y(tg_image *image, double factor, tg_interpolation filter,
                           const uint8_t fill[3], tg_image_scratch *scratch)
{
    const double matrix[6] = {1, 0, 0, factor, 1, 0};
    return tg_image_affine(image, matrix, filter, fill, scratch);
}

tg_status tg_image_translate(tg_image *image, double x_px, double y_px, tg_interpolation filter,
                             const uint8_t fill[3], tg_image_scratch *scratch)
{
    const double matrix[6] = {1, 0, x_px, 0, 1, y_px};
    return tg_image_affine(image, matrix, filter, fill, scratch);
}
