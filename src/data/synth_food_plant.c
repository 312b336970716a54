/* Fruit and vegetables. Numbers are lengths in the food's unit circle, angles in radians. */
#include "data/synth_food.h"

/* Each food's own colours; every range is met again in another food. */
static const tg_synth_hue berry[] = {
    {0.98f, 0.80f, 0.80f}, {0.00f, 0.80f, 0.70f}, {0.96f, 0.55f, 0.88f}, {0.20f, 0.40f, 0.80f}};
static const tg_synth_hue vine[] = {
    {0.83f, 0.50f, 0.45f}, {0.22f, 0.55f, 0.75f}, {0.97f, 0.65f, 0.50f}, {0.16f, 0.50f, 0.85f}};
static const tg_synth_hue melon[] = {
    {0.98f, 0.70f, 0.85f}, {0.00f, 0.75f, 0.75f}, {0.14f, 0.65f, 0.92f}, {0.05f, 0.65f, 0.92f}};
static const tg_synth_hue sour[] = {{0.08f, 0.85f, 0.95f},
                                    {0.10f, 0.75f, 0.92f},
                                    {0.15f, 0.65f, 0.92f},
                                    {0.25f, 0.55f, 0.75f},
                                    {0.99f, 0.65f, 0.75f}};
static const tg_synth_hue orchard[] = {
    {0.99f, 0.75f, 0.70f}, {0.24f, 0.60f, 0.72f}, {0.14f, 0.60f, 0.88f}, {0.04f, 0.70f, 0.80f}};
static const tg_synth_hue root[] = {
    {0.07f, 0.85f, 0.92f}, {0.06f, 0.80f, 0.85f}, {0.13f, 0.60f, 0.90f}, {0.88f, 0.50f, 0.45f}};

static void leaf(tg_synth_pen *pen, const tg_synth_frame *frame, float u, float v, float angle,
                 float length, float width, tg_synth_rgb colour)
{
    tg_synth_frame at =
        tg_synth_frame_at(frame, u + tg_synth_cos(angle) * length, v + tg_synth_sin(angle) * length,
                          angle, 1, 0.1f * frame->scale);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_LEAF, length, width, 0, colour);
    s.height = 0.06f;
    s.bevel = width;
    s.ragged = width * 0.15f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static void stalk(tg_synth_pen *pen, const tg_synth_frame *frame, float u, float v, float angle,
                  float length, tg_synth_rgb colour)
{
    tg_synth_frame at =
        tg_synth_frame_at(frame, u + tg_synth_cos(angle) * length, v + tg_synth_sin(angle) * length,
                          angle, 1, 0.15f * frame->scale);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, length, 0.035f, 0.05f, colour);
    s.height = s.bevel = 0.05f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static void one_banana(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb colour,
                       tg_synth_rgb tip)
{
    tg_rng *rng = pen->rng;
    float half = tg_synth_range(rng, 0.75f, 0.95f);
    tg_synth_solid s =
        tg_synth_solid_new(pen, TG_SYNTH_HORN, 1, tg_synth_range(rng, 0.19f, 0.24f), half, colour);
    tg_synth_solid_pattern(&s, TG_SYNTH_RINGS, 4.5f, 0.8f, 0.7f);
    s.height = 0.25f;
    s.bevel = 0.2f;
    s.gloss = 0.2f;
    tg_synth_paint(pen->canvas, frame, &s);
    for (int end = -1; end <= 1; end += 2) {
        float angle = half * (float)end;
        tg_synth_frame at = tg_synth_frame_at(frame, tg_synth_cos(angle), tg_synth_sin(angle),
                                              angle + TG_SYNTH_PI / 2, 1, 0.05f * frame->scale);
        tg_synth_solid knob =
            tg_synth_solid_new(pen, TG_SYNTH_BOX, end < 0 ? 0.11f : 0.05f, 0.05f, 0.03f, tip);
        tg_synth_paint(pen->canvas, &at, &knob);
    }
}

void tg_synth_food_banana(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue skins[] = {
        {0.15f, 0.75f, 0.92f}, {0.2f, 0.65f, 0.75f}, {0.11f, 0.6f, 0.7f}, {0.02f, 0.55f, 0.5f}};
    tg_rng *rng = pen->rng;
    int count = tg_synth_count(rng, 1, 3);
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, skins), tip = TG_SYNTH_TONE(pen, tg_synth_dark);
    for (int i = 0; i < count; i++) {
        float off = -0.78f + 0.26f * ((float)i - 0.5f * (float)(count - 1));
        tg_synth_frame at =
            tg_synth_frame_near(pen, frame, off, 0, 0, 0.05f, 0.12f, 0.03f * (float)i);
        one_banana(pen, &at, colour, tip);
    }
}

