/* Savoury dishes. Numbers are lengths in the food's unit circle, angles in radians. */
#include "data/synth_food.h"

static const tg_synth_hue cheese[] = {
    {0.13f, 0.55f, 0.92f}, {0.11f, 0.35f, 0.92f}, {0.05f, 0.70f, 0.75f}, {0.30f, 0.45f, 0.60f}};
static const tg_synth_hue meat[] = {
    {0.02f, 0.70f, 0.55f}, {0.99f, 0.65f, 0.70f}, {0.06f, 0.55f, 0.38f}, {0.04f, 0.50f, 0.75f}};
static const tg_synth_hue sauce[] = {
    {0.01f, 0.80f, 0.65f}, {0.13f, 0.80f, 0.90f}, {0.06f, 0.60f, 0.35f}, {0.30f, 0.55f, 0.45f}};
static const tg_synth_hue noodle[] = {
    {0.13f, 0.45f, 0.92f}, {0.11f, 0.30f, 0.85f}, {0.08f, 0.50f, 0.60f}, {0.28f, 0.40f, 0.60f}};

static void pizza_topping(tg_synth_pen *pen, const tg_synth_frame *slice, float half_angle,
                          tg_synth_rgb colour)
{
    tg_rng *rng = pen->rng;
    float u = tg_synth_range(rng, 0.55f, 1.3f);
    float spread = u * tg_synth_sin(half_angle) * 0.75f;
    tg_synth_frame at =
        tg_synth_frame_at(slice, u, tg_synth_range(rng, -spread, spread), 0, 1, 0.03f);
    float r = tg_synth_range(rng, 0.11f, 0.16f);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, r, r, 0, colour);
    tg_synth_solid_pattern(&s, TG_SYNTH_GRAIN, 14, 0.7f, 0.5f);
    s.height = 0.05f;
    s.gloss = 0.4f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static void pizza_slice(tg_synth_pen *pen, const tg_synth_frame *slice, float half_angle)
{
    tg_rng *rng = pen->rng;
    const float length = 1.6f;
    tg_synth_solid s =
        tg_synth_solid_new(pen, TG_SYNTH_WEDGE, length, 0, half_angle, TG_SYNTH_TONE(pen, cheese));
    tg_synth_solid_pattern(&s, TG_SYNTH_MOTTLE, 6, 0.65f, 0.8f);
    s.second = TG_SYNTH_TONE(pen, sauce);
    s.height = 0.07f;
    s.bevel = 0.05f;
    s.relief = 0.03f;
    s.gloss = 0.3f;
    tg_synth_paint(pen->canvas, slice, &s);
    tg_synth_rgb topping = TG_SYNTH_TONE(pen, meat);
    for (int i = tg_synth_count(rng, 3, 6); i > 0; i--)
        pizza_topping(pen, slice, half_angle, topping);
    tg_synth_solid crust = tg_synth_solid_new(pen, TG_SYNTH_ARC, length, 0.11f, half_angle,
                                              TG_SYNTH_TONE(pen, tg_synth_baked));
    crust.height = 0.16f;
    crust.bevel = 0.11f;
    crust.ragged = 0.02f;
    tg_synth_paint(pen->canvas, slice, &crust);
}

void tg_synth_food_pizza(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    int count = tg_synth_count(rng, 1, 2);
    float half_angle = tg_synth_range(rng, 0.34f, 0.44f);
    float fan = count == 1 ? 0 : tg_synth_range(rng, 2.1f, 2.5f) * half_angle;
    for (int i = 0; i < count; i++) {
        float angle = ((float)i - 0.5f * (float)(count - 1)) * fan;
        tg_synth_frame slice = tg_synth_frame_at(frame, -0.95f, 0, 0, 1.12f, 0);
        slice = tg_synth_frame_at(&slice, 0, 0, angle, 1, 0);
        pizza_slice(pen, &slice, half_angle);
    }
}

void tg_synth_food_hot_dog(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb bread = TG_SYNTH_TONE(pen, tg_synth_baked);
    float half = tg_synth_range(rng, 0.6f, 0.72f);
    for (int side = -1; side <= 1; side += 2) {
        tg_synth_frame at = tg_synth_frame_at(frame, 0, 0.2f * (float)side, 0, 1, 0);
        tg_synth_solid bun = tg_synth_solid_new(pen, TG_SYNTH_TAPER, half, 0.22f, 0.22f, bread);
        bun.height = 0.28f;
        bun.bevel = 0.22f;
        tg_synth_paint(pen->canvas, &at, &bun);
    }
    tg_synth_frame top = tg_synth_frame_at(frame, 0, 0, 0, 1, 0.12f * frame->scale);
    tg_synth_solid sausage = tg_synth_solid_new(pen, TG_SYNTH_TAPER, half + 0.14f, 0.15f, 0.15f,
                                                TG_SYNTH_TONE(pen, meat));
    sausage.height = 0.2f;
    sausage.bevel = 0.15f;
    sausage.gloss = 0.6f;
    tg_synth_paint(pen->canvas, &top, &sausage);
    tg_synth_rgb line = TG_SYNTH_TONE(pen, sauce);
    int waves = tg_synth_count(rng, 6, 10);
    float step = 2 * half / (float)waves;
    top.base += 0.18f * frame->scale;
    for (int i = 0; i < waves; i++) {
        float slant = i % 2 ? 0.9f : -0.9f;
        tg_synth_frame at =
            tg_synth_frame_at(&top, -half + step * ((float)i + 0.5f), 0, slant, 1, 0);
        tg_synth_solid drop =
            tg_synth_solid_new(pen, TG_SYNTH_TAPER, step * 0.75f, 0.04f, 0.04f, line);
        drop.height = drop.bevel = 0.04f;
        drop.gloss = 0.5f;
        tg_synth_paint(pen->canvas, &at, &drop);
    }
}

