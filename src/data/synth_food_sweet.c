/* Bakery and sweets. Numbers are lengths in the food's unit circle, angles in radians. */
#include "data/synth_food.h"

static const tg_synth_hue icing[] = {
    {0.94f, 0.45f, 0.90f}, {0.12f, 0.10f, 0.96f}, {0.06f, 0.60f, 0.35f}, {0.45f, 0.35f, 0.85f}};
static const tg_synth_hue crust[] = {
    {0.06f, 0.70f, 0.50f}, {0.08f, 0.60f, 0.70f}, {0.05f, 0.60f, 0.35f}, {0.10f, 0.55f, 0.80f}};

static void sprinkle(tg_synth_pen *pen, const tg_synth_frame *frame, float u, float v, float lift)
{
    tg_rng *rng = pen->rng;
    tg_synth_frame at = tg_synth_frame_at(frame, u, v, tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), 1,
                                          lift * frame->scale);
    float hue = tg_synth_range(rng, 0, 1), saturation = tg_synth_range(rng, 0, 0.9f);
    tg_synth_rgb colour = tg_synth_hsv(hue, saturation, 0.9f);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.05f, 0.028f, 0.028f, colour);
    s.height = s.bevel = 0.03f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static void ring(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb dough,
                 tg_synth_rgb glaze)
{
    tg_rng *rng = pen->rng;
    float radius = tg_synth_range(rng, 0.62f, 0.68f), thick = tg_synth_range(rng, 0.25f, 0.31f);
    tg_synth_solid body = tg_synth_solid_new(pen, TG_SYNTH_ARC, radius, thick, TG_SYNTH_PI, dough);
    body.height = 0.35f;
    body.bevel = thick;
    tg_synth_paint(pen->canvas, frame, &body);
    if (tg_synth_chance(rng, 0.2f))
        return;
    tg_synth_solid top =
        tg_synth_solid_new(pen, TG_SYNTH_ARC, radius, thick * 0.78f, TG_SYNTH_PI, glaze);
    top.height = 0.39f;
    top.bevel = thick;
    top.ragged = 0.035f;
    top.gloss = 0.6f;
    top.pattern_depth = 0.15f;
    tg_synth_paint(pen->canvas, frame, &top);
    int count = tg_synth_chance(rng, 0.6f) ? tg_synth_count(rng, 8, 20) : 0;
    for (int i = 0; i < count; i++) {
        float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI);
        float r = radius + tg_synth_range(rng, -0.6f, 0.6f) * thick;
        sprinkle(pen, frame, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r, 0.36f);
    }
}

void tg_synth_food_doughnut(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    int count = tg_synth_chance(pen->rng, 0.8f) ? 1 : 2;
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb dough = TG_SYNTH_TONE(pen, tg_synth_baked);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        ring(pen, &pieces[i], dough, TG_SYNTH_TONE(pen, icing));
}

static void waffle_topping(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_frame at =
        tg_synth_frame_near(pen, frame, 0, 0, 0.35f, 0.35f, TG_SYNTH_PI, 0.15f * frame->scale);
    tg_synth_shape shape = tg_synth_chance(rng, 0.5f) ? TG_SYNTH_BOX : TG_SYNTH_BLOB;
    float r = tg_synth_range(rng, 0.12f, 0.2f);
    tg_synth_solid s = tg_synth_solid_new(pen, shape, r, shape == TG_SYNTH_BOX ? r : 0.3f,
                                          shape == TG_SYNTH_BOX ? 0.05f : 8.0f,
                                          TG_SYNTH_TONE(pen, tg_synth_creamy));
    s.gloss = 0.5f;
    tg_synth_paint(pen->canvas, &at, &s);
}

void tg_synth_food_waffle(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    int count = tg_synth_chance(rng, 0.75f) ? 1 : 2;
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_lay_out(pen, frame, count, pieces);
    tg_synth_rgb dough = TG_SYNTH_TONE(pen, tg_synth_baked);
    tg_synth_shape shape = tg_synth_chance(rng, 0.5f) ? TG_SYNTH_BOX : TG_SYNTH_ELLIPSE;
    float side = shape == TG_SYNTH_BOX ? tg_synth_range(rng, 0.68f, 0.76f) : 0.92f;
    float cells = tg_synth_range(rng, 2.4f, 3.4f);
    for (int i = 0; i < count; i++) {
        tg_synth_solid s =
            tg_synth_solid_new(pen, shape, side, side, 0.15f, tg_synth_rgb_scale(dough, 0.62f));
        tg_synth_solid_pattern(&s, TG_SYNTH_GRID, cells, 1.6f, 1);
        s.height = 0.12f;
        s.bevel = 0.06f;
        s.relief = 0.09f;
        tg_synth_paint(pen->canvas, &pieces[i], &s);
        if (tg_synth_chance(rng, 0.5f))
            waffle_topping(pen, &pieces[i]);
    }
}