static void one_strawberry(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb colour,
                           tg_synth_rgb green)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.42f, 0.2f, 0.56f, colour);
    tg_synth_solid_pattern(&s, TG_SYNTH_SPOTS, tg_synth_range(rng, 4, 5), 1.7f, 0.9f);
    s.second.g += 0.25f;
    s.height = 0.5f;
    s.bevel = 0.5f;
    s.relief = -0.04f;
    s.gloss = 0.5f;
    tg_synth_paint(pen->canvas, frame, &s);
    int leaves = tg_synth_count(rng, 5, 7);
    for (int i = 0; i < leaves; i++) {
        float angle =
            2 * TG_SYNTH_PI * ((float)i + tg_synth_range(rng, -0.2f, 0.2f)) / (float)leaves;
        leaf(pen, frame, 0.72f, 0, angle, 0.2f, 0.09f, green);
    }
    stalk(pen, frame, 0.72f, 0, tg_synth_range(rng, -0.4f, 0.4f), 0.16f, green);
}

void tg_synth_food_strawberry(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    int count = tg_synth_count(pen->rng, 1, 4);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, berry), green = TG_SYNTH_TONE(pen, tg_synth_leafy);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        one_strawberry(pen, &pieces[i], colour, green);
}

void tg_synth_food_grape(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, vine);
    int rows = tg_synth_count(rng, 4, 6);
    float r = 0.82f / (float)rows;
    tg_synth_rgb green = TG_SYNTH_TONE(pen, tg_synth_leafy);
    stalk(pen, frame, 0.7f, 0, tg_synth_range(rng, -0.3f, 0.3f), 0.17f, green);
    for (int row = 0; row < rows; row++) {
        int count = row == 0 ? 1 : row < rows - 1 ? row + 1 : row;
        for (int i = 0; i < count; i++) {
            float u = -0.8f + r * (1 + 1.75f * (float)row) + tg_synth_range(rng, -0.05f, 0.05f);
            float v = ((float)i - 0.5f * (float)(count - 1)) * r * 1.8f +
                      tg_synth_range(rng, -0.05f, 0.05f);
            tg_synth_frame at =
                tg_synth_frame_at(frame, u, v, 0, 1, tg_synth_range(rng, 0, 0.1f) * frame->scale);
            float size = r * tg_synth_range(rng, 0.95f, 1.2f);
            tg_synth_solid s =
                tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, size, size, 0,
                                   tg_synth_rgb_scale(colour, tg_synth_range(rng, 0.8f, 1.15f)));
            s.height = size * 1.1f;
            s.bevel = size;
            s.gloss = 0.8f;
            s.pattern_depth = 0.3f;
            tg_synth_paint(pen->canvas, &at, &s);
        }
    }
}

static void seed(tg_synth_pen *pen, const tg_synth_frame *slice, float half_angle,
                 tg_synth_rgb colour)
{
    tg_rng *rng = pen->rng;
    float r = tg_synth_range(rng, 0.4f, 0.85f),
          angle = tg_synth_range(rng, -0.85f, 0.85f) * half_angle;
    tg_synth_frame at = tg_synth_frame_at(slice, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r,
                                          angle, 1, 0.13f * slice->scale);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.04f, 0.02f, 0.042f, colour);
    s.height = s.bevel = 0.03f;
    s.gloss = 0.6f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static void melon_slice(tg_synth_pen *pen, const tg_synth_frame *slice, float half_angle,
                        const tg_synth_rgb colours[4])
{
    static const float radius[3] = {1.22f, 1.13f, 1.04f};
    for (int ring = 0; ring < 3; ring++) {
        tg_synth_solid s =
            tg_synth_solid_new(pen, TG_SYNTH_WEDGE, radius[ring], 0, half_angle, colours[ring]);
        tg_synth_solid_pattern(&s, ring ? TG_SYNTH_GRAIN : TG_SYNTH_SEGMENTS, ring ? 9 : 40, 0.85f,
                               0.6f);
        s.height = 0.12f + 0.005f * (float)ring;
        s.bevel = 0.03f;
        s.gloss = ring == 2 ? 0.4f : 0.2f;
        tg_synth_paint(pen->canvas, slice, &s);
    }
    for (int i = tg_synth_count(pen->rng, 6, 14); i > 0; i--)
        seed(pen, slice, half_angle, colours[3]);
}