typedef struct layer {
    float v, half_width, half_height, corner, ragged;
} layer;

static void burger_layer(tg_synth_pen *pen, const tg_synth_frame *frame, layer l,
                         tg_synth_rgb colour)
{
    tg_synth_frame at = tg_synth_frame_at(frame, 0, l.v, 0, 1, 0);
    tg_synth_solid s =
        tg_synth_solid_new(pen, TG_SYNTH_BOX, l.half_width, l.half_height, l.corner, colour);
    s.ragged = l.ragged;
    s.height = 0.3f;
    s.bevel = l.half_height;
    s.pattern_scale = 9;
    tg_synth_paint(pen->canvas, &at, &s);
}

/* Seen from the side, as it is photographed. */
void tg_synth_food_hamburger(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb bread = TG_SYNTH_TONE(pen, tg_synth_baked);
    int patties = tg_synth_count(rng, 1, 2);
    float v = 0.62f;
    burger_layer(pen, frame, (layer){v, 0.74f, 0.16f, 0.12f, 0}, bread);
    for (int i = 0; i < patties; i++) {
        burger_layer(pen, frame, (layer){v - 0.22f, 0.8f, 0.11f, 0.1f, 0.03f},
                     TG_SYNTH_TONE(pen, meat));
        burger_layer(pen, frame, (layer){v - 0.36f, 0.82f, 0.05f, 0.03f, 0.03f},
                     TG_SYNTH_TONE(pen, cheese));
        v -= 0.3f;
    }
    burger_layer(pen, frame, (layer){v - 0.12f, 0.84f, 0.06f, 0.05f, 0.07f},
                 TG_SYNTH_TONE(pen, tg_synth_leafy));
    tg_synth_frame at = tg_synth_frame_at(frame, 0, v - 0.2f, -TG_SYNTH_PI / 2, 1, 0);
    tg_synth_solid top = tg_synth_solid_new(pen, TG_SYNTH_WEDGE, 0.76f, 0, TG_SYNTH_PI / 2, bread);
    tg_synth_solid_pattern(&top, TG_SYNTH_SPOTS, 6, 1.5f, 0.8f);
    top.height = 0.35f;
    top.bevel = 0.4f;
    tg_synth_paint(pen->canvas, &at, &top);
}

static void maki(tg_synth_pen *pen, const tg_synth_frame *piece, tg_synth_rgb wrap,
                 tg_synth_rgb rice)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid outer = tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.92f, 0.06f, 8, wrap);
    outer.height = 0.5f;
    outer.bevel = 0.12f;
    tg_synth_paint(pen->canvas, piece, &outer);
    tg_synth_solid inner = tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.74f, 0.06f, 8, rice);
    tg_synth_solid_pattern(&inner, TG_SYNTH_GRAIN, 8, 0.72f, 0.7f);
    inner.height = 0.54f;
    inner.bevel = 0.06f;
    inner.relief = 0.05f;
    tg_synth_paint(pen->canvas, piece, &inner);
    int count = tg_synth_count(rng, 1, 3);
    for (int i = 0; i < count; i++) {
        float angle = 2 * TG_SYNTH_PI * (float)i / (float)count, r = count == 1 ? 0 : 0.22f;
        tg_synth_frame at =
            tg_synth_frame_at(piece, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r, angle, 1, 0);
        tg_synth_solid filling = tg_synth_solid_new(pen, TG_SYNTH_BOX, 0.24f, 0.17f, 0.06f,
                                                    TG_SYNTH_TONE(pen, tg_synth_fruity));
        filling.height = 0.57f;
        filling.bevel = 0.05f;
        tg_synth_paint(pen->canvas, &at, &filling);
    }
}

void tg_synth_food_sushi(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue rices[] = {
        {0.12f, 0.06f, 0.95f}, {0.1f, 0.2f, 0.85f}, {0.06f, 0.4f, 0.6f}, {0.9f, 0.25f, 0.7f}};
    int count = tg_synth_count(pen->rng, 3, TG_SYNTH_PIECES);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb wrap = TG_SYNTH_TONE(pen, tg_synth_dark), rice = TG_SYNTH_TONE(pen, rices);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        maki(pen, &pieces[i], wrap, rice);
}

