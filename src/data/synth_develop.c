/* From colour, height and gloss to pixels: light, shadow, lens, sensor. */
#include "data/synth_canvas.h"

/* Share of the sun that heights on the way to the light take away, 0..1. */
static float cast_shadow(const tg_synth_canvas *canvas, int i, int j, const tg_synth_light *light)
{
    enum { STEPS = 10 };
    float flat = tg_synth_length(light->x, light->y) + 1e-4f;
    float rise = light->z / flat,
          own = canvas->height[(size_t)j * (size_t)canvas->side + (size_t)i];
    float stride = (float)canvas->side / 128.0f, worst = 0;
    float travel = 0;
    for (int k = 1; k <= STEPS; k++) {
        travel += stride * (0.6f + 0.22f * (float)k);
        int x = i + (int)(light->x / flat * travel), y = j + (int)(light->y / flat * travel);
        if (x < 0 || y < 0 || x >= canvas->side || y >= canvas->side)
            break;
        float way = travel * canvas->pitch;
        float over =
            canvas->height[(size_t)y * (size_t)canvas->side + (size_t)x] - own - way * rise;
        worst = tg_synth_max(worst, over / (0.012f + 0.25f * way));
    }
    return tg_synth_clamp(worst, 0, 1);
}

static float power_16(float x)
{
    float q = x * x;
    q *= q;
    q *= q;
    return q * q;
}

typedef struct lit {
    float diffuse, specular;
} lit;

static lit light_sample(const tg_synth_canvas *canvas, int i, int j, const tg_synth_light *light)
{
    int side = canvas->side;
    const float *h = canvas->height;
    size_t row = (size_t)j * (size_t)side, x = (size_t)i;
    size_t up = j > 0 ? row - (size_t)side : row, down = j < side - 1 ? row + (size_t)side : row;
    float dx = h[row + (i < side - 1 ? x + 1 : x)] - h[row + (i > 0 ? x - 1 : x)];
    float dy = h[down + x] - h[up + x];
    float nx = tg_synth_clamp(-dx / (2 * canvas->pitch), -1.5f, 1.5f);
    float ny = tg_synth_clamp(-dy / (2 * canvas->pitch), -1.5f, 1.5f);
    float norm = tg_synth_sqrt(nx * nx + ny * ny + 1);
    float facing = (nx * light->x + ny * light->y + light->z) / norm;
    float sun = tg_synth_max(facing, 0) / light->z;
    sun *= 1 - light->shadow * cast_shadow(canvas, i, j, light);
    /* Half-way vector between the light and a viewer straight above. */
    float hz = light->z + 1,
          half = tg_synth_sqrt(light->x * light->x + light->y * light->y + hz * hz);
    float shine = (nx * light->x + ny * light->y + hz) / (half * norm);
    return (lit){light->ambient + (1 - light->ambient) * sun,
                 power_16(tg_synth_max(shine, 0)) * canvas->gloss[row + x]};
}

/* Lights every sample into the picture's mean colour of its pixels: planes of size_px^2, written to
 * the front of the canvas' colour planes (a pixel never lies behind the samples still to be read).
 */
static void light_picture(tg_synth_canvas *canvas, const tg_synth_light *light)
{
    const float share = 1.0f / (TG_SYNTH_SAMPLES * TG_SYNTH_SAMPLES);
    for (int j = 0; j < canvas->size_px; j++) {
        for (int i = 0; i < canvas->size_px; i++) {
            tg_synth_rgb sum = {0, 0, 0};
            for (int k = 0; k < TG_SYNTH_SAMPLES * TG_SYNTH_SAMPLES; k++) {
                int sx = i * TG_SYNTH_SAMPLES + k % TG_SYNTH_SAMPLES;
                int sy = j * TG_SYNTH_SAMPLES + k / TG_SYNTH_SAMPLES;
                size_t at = (size_t)sy * (size_t)canvas->side + (size_t)sx;
                lit l = light_sample(canvas, sx, sy, light);
                float shine = l.specular * 0.6f;
                sum.r += tg_synth_min(canvas->red[at] * l.diffuse + shine, 1.2f);
                sum.g += tg_synth_min(canvas->green[at] * l.diffuse + shine, 1.2f);
                sum.b += tg_synth_min(canvas->blue[at] * l.diffuse + shine, 1.2f);
            }
            size_t pixel = (size_t)j * (size_t)canvas->size_px + (size_t)i;
            canvas->red[pixel] = sum.r * share;
            canvas->green[pixel] = sum.g * share;
            canvas->blue[pixel] = sum.b * share;
        }
    }
}

/* One pass of a 1-2-1 filter along rows (step 1) or columns (step size), mixed in by `amount`. */
static void blur_lines(float *plane, int size, size_t step, size_t line, float amount)
{
    for (int l = 0; l < size; l++) {
        float *p = plane + (size_t)l * line;
        float before = p[0];
        for (int k = 0; k < size; k++) {
            float here = p[(size_t)k * step];
            float after = p[(size_t)(k < size - 1 ? k + 1 : k) * step];
            p[(size_t)k * step] =
                tg_synth_mix(here, 0.25f * (before + after) + 0.5f * here, amount);
            before = here;
        }
    }
}

static void blur_picture(tg_synth_canvas *canvas, float strength)
{
    float *planes[3] = {canvas->red, canvas->green, canvas->blue};
    for (float left = strength; left > 0; left -= 1) {
        for (int c = 0; c < 3; c++) {
            float amount = tg_synth_min(left, 1);
            blur_lines(planes[c], canvas->size_px, 1, (size_t)canvas->size_px, amount);
            blur_lines(planes[c], canvas->size_px, (size_t)canvas->size_px, 1, amount);
        }
    }
}

static uint8_t to_byte(float x)
{
    return (uint8_t)(tg_synth_clamp(x, 0, 1) * 255 + 0.5f);
}

static void expose_pixel(const tg_synth_canvas *canvas, const tg_synth_light *light, int i, int j,
                         uint8_t *out)
{
    size_t at = (size_t)j * (size_t)canvas->size_px + (size_t)i;
    float x = (float)(2 * i + 1) / (float)canvas->size_px - 1;
    float y = (float)(2 * j + 1) / (float)canvas->size_px - 1;
    float gain =
        (1 + light->slope_x * x + light->slope_y * y) * (1 - light->vignette * (x * x + y * y));
    float c[3] = {canvas->red[at] * light->colour.r * gain,
                  canvas->green[at] * light->colour.g * gain,
                  canvas->blue[at] * light->colour.b * gain};
    float grey = (c[0] + c[1] + c[2]) / 3;
    uint32_t h = tg_synth_hash((uint32_t)i, (uint32_t)j, light->seed);
    for (int k = 0; k < 3; k++) {
        float grain = (float)(h >> (8 * k) & 255) / 127.5f - 1;
        float value = tg_synth_mix(grey, c[k], light->saturation);
        out[k] = to_byte((value - 0.45f) * light->contrast + 0.45f + grain * light->noise);
    }
}

void tg_synth_develop(tg_synth_canvas *canvas, const tg_synth_light *light, uint8_t *out_rgb)
{
    light_picture(canvas, light);
    blur_picture(canvas, light->blur);
    for (int j = 0; j < canvas->size_px; j++)
        for (int i = 0; i < canvas->size_px; i++)
            expose_pixel(canvas, light, i, j,
                         out_rgb + 3 * ((size_t)j * (size_t)canvas->size_px + (size_t)i));
}