void tg_synth_food_watermelon(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue pale[] = {{0.2f, 0.15f, 0.92f}, {0.15f, 0.25f, 0.85f}};
    tg_rng *rng = pen->rng;
    tg_synth_rgb colours[4] = {TG_SYNTH_TONE(pen, tg_synth_leafy), TG_SYNTH_TONE(pen, pale),
                               TG_SYNTH_TONE(pen, melon), TG_SYNTH_TONE(pen, tg_synth_dark)};
    int count = tg_synth_count(rng, 1, 2);
    float half_angle = tg_synth_range(rng, 0.85f, TG_SYNTH_PI / 2);
    for (int i = 0; i < count; i++) {
        float off = count == 1 ? -0.55f : i ? -0.2f : -0.75f;
        tg_synth_frame slice =
            tg_synth_frame_near(pen, frame, off, 0, 0, 0.15f, 0.2f, 0.05f * (float)i);
        slice.scale *= count == 1 ? 0.95f : 0.8f;
        melon_slice(pen, &slice, half_angle, colours);
    }
}

static void citrus(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb peel,
                   tg_synth_rgb pith, tg_synth_rgb flesh)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 0.95f, 0.95f, 0, peel);
    tg_synth_solid_pattern(&s, TG_SYNTH_RIM, 0.07f, 1, 0);
    s.second = pith;
    s.height = 0.14f;
    s.bevel = 0.05f;
    tg_synth_paint(pen->canvas, frame, &s);
    s.a = s.b = 0.88f;
    s.colour = pith;
    tg_synth_paint(pen->canvas, frame, &s);
    tg_synth_solid wheel = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 0.8f, 0.8f, 0, flesh);
    tg_synth_solid_pattern(&wheel, TG_SYNTH_SEGMENTS, (float)tg_synth_count(rng, 8, 11), 1, 1);
    wheel.second = pith;
    wheel.height = 0.15f;
    wheel.bevel = 0.03f;
    wheel.relief = 0.02f;
    wheel.gloss = 0.5f;
    tg_synth_paint(pen->canvas, frame, &wheel);
}

void tg_synth_food_orange(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    static const tg_synth_hue piths[] = {{0.13f, 0.15f, 0.95f}, {0.1f, 0.35f, 0.9f}};
    int count = tg_synth_count(pen->rng, 1, 4);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb flesh = TG_SYNTH_TONE(pen, sour), pith = TG_SYNTH_TONE(pen, piths);
    tg_synth_rgb peel = tg_synth_rgb_scale(flesh, tg_synth_range(pen->rng, 0.75f, 1.05f));
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        citrus(pen, &pieces[i], peel, pith, flesh);
}

static void one_apple(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb colour,
                      tg_synth_rgb green, tg_synth_rgb wood)
{
    tg_rng *rng = pen->rng;
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.14f,
                                          tg_synth_range(rng, 0.58f, 0.66f), 0.72f, colour);
    tg_synth_solid_pattern(&s, TG_SYNTH_FIBRES, 9, 0.65f, 0.8f);
    s.height = 0.5f;
    s.bevel = 0.7f;
    s.gloss = 0.7f;
    tg_synth_paint(pen->canvas, frame, &s);
    tg_synth_frame dimple_at = tg_synth_frame_at(frame, 0.6f, 0, 0, 1, 0.35f * frame->scale);
    tg_synth_solid dimple = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 0.12f, 0.26f, 0,
                                               tg_synth_rgb_scale(colour, 0.6f));
    dimple.height = -0.15f;
    tg_synth_paint(pen->canvas, &dimple_at, &dimple);
    stalk(pen, frame, 0.58f, 0, tg_synth_range(rng, -0.4f, 0.4f), 0.2f, wood);
    if (tg_synth_chance(rng, 0.7f))
        leaf(pen, frame, 0.72f, 0, tg_synth_chance(rng, 0.5f) ? 1.1f : -1.1f, 0.24f, 0.1f, green);
}

