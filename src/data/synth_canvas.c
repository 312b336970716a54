#include "data/synth_canvas.h"

#include <stdlib.h>

static void lay_out_plane(tg_synth_canvas *canvas)
{
    const tg_synth_camera *camera = &canvas->camera;
    float half = 2.0f / (float)canvas->side;
    for (int j = 0; j < canvas->side; j++) {
        float py = ((float)j + 0.5f) * half - 1;
        float depth = camera->zoom / (1 + camera->perspective * py);
        float y0 = py * depth / camera->squash;
        for (int i = 0; i < canvas->side; i++) {
            float x0 = (((float)i + 0.5f) * half - 1) * depth;
            size_t at = (size_t)j * (size_t)canvas->side + (size_t)i;
            canvas->x[at] = camera->cosine * x0 - camera->sine * y0;
            canvas->y[at] = camera->sine * x0 + camera->cosine * y0;
        }
    }
}

tg_status tg_synth_canvas_init(tg_synth_canvas *canvas, int size_px, const tg_synth_camera *camera)
{
    enum { PLANES = 7 };
    int side = size_px * TG_SYNTH_SAMPLES;
    size_t samples = (size_t)side * (size_t)side;
    float *memory = calloc(samples * PLANES, sizeof *memory);
    if (!memory)
        return tg_fail(TG_ERROR_MACHINE,
                       "no memory to draw a picture of %d px: %zu bytes; draw smaller pictures",
                       size_px, samples * PLANES * sizeof *memory);
    *canvas = (tg_synth_canvas){.size_px = size_px,
                                .side = side,
                                .pitch = 2.0f * camera->zoom / (float)side,
                                .camera = *camera,
                                .x = memory,
                                .y = memory + samples,
                                .red = memory + 2 * samples,
                                .green = memory + 3 * samples,
                                .blue = memory + 4 * samples,
                                .height = memory + 5 * samples,
                                .gloss = memory + 6 * samples,
                                .memory = memory};
    lay_out_plane(canvas);
    return TG_OK;
}

void tg_synth_canvas_done(tg_synth_canvas *canvas)
{
    if (!canvas)
        return;
    free(canvas->memory);
    canvas->memory = NULL;
}

tg_synth_frame tg_synth_frame_at(const tg_synth_frame *parent, float u, float v, float angle,
                                 float scale, float lift)
{
    float c = tg_synth_cos(angle), s = tg_synth_sin(angle);
    return (tg_synth_frame){
        .x = parent->x + parent->scale * (parent->cosine * u - parent->sine * v),
        .y = parent->y + parent->scale * (parent->sine * u + parent->cosine * v),
        .cosine = parent->cosine * c - parent->sine * s,
        .sine = parent->sine * c + parent->cosine * s,
        .scale = parent->scale * scale,
        .base = parent->base + lift,
    };
}

/* Radius about the origin that holds the whole outline. */
static float reach(const tg_synth_solid *solid)
{
    float r;
    switch (solid->shape) {
    case TG_SYNTH_BOX:
        r = tg_synth_length(solid->a, solid->b);
        break;
    case TG_SYNTH_TAPER:
        r = solid->a + tg_synth_max(solid->b, solid->c);
        break;
    case TG_SYNTH_ARC:
    case TG_SYNTH_HORN:
        r = solid->a + solid->b;
        break;
    case TG_SYNTH_BLOB:
        r = solid->a * (1 + solid->b);
        break;
    case TG_SYNTH_ELLIPSE:
    case TG_SYNTH_LEAF:
        r = tg_synth_max(solid->a, solid->b);
        break;
    default:
        r = solid->a;
    }
    return r + solid->ragged;
}

static float taper_distance(const tg_synth_solid *solid, float u, float v)
{
    float t = tg_synth_clamp((u + solid->a) / (2 * solid->a), 0, 1);
    float along = u - (t * 2 - 1) * solid->a;
    return tg_synth_length(along, v) - tg_synth_mix(solid->b, solid->c, t);
}

static float arc_distance(const tg_synth_solid *solid, float u, float v)
{
    float c = tg_synth_cos(solid->c), s = tg_synth_sin(solid->c);
    float w = tg_synth_abs(v), thick = solid->b;
    if (solid->shape == TG_SYNTH_HORN) {
        float share = w / (solid->a * s + 1e-6f);
        thick *= 1 - 0.75f * tg_synth_clamp(share * share, 0, 1);
    }
    if (u * s < w * c) /* beyond the end of the arc */
        return tg_synth_length(u - solid->a * c, w - solid->a * s) - thick;
    return tg_synth_abs(tg_synth_length(u, v) - solid->a) - thick;
}

