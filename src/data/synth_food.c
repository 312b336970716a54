#include "data/synth_food.h"

#include "data/synth.h"

const tg_synth_hue tg_synth_baked[5] = {{0.09f, 0.55f, 0.80f},
                                        {0.07f, 0.65f, 0.60f},
                                        {0.11f, 0.50f, 0.90f},
                                        {0.05f, 0.60f, 0.42f},
                                        {0.10f, 0.35f, 0.85f}};
const tg_synth_hue tg_synth_fruity[6] = {{0.00f, 0.80f, 0.75f}, {0.07f, 0.85f, 0.92f},
                                         {0.14f, 0.75f, 0.92f}, {0.25f, 0.65f, 0.70f},
                                         {0.83f, 0.50f, 0.50f}, {0.96f, 0.60f, 0.85f}};
const tg_synth_hue tg_synth_leafy[4] = {
    {0.28f, 0.65f, 0.55f}, {0.33f, 0.60f, 0.40f}, {0.23f, 0.60f, 0.70f}, {0.92f, 0.45f, 0.40f}};
const tg_synth_hue tg_synth_creamy[5] = {{0.12f, 0.12f, 0.96f},
                                         {0.95f, 0.30f, 0.92f},
                                         {0.07f, 0.55f, 0.45f},
                                         {0.35f, 0.25f, 0.85f},
                                         {0.13f, 0.45f, 0.92f}};
const tg_synth_hue tg_synth_dark[4] = {
    {0.05f, 0.60f, 0.22f}, {0.97f, 0.60f, 0.35f}, {0.30f, 0.40f, 0.20f}, {0.70f, 0.30f, 0.22f}};

static const struct {
    const char *name;
    tg_synth_food draw;
} foods[TG_SYNTH_CLASSES] = {
    {"pizza", tg_synth_food_pizza},
    {"doughnut", tg_synth_food_doughnut},
    {"banana", tg_synth_food_banana},
    {"egg", tg_synth_food_egg},
    {"waffle", tg_synth_food_waffle},
    {"sushi", tg_synth_food_sushi},
    {"carrot", tg_synth_food_carrot},
    {"strawberry", tg_synth_food_strawberry},
    {"grape", tg_synth_food_grape},
    {"watermelon", tg_synth_food_watermelon},
    {"spaghetti_bolognese", tg_synth_food_spaghetti},
    {"pretzel", tg_synth_food_pretzel},
    {"hot_dog", tg_synth_food_hot_dog},
    {"orange", tg_synth_food_orange},
    {"cookie", tg_synth_food_cookie},
    {"ice_cream", tg_synth_food_ice_cream},
    {"mushroom", tg_synth_food_mushroom},
    {"french_fries", tg_synth_food_fries},
    {"apple", tg_synth_food_apple},
    {"hamburger", tg_synth_food_hamburger},
};

const char *tg_synth_class_name(int index)
{
    return index >= 0 && index < TG_SYNTH_CLASSES ? foods[index].name : NULL;
}

void tg_synth_food_draw(tg_synth_pen *pen, int index, const tg_synth_frame *frame)
{
    foods[index].draw(pen, frame);
}

tg_synth_rgb tg_synth_tone(tg_synth_pen *pen, const tg_synth_hue *palette, int count)
{
    tg_rng *rng = pen->rng;
    int usual = tg_synth_chance(rng, 0.25f);
    tg_synth_hue c = palette[usual ? 0 : tg_rng_below(rng, (uint32_t)count)];
    if (tg_synth_chance(rng, pen->tint.odd)) {
        c.h = tg_synth_range(rng, 0, 1);
        c.s = tg_synth_range(rng, 0.1f, 0.9f);
        c.v = tg_synth_range(rng, 0.3f, 0.95f);
    }
    c.h += pen->tint.hue + tg_synth_range(rng, -0.02f, 0.02f);
    c.s = (c.s + tg_synth_range(rng, -0.1f, 0.1f)) * pen->tint.saturation;
    c.v = (c.v + tg_synth_range(rng, -0.1f, 0.1f)) * pen->tint.value;
    return tg_synth_hsv(c.h, c.s, tg_synth_max(c.v, 0.06f));
}

tg_synth_solid tg_synth_solid_new(tg_synth_pen *pen, tg_synth_shape shape, float a, float b,
                                  float c, tg_synth_rgb colour)
{
    return (tg_synth_solid){
        .shape = shape,
        .a = a,
        .b = b,
        .c = c,
        .height = 0.15f,
        .bevel = 0.2f,
        .colour = colour,
        .second = tg_synth_rgb_scale(colour, 0.75f),
        .pattern = TG_SYNTH_MOTTLE,
        .pattern_scale = 5,
        .pattern_depth = 0.5f,
        .gloss = 0.1f,
        .opacity = 1,
        .seed = tg_synth_hash(pen->noise++, 0, 0),
    };
}

void tg_synth_solid_pattern(tg_synth_solid *solid, tg_synth_pattern kind, float scale, float shade,
                            float depth)
{
    solid->pattern = kind;
    solid->pattern_scale = scale;
    solid->pattern_depth = depth;
    solid->second = tg_synth_rgb_scale(solid->colour, shade);
}

tg_synth_frame tg_synth_frame_near(tg_synth_pen *pen, const tg_synth_frame *parent, float u,
                                   float v, float du, float dv, float turn, float lift)
{
    u += tg_synth_range(pen->rng, -du, du);
    v += tg_synth_range(pen->rng, -dv, dv);
    float angle = tg_synth_range(pen->rng, -turn, turn);
    return tg_synth_frame_at(parent, u, v, angle, 1, lift);
}

void tg_synth_lay_out(tg_synth_pen *pen, const tg_synth_frame *frame, int count,
                      tg_synth_frame *out_frames)
{
    static const float size[TG_SYNTH_PIECES] = {1, 0.66f, 0.56f, 0.5f, 0.44f};
    tg_rng *rng = pen->rng;
    int middle = count >= 5, ring = count - middle;
    float start = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), piece = size[count - 1];
    float away = count == 1 ? 0 : 1 - piece;
    for (int i = 0; i < count; i++) {
        float angle = start + 2 * TG_SYNTH_PI * (float)i / (float)ring, r = away;
        if (i == ring)
            r = 0;
        float u = tg_synth_cos(angle) * r + tg_synth_range(rng, -0.06f, 0.06f);
        float v = tg_synth_sin(angle) * r + tg_synth_range(rng, -0.06f, 0.06f);
        float turn = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI),
              scale = piece * tg_synth_range(rng, 0.9f, 1.05f);
        out_frames[i] = tg_synth_frame_at(frame, u, v, turn, scale, 0);
    }
}