static void biscuit(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb dough,
                    tg_synth_rgb chip)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid body = tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.85f, 0.08f, 9, dough);
    tg_synth_solid_pattern(&body, TG_SYNTH_MOTTLE, 5, 0.72f, 0.7f);
    body.height = 0.22f;
    body.bevel = 0.35f;
    body.relief = 0.06f;
    tg_synth_paint(pen->canvas, frame, &body);
    int count = tg_synth_count(rng, 7, 12);
    for (int i = 0; i < count; i++) {
        float angle = 2 * TG_SYNTH_PI * (float)i * 0.381966f;
        float r = 0.68f * tg_synth_sqrt(((float)i + 0.5f) / (float)count);
        tg_synth_frame at =
            tg_synth_frame_at(frame, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r, angle, 1,
                              0.18f * frame->scale);
        tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BLOB, tg_synth_range(rng, 0.09f, 0.15f),
                                              0.3f, 8, chip);
        s.height = 0.1f;
        s.bevel = 0.1f;
        s.gloss = 0.5f;
        tg_synth_paint(pen->canvas, &at, &s);
    }
}

void tg_synth_food_cookie(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    int count = tg_synth_count(pen->rng, 1, 4);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb dough = TG_SYNTH_TONE(pen, tg_synth_baked),
                 chip = TG_SYNTH_TONE(pen, tg_synth_dark);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        biscuit(pen, &pieces[i], dough, chip);
}

static void rope(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_shape shape, float a,
                 float b, float c, tg_synth_rgb colour)
{
    tg_synth_solid s = tg_synth_solid_new(pen, shape, a, b, c, colour);
    s.height = 0.24f;
    s.bevel = 0.15f;
    s.gloss = 0.45f;
    s.pattern_depth = 0.3f;
    tg_synth_paint(pen->canvas, frame, &s);
}

static void salt(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), r = tg_synth_range(rng, 0.66f, 0.82f);
    tg_synth_frame at = tg_synth_frame_at(frame, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r,
                                          angle, 1, 0.2f * frame->scale);
    tg_synth_rgb colour = tg_synth_hsv(0.1f, 0.1f, tg_synth_range(rng, 0.75f, 1));
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BOX, 0.03f, 0.03f, 0.01f, colour);
    s.height = 0.05f;
    tg_synth_paint(pen->canvas, &at, &s);
}

/* A ring open at the top whose ends cross in the middle and meet the ring below. */
void tg_synth_food_pretzel(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, crust);
    float thick = tg_synth_range(rng, 0.1f, 0.13f), open = tg_synth_range(rng, 2.05f, 2.35f);
    const float radius = 0.78f;
    tg_synth_frame down = tg_synth_frame_at(frame, 0, 0, TG_SYNTH_PI / 2, 1, 0);
    rope(pen, &down, TG_SYNTH_ARC, radius, thick, open, colour);
    float top_x = radius * tg_synth_sin(open), top_y = radius * tg_synth_cos(open);
    for (int side = -1; side <= 1; side += 2) {
        float x0 = top_x * (float)side, x1 = -0.4f * (float)side, y1 = 0.62f;
        float length = tg_synth_length(x1 - x0, y1 - top_y);
        tg_synth_frame at = tg_synth_frame_at(frame, (x0 + x1) / 2, (top_y + y1) / 2,
                                              tg_synth_angle(y1 - top_y, x1 - x0), 1,
                                              side > 0 ? 0.08f * frame->scale : 0);
        rope(pen, &at, TG_SYNTH_TAPER, length / 2, thick, thick * 0.85f, colour);
    }
    int grains = tg_synth_chance(rng, 0.75f) ? tg_synth_count(rng, 10, 24) : 0;
    for (int i = 0; i < grains; i++)
        salt(pen, frame);
}

static void scoop(tg_synth_pen *pen, const tg_synth_frame *at, tg_synth_rgb colour)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BLOB, 0.42f, 0.08f, 10, colour);
    tg_synth_solid_pattern(&s, TG_SYNTH_MOTTLE, 7, 0.82f, 0.6f);
    s.height = 0.38f;
    s.bevel = 0.42f;
    s.ragged = 0.03f;
    s.relief = 0.04f;
    s.gloss = 0.3f;
    tg_synth_paint(pen->canvas, at, &s);
    if (!tg_synth_chance(rng, 0.3f))
        return;
    for (int i = tg_synth_count(rng, 4, 9); i > 0; i--) {
        float u = tg_synth_range(rng, -0.25f, 0.25f), v = tg_synth_range(rng, -0.25f, 0.25f);
        sprinkle(pen, at, u, v, 0.36f);
    }
}

void tg_synth_food_ice_cream(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_frame cone = tg_synth_frame_at(frame, -0.42f, 0, 0, 1, 0);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.5f, 0.04f, 0.33f,
                                          TG_SYNTH_TONE(pen, tg_synth_baked));
    tg_synth_solid_pattern(&s, TG_SYNTH_GRID, 5.5f, 0.65f, 1);
    s.height = 0.3f;
    s.bevel = 0.3f;
    s.relief = 0.03f;
    tg_synth_paint(pen->canvas, &cone, &s);
    int count = tg_synth_count(rng, 1, 3);
    for (int i = count - 1; i >= 0; i--) {
        float v = count == 1 ? 0 : (i == 1 ? -0.22f : i == 2 ? 0.24f : 0);
        float u = i == 0 ? 0.24f : 0.52f;
        if (count == 2)
            v = i == 0 ? -0.12f : 0.14f;
        tg_synth_frame at = tg_synth_frame_at(frame, u, v, 0, 1, 0.05f * frame->scale);
        scoop(pen, &at, TG_SYNTH_TONE(pen, tg_synth_creamy));
    }
}