static float wedge_distance(const tg_synth_solid *solid, float u, float v)
{
    float c = tg_synth_cos(solid->c), s = tg_synth_sin(solid->c), w = tg_synth_abs(v);
    float outside = tg_synth_length(u, v) - solid->a;
    float along = tg_synth_clamp(u * c + w * s, 0, solid->a);
    float side = tg_synth_length(u - c * along, w - s * along);
    return tg_synth_max(outside, side * (s * u < c * w ? 1.0f : -1.0f));
}

static float blob_distance(const tg_synth_solid *solid, float u, float v)
{
    float l = tg_synth_length(u, v) + 1e-6f, f = solid->c * 0.32f / l;
    float bump = tg_synth_noise(u * f + 40, v * f + 40, solid->seed ^ 0x51u) * 2 - 1;
    return l - solid->a * (1 + solid->b * bump);
}

static float leaf_distance(const tg_synth_solid *solid, float u, float v)
{
    float a = solid->a, b = solid->b;
    float radius = (a * a + b * b) / (2 * b);
    return tg_synth_length(u, tg_synth_abs(v) + radius - b) - radius;
}

/* Signed distance from the outline, negative inside. */
static float distance(const tg_synth_solid *solid, float u, float v)
{
    float x, y;
    switch (solid->shape) {
    case TG_SYNTH_BOX:
        x = tg_synth_abs(u) - solid->a + solid->c;
        y = tg_synth_abs(v) - solid->b + solid->c;
        return tg_synth_length(tg_synth_max(x, 0), tg_synth_max(y, 0)) +
               tg_synth_min(tg_synth_max(x, y), 0) - solid->c;
    case TG_SYNTH_TAPER:
        return taper_distance(solid, u, v);
    case TG_SYNTH_ARC:
    case TG_SYNTH_HORN:
        return arc_distance(solid, u, v);
    case TG_SYNTH_WEDGE:
        return wedge_distance(solid, u, v);
    case TG_SYNTH_BLOB:
        return blob_distance(solid, u, v);
    case TG_SYNTH_LEAF:
        return leaf_distance(solid, u, v);
    default:
        return (tg_synth_length(u / solid->a, v / solid->b) - 1) * tg_synth_min(solid->a, solid->b);
    }
}

/* One soft dot a cell, off its centre: seeds, sprinkles, pores. */
static float spots(float u, float v, uint32_t seed)
{
    float fu = tg_synth_floor(u), fv = tg_synth_floor(v);
    uint32_t h = tg_synth_hash((uint32_t)(int32_t)fu, (uint32_t)(int32_t)fv, seed);
    float cu = 0.35f + 0.3f * (float)(h & 255) / 255,
          cv = 0.35f + 0.3f * (float)(h >> 8 & 255) / 255;
    return 1 - tg_synth_step(0.16f, 0.3f, tg_synth_length(u - fu - cu, v - fv - cv));
}

/* 1 on the walls of a square grid, 0 in its cells. */
static float grid(float u, float v)
{
    float a = tg_synth_abs(tg_synth_fract(u) - 0.5f), b = tg_synth_abs(tg_synth_fract(v) - 0.5f);
    return tg_synth_step(0.22f, 0.36f, tg_synth_max(a, b));
}

static float checks(float u, float v)
{
    return 0.5f * ((tg_synth_fract(u * 0.5f) < 0.5f) + (tg_synth_fract(v * 0.5f) < 0.5f));
}

/* How much of the second colour is at (u, v), 0..1; d is the distance from the outline. */
static float pattern(const tg_synth_solid *solid, float u, float v, float d)
{
    float k = solid->pattern_scale;
    uint32_t seed = solid->seed;
    switch (solid->pattern) {
    case TG_SYNTH_GRAIN:
        return tg_synth_step(0.42f, 0.62f, tg_synth_noise(u * k, v * k, seed));
    case TG_SYNTH_SPOTS:
        return spots(u * k, v * k, seed);
    case TG_SYNTH_STRIPES:
        return tg_synth_step(0.25f, 0.4f, tg_synth_abs(tg_synth_fract(u * k) - 0.5f));
    case TG_SYNTH_FIBRES:
        return tg_synth_noise(u * k * 0.12f, v * k, seed);
    case TG_SYNTH_GRID:
        return grid(u * k, v * k);
    case TG_SYNTH_CHECKS:
        return checks(u * k, v * k);
    case TG_SYNTH_SEGMENTS: {
        float turn = tg_synth_angle(v, u) * (0.5f / TG_SYNTH_PI) * k;
        float wall = 0.5f - tg_synth_abs(tg_synth_fract(turn) - 0.5f);
        return 1 - tg_synth_step(0.05f, 0.14f, wall * tg_synth_length(u, v) + 0.01f);
    }
    case TG_SYNTH_RINGS:
        return tg_synth_step(0.2f, 0.35f,
                             tg_synth_abs(tg_synth_fract(tg_synth_length(u, v) * k) - 0.5f));
    case TG_SYNTH_RIM:
        return tg_synth_step(-k * 1.2f, -k * 0.9f, d);
    default:
        return tg_synth_noise(u * k, v * k, seed) * 0.65f +
               tg_synth_noise(u * k * 2.3f, v * k * 2.3f, seed + 1) * 0.35f;
    }
}