static void strand(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb colour, float lift)
{
    tg_rng *rng = pen->rng;
    float radius = tg_synth_range(rng, 0.25f, 0.62f), room = 0.93f - radius;
    float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI);
    tg_synth_frame at =
        tg_synth_frame_at(frame, tg_synth_cos(angle) * room, tg_synth_sin(angle) * room,
                          tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), 1, lift * frame->scale);
    float half_angle = tg_synth_range(rng, 0.9f, 2.2f);
    colour = tg_synth_rgb_scale(colour, tg_synth_range(rng, 0.8f, 1.1f));
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_ARC, radius, 0.042f, half_angle, colour);
    s.height = 0.06f;
    s.bevel = 0.042f;
    s.pattern_depth = 0;
    s.gloss = 0.3f;
    tg_synth_paint(pen->canvas, &at, &s);
}

void tg_synth_food_spaghetti(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, noodle);
    tg_synth_solid heap =
        tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.8f, 0.12f, 9, tg_synth_rgb_scale(colour, 0.7f));
    heap.height = 0.1f;
    tg_synth_paint(pen->canvas, frame, &heap);
    for (int i = 0; i < 34; i++)
        strand(pen, frame, colour, 0.05f + 0.006f * (float)i);
    float u = tg_synth_range(rng, -0.2f, 0.2f), v = tg_synth_range(rng, -0.2f, 0.2f);
    tg_synth_frame top = tg_synth_frame_at(frame, u, v, 0, 1, 0.2f * frame->scale);
    float size = tg_synth_range(rng, 0.3f, 0.45f);
    tg_synth_solid ragu =
        tg_synth_solid_new(pen, TG_SYNTH_BLOB, size, 0.35f, 10, TG_SYNTH_TONE(pen, sauce));
    tg_synth_solid_pattern(&ragu, TG_SYNTH_GRAIN, 9, 0.6f, 0.8f);
    ragu.relief = 0.06f;
    ragu.gloss = 0.3f;
    tg_synth_paint(pen->canvas, &top, &ragu);
}

void tg_synth_food_egg(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue whites[] = {
        {0.12f, 0.05f, 0.97f}, {0.12f, 0.2f, 0.9f}, {0.1f, 0.35f, 0.8f}, {0.6f, 0.08f, 0.85f}};
    static const tg_synth_hue yolks[] = {
        {0.12f, 0.85f, 0.95f}, {0.08f, 0.85f, 0.9f}, {0.14f, 0.55f, 0.95f}, {0.05f, 0.75f, 0.7f}};
    tg_rng *rng = pen->rng;
    int count = tg_synth_count(rng, 1, 2);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_lay_out(pen, frame, count, pieces);
    tg_synth_rgb white = TG_SYNTH_TONE(pen, whites);
    for (int i = 0; i < count; i++) {
        tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.82f, 0.28f, 8, white);
        tg_synth_solid_pattern(&s, TG_SYNTH_RIM, tg_synth_range(rng, 0.02f, 0.12f), 0.7f, 0.8f);
        s.height = 0.07f;
        s.gloss = 0.4f;
        s.ragged = 0.03f;
        tg_synth_paint(pen->canvas, &pieces[i], &s);
        float r = tg_synth_range(rng, 0.27f, 0.36f);
        tg_synth_frame at = tg_synth_frame_near(pen, &pieces[i], 0, 0, 0.15f, 0.15f, 0, 0.03f);
        tg_synth_solid yolk =
            tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, r, r, 0, TG_SYNTH_TONE(pen, yolks));
        yolk.height = 0.25f;
        yolk.bevel = r;
        yolk.gloss = 0.8f;
        yolk.pattern_depth = 0.15f;
        tg_synth_paint(pen->canvas, &at, &yolk);
    }
}

void tg_synth_food_fries(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue fried[] = {
        {0.12f, 0.6f, 0.93f}, {0.1f, 0.65f, 0.8f}, {0.07f, 0.7f, 0.6f}, {0.95f, 0.5f, 0.5f}};
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, fried);
    int count = tg_synth_count(rng, 16, 26);
    for (int i = 0; i < count; i++) {
        float lift = 0.008f * (float)i * frame->scale;
        tg_synth_frame at = tg_synth_frame_near(pen, frame, 0, 0, 0.35f, 0.6f, 0.55f, lift);
        float half = tg_synth_range(rng, 0.35f, 0.6f);
        tg_synth_rgb shade = tg_synth_rgb_scale(colour, tg_synth_range(rng, 0.8f, 1.15f));
        tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BOX, half, 0.07f, 0.02f, shade);
        s.height = 0.12f;
        s.bevel = 0.03f;
        tg_synth_paint(pen->canvas, &at, &s);
    }
}