void tg_synth_food_apple(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    int count = tg_synth_chance(pen->rng, 0.7f) ? 1 : 2;
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, orchard), green = TG_SYNTH_TONE(pen, tg_synth_leafy);
    tg_synth_rgb wood = TG_SYNTH_TONE(pen, tg_synth_dark);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        one_apple(pen, &pieces[i], colour, green, wood);
}

static void one_carrot(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb colour,
                       tg_synth_rgb green)
{
    tg_rng *rng = pen->rng;
    int leaves = tg_synth_count(rng, 4, 6);
    for (int i = 0; i < leaves; i++) {
        float angle =
            ((float)i - 0.5f * (float)(leaves - 1)) * 0.28f + tg_synth_range(rng, -0.1f, 0.1f);
        leaf(pen, frame, 0.5f, 0, angle, tg_synth_range(rng, 0.2f, 0.28f), 0.06f, green);
    }
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, 0.68f, 0.05f,
                                          tg_synth_range(rng, 0.17f, 0.23f), colour);
    tg_synth_frame at = tg_synth_frame_at(frame, -0.22f, 0, 0, 1, 0);
    tg_synth_solid_pattern(&s, TG_SYNTH_STRIPES, tg_synth_range(rng, 5, 7), 0.78f, 0.6f);
    s.height = 0.25f;
    s.bevel = 0.2f;
    s.ragged = 0.012f;
    tg_synth_paint(pen->canvas, &at, &s);
}

void tg_synth_food_carrot(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    tg_rng *rng = pen->rng;
    int count = tg_synth_count(rng, 1, 3);
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, root), green = TG_SYNTH_TONE(pen, tg_synth_leafy);
    for (int i = 0; i < count; i++) {
        float v = 0.42f * ((float)i - 0.5f * (float)(count - 1));
        tg_synth_frame at = tg_synth_frame_near(pen, frame, 0, v, 0.1f, 0, 0.25f, 0);
        at.scale *= 0.97f;
        one_carrot(pen, &at, colour, green);
    }
}

static void one_mushroom(tg_synth_pen *pen, const tg_synth_frame *frame, tg_synth_rgb cap_colour,
                         tg_synth_rgb stem_colour)
{
    tg_rng *rng = pen->rng;
    tg_synth_frame stem_at = tg_synth_frame_at(frame, -0.4f, 0, 0, 1, 0);
    tg_synth_solid stem = tg_synth_solid_new(pen, TG_SYNTH_BOX, 0.45f,
                                             tg_synth_range(rng, 0.17f, 0.25f), 0.1f, stem_colour);
    tg_synth_solid_pattern(&stem, TG_SYNTH_FIBRES, 14, 0.75f, 0.7f);
    stem.height = 0.22f;
    tg_synth_paint(pen->canvas, &stem_at, &stem);
    tg_synth_frame cap_at = tg_synth_frame_at(frame, -0.02f, 0, 0, 1, 0.04f * frame->scale);
    tg_synth_solid cap =
        tg_synth_solid_new(pen, TG_SYNTH_WEDGE, 0.85f, 0, TG_SYNTH_PI / 2, cap_colour);
    cap.height = 0.25f;
    cap.bevel = 0.4f;
    cap.gloss = 0.3f;
    tg_synth_paint(pen->canvas, &cap_at, &cap);
    tg_synth_solid gills = tg_synth_solid_new(pen, TG_SYNTH_BOX, 0.07f, 0.78f, 0.05f,
                                              tg_synth_rgb_scale(stem_colour, 0.6f));
    tg_synth_frame gills_at = tg_synth_frame_at(frame, 0.02f, 0, 0, 1, 0.08f * frame->scale);
    gills.height = 0.1f;
    tg_synth_paint(pen->canvas, &gills_at, &gills);
}

void tg_synth_food_mushroom(tg_synth_pen *pen, const tg_synth_frame *frame)
{
    int count = tg_synth_count(pen->rng, 1, 4);
    tg_synth_frame pieces[TG_SYNTH_PIECES];
    tg_synth_rgb cap = TG_SYNTH_TONE(pen, tg_synth_creamy),
                 stem = TG_SYNTH_TONE(pen, tg_synth_creamy);
    tg_synth_lay_out(pen, frame, count, pieces);
    for (int i = 0; i < count; i++)
        one_mushroom(pen, &pieces[i], cap, stem);
}