typedef struct box {
    int x0, x1, y0, y1; /* samples, ends excluded */
} box;

static int to_sample(float picture, int side)
{
    return (int)tg_synth_clamp((picture + 1) * 0.5f * (float)side, -1, (float)side + 1);
}

/* Samples that a circle on the plane may cover: the bounds of an octagon around it. */
static box bounds(const tg_synth_canvas *canvas, float x, float y, float radius)
{
    static const float corner[8][2] = {{1, 0.42f},   {0.42f, 1},   {-0.42f, 1}, {-1, 0.42f},
                                       {-1, -0.42f}, {-0.42f, -1}, {0.42f, -1}, {1, -0.42f}};
    const tg_synth_camera *camera = &canvas->camera;
    float low_x = 9, high_x = -9, low_y = 9, high_y = -9;
    for (int i = 0; i < 8; i++) {
        float px = x + corner[i][0] * radius, py = y + corner[i][1] * radius;
        float x0 = (camera->cosine * px + camera->sine * py) / camera->zoom;
        float y0 = (camera->cosine * py - camera->sine * px) * camera->squash / camera->zoom;
        float rest = tg_synth_max(1 - camera->perspective * y0, 0.05f);
        float row = y0 / rest, column = x0 * tg_synth_max(1 + camera->perspective * row, 0.05f);
        low_x = tg_synth_min(low_x, column);
        high_x = tg_synth_max(high_x, column);
        low_y = tg_synth_min(low_y, row);
        high_y = tg_synth_max(high_y, row);
    }
    box out = {to_sample(low_x, canvas->side) - 1, to_sample(high_x, canvas->side) + 2,
               to_sample(low_y, canvas->side) - 1, to_sample(high_y, canvas->side) + 2};
    out.x0 = out.x0 < 0 ? 0 : out.x0;
    out.y0 = out.y0 < 0 ? 0 : out.y0;
    out.x1 = out.x1 > canvas->side ? canvas->side : out.x1;
    out.y1 = out.y1 > canvas->side ? canvas->side : out.y1;
    return out;
}

static void paint_sample(tg_synth_canvas *canvas, size_t at, const tg_synth_frame *frame,
                         const tg_synth_solid *solid)
{
    float dx = (canvas->x[at] - frame->x) / frame->scale;
    float dy = (canvas->y[at] - frame->y) / frame->scale;
    float u = frame->cosine * dx + frame->sine * dy, v = frame->cosine * dy - frame->sine * dx;
    float d = distance(solid, u, v);
    if (solid->ragged > 0)
        d += solid->ragged * (tg_synth_noise(u * 7, v * 7, solid->seed ^ 0xA7u) * 2 - 1);
    float cover = tg_synth_clamp(0.5f - d * frame->scale / canvas->pitch, 0, 1) * solid->opacity;
    if (cover <= 0)
        return;
    float mask = pattern(solid, u, v, d);
    tg_synth_rgb colour =
        tg_synth_rgb_mix(solid->colour, solid->second, mask * solid->pattern_depth);
    float edge = 1 - tg_synth_clamp(-d / (solid->bevel + 1e-6f), 0, 1);
    float height = solid->height * tg_synth_sqrt(1 - edge * edge) + mask * solid->relief;
    height = frame->base + height * frame->scale;
    canvas->red[at] = tg_synth_mix(canvas->red[at], colour.r, cover);
    canvas->green[at] = tg_synth_mix(canvas->green[at], colour.g, cover);
    canvas->blue[at] = tg_synth_mix(canvas->blue[at], colour.b, cover);
    canvas->height[at] = tg_synth_mix(canvas->height[at], height, cover);
    canvas->gloss[at] = tg_synth_mix(canvas->gloss[at], solid->gloss, cover);
}

void tg_synth_paint(tg_synth_canvas *canvas, const tg_synth_frame *frame,
                    const tg_synth_solid *solid)
{
    box area = bounds(canvas, frame->x, frame->y, reach(solid) * frame->scale);
    for (int j = area.y0; j < area.y1; j++) {
        size_t row = (size_t)j * (size_t)canvas->side;
        for (int i = area.x0; i < area.x1; i++)
            paint_sample(canvas, row + (size_t)i, frame, solid);
    }
}
