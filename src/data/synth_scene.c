#include "data/synth_scene.h"

tg_synth_camera tg_synth_camera_pick(tg_rng *rng)
{
    float turn = tg_synth_range(rng, -0.25f, 0.25f);
    tg_synth_camera camera = {.cosine = tg_synth_cos(turn), .sine = tg_synth_sin(turn)};
    camera.squash = tg_synth_range(rng, 0.74f, 1);
    camera.perspective = tg_synth_range(rng, 0, 0.22f);
    camera.zoom = tg_synth_range(rng, 0.85f, 1.12f);
    return camera;
}

tg_synth_light tg_synth_light_pick(tg_rng *rng)
{
    float from = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), z = tg_synth_range(rng, 0.5f, 0.9f);
    float flat = tg_synth_sqrt(1 - z * z), exposure = tg_synth_range(rng, 0.85f, 1.3f);
    float warmth = tg_synth_range(rng, -0.13f, 0.13f), green = tg_synth_range(rng, -0.04f, 0.04f);
    tg_synth_light light = {
        .x = tg_synth_cos(from) * flat,
        .y = tg_synth_sin(from) * flat,
        .z = z,
        .colour = {exposure * (1 + warmth), exposure * (1 + green), exposure * (1 - warmth)},
        .noise = 0.012f,
    };
    light.ambient = tg_synth_range(rng, 0.35f, 0.65f);
    light.shadow = tg_synth_range(rng, 0.5f, 0.9f);
    light.slope_x = tg_synth_range(rng, -0.18f, 0.18f);
    light.slope_y = tg_synth_range(rng, -0.18f, 0.18f);
    light.vignette = tg_synth_range(rng, 0, 0.18f);
    light.contrast = tg_synth_range(rng, 0.85f, 1.15f);
    light.saturation = tg_synth_range(rng, 0.8f, 1.15f);
    light.seed = tg_rng_u32(rng);
    if (tg_synth_chance(rng, 0.5f))
        light.blur = tg_synth_range(rng, 0, 0.8f);
    if (tg_synth_chance(rng, 0.3f))
        light.noise = tg_synth_range(rng, 0.02f, 0.06f);
    return light;
}

tg_synth_tint tg_synth_tint_pick(tg_rng *rng)
{
    tg_synth_tint tint = {.odd = 0.04f};
    tint.hue = tg_synth_range(rng, -0.025f, 0.025f);
    tint.saturation = tg_synth_range(rng, 0.7f, 1.1f);
    tint.value = tg_synth_range(rng, 0.75f, 1.08f);
    return tint;
}

static tg_synth_rgb any_colour(tg_rng *rng)
{
    float hue = tg_synth_range(rng, 0, 1), s = tg_synth_range(rng, 0, 1);
    float value = tg_synth_range(rng, 0.15f, 0.98f);
    return tg_synth_hsv(hue, s * s * 0.8f, value);
}

static const tg_synth_hue woods[] = {
    {0.08f, 0.5f, 0.6f}, {0.07f, 0.6f, 0.38f}, {0.1f, 0.35f, 0.78f}, {0.05f, 0.5f, 0.25f}};

/* Wood, cloth, stone or a plain top, wider than the picture. */
static void table(tg_synth_pen *pen)
{
    static const struct {
        tg_synth_pattern pattern;
        float low, high, depth, relief;
    } tops[] = {
        {TG_SYNTH_FIBRES, 6, 16, 0.9f, 0},      {TG_SYNTH_FIBRES, 20, 40, 0.9f, 0.002f},
        {TG_SYNTH_CHECKS, 4, 10, 0.8f, 0},      {TG_SYNTH_STRIPES, 2, 7, 0.7f, 0},
        {TG_SYNTH_MOTTLE, 1.5f, 5, 0.8f, 0},    {TG_SYNTH_GRAIN, 12, 24, 0.5f, 0.004f},
        {TG_SYNTH_GRID, 1.5f, 4, 0.5f, -0.01f}, {TG_SYNTH_SPOTS, 4, 9, 0.7f, 0},
        {TG_SYNTH_RINGS, 2, 5, 0.4f, 0},        {TG_SYNTH_MOTTLE, 1, 2, 0.15f, 0},
    };
    tg_rng *rng = pen->rng;
    uint32_t kind = tg_rng_below(rng, sizeof tops / sizeof tops[0]);
    tg_synth_rgb colour = kind < 2 ? TG_SYNTH_TONE(pen, woods) : any_colour(rng);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BOX, 4, 4, 0.1f, colour);
    float scale = tg_synth_range(rng, tops[kind].low, tops[kind].high);
    float shade = tg_synth_range(rng, 0.65f, 1.3f), depth = tg_synth_range(rng, 0.3f, 1);
    tg_synth_solid_pattern(&s, tops[kind].pattern, scale, shade, tops[kind].depth * depth);
    if (tg_synth_chance(rng, 0.15f))
        s.second = any_colour(rng);
    s.relief = tops[kind].relief;
    s.height = 0;
    s.gloss = tg_synth_range(rng, 0, 0.2f);
    float angle = tg_synth_range(rng, 0, TG_SYNTH_PI);
    float x = tg_synth_range(rng, -1, 1), y = tg_synth_range(rng, -1, 1);
    tg_synth_frame at = {x, y, tg_synth_cos(angle), tg_synth_sin(angle), 1, 0};
    tg_synth_paint(pen->canvas, &at, &s);
}

/* A napkin or place mat under or beside the plate. */
static void cloth(tg_synth_pen *pen, const tg_synth_frame *centre, float u, float v)
{
    static const tg_synth_pattern kinds[] = {TG_SYNTH_CHECKS, TG_SYNTH_STRIPES, TG_SYNTH_GRAIN,
                                             TG_SYNTH_RIM};
    tg_rng *rng = pen->rng;
    tg_synth_frame at =
        tg_synth_frame_at(centre, u, v, tg_synth_range(rng, 0, TG_SYNTH_PI), 1, 0.01f);
    float a = tg_synth_range(rng, 0.5f, 1.1f), b = tg_synth_range(rng, 0.4f, 0.8f);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BOX, a, b, 0.03f, any_colour(rng));
    uint32_t kind = tg_rng_below(rng, 4);
    tg_synth_solid_pattern(&s, kinds[kind], kind == 3 ? 0.08f : tg_synth_range(rng, 5, 12), 0.7f,
                           0.7f);
    s.second = any_colour(rng);
    s.height = 0.012f;
    s.bevel = 0.02f;
    tg_synth_paint(pen->canvas, &at, &s);
}

static tg_synth_rgb dish_colour(tg_rng *rng)
{
    if (!tg_synth_chance(rng, 0.45f))
        return any_colour(rng);
    float hue = tg_synth_range(rng, 0, 1), saturation = tg_synth_range(rng, 0, 0.08f);
    return tg_synth_hsv(hue, saturation, tg_synth_range(rng, 0.8f, 0.97f));
}

/* A rim, then the flat well: round or square. Returns the height of its floor. */
static float plate(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    tg_synth_shape shape = tg_synth_chance(rng, 0.75f) ? TG_SYNTH_ELLIPSE : TG_SYNTH_BOX;
    float side = shape == TG_SYNTH_BOX ? 0.85f : 1, well = side * tg_synth_range(rng, 0.66f, 0.86f);
    tg_synth_rgb colour = dish_colour(rng);
    tg_synth_solid rim = tg_synth_solid_new(pen, shape, side, side, 0.15f, colour);
    tg_synth_solid_pattern(&rim, TG_SYNTH_RIM, tg_synth_range(rng, 0.02f, 0.12f), 1, 1);
    if (tg_synth_chance(rng, 0.5f))
        rim.second = any_colour(rng);
    rim.height = 0.07f;
    rim.bevel = 0.06f;
    rim.gloss = tg_synth_range(rng, 0.1f, 0.5f);
    tg_synth_paint(pen->canvas, at, &rim);
    tg_synth_solid floor =
        tg_synth_solid_new(pen, shape, well, well, 0.12f,
                           tg_synth_rgb_scale(colour, tg_synth_range(rng, 0.93f, 1.04f)));
    floor.pattern_depth = tg_synth_range(rng, 0, 0.12f);
    floor.height = 0.04f;
    floor.bevel = 0.001f;
    floor.gloss = rim.gloss;
    tg_synth_paint(pen->canvas, at, &floor);
    return 0.04f * at->scale;
}

/* A cutting board. */
static float board(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    float half = tg_synth_range(rng, 0.75f, 0.95f);
    tg_synth_solid s =
        tg_synth_solid_new(pen, TG_SYNTH_BOX, 1.05f, half, 0.1f, TG_SYNTH_TONE(pen, woods));
    tg_synth_solid_pattern(&s, TG_SYNTH_FIBRES, tg_synth_range(rng, 8, 20), 0.6f, 0.8f);
    s.height = 0.06f;
    s.bevel = 0.03f;
    tg_synth_paint(pen->canvas, at, &s);
    return 0.06f * at->scale;
}

static tg_synth_rgb metal(tg_rng *rng)
{
    float hue = tg_synth_chance(rng, 0.2f) ? 0.12f : 0.6f,
          saturation = tg_synth_range(rng, 0, 0.3f);
    return tg_synth_hsv(hue, saturation, tg_synth_range(rng, 0.55f, 0.85f));
}

static void bar(tg_synth_pen *pen, const tg_synth_frame *at, float a, float b, float c,
                tg_synth_rgb colour)
{
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_TAPER, a, b, c, colour);
    s.height = 0.03f;
    s.bevel = 0.04f;
    s.gloss = 0.9f;
    s.pattern_depth = 0.1f;
    tg_synth_paint(pen->canvas, at, &s);
}

/* Knife, fork or spoon of half length 0.7 along u. */
static void cutlery(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = metal(rng);
    int kind = tg_synth_count(rng, 0, 2);
    tg_synth_frame head = tg_synth_frame_at(at, 0.55f, 0, 0, 1, 0);
    bar(pen, at, 0.55f, 0.045f, 0.022f, colour);
    if (kind == 0) {
        bar(pen, &head, 0.28f, 0.055f, 0.03f, colour);
    } else if (kind == 1) {
        tg_synth_solid bowl = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 0.18f, 0.11f, 0, colour);
        bowl.height = -0.04f;
        bowl.bevel = 0.1f;
        bowl.gloss = 0.9f;
        tg_synth_paint(pen->canvas, &head, &bowl);
    } else {
        for (int i = -1; i <= 1; i++) {
            tg_synth_frame tine = tg_synth_frame_at(&head, 0.12f, 0.05f * (float)i, 0, 1, 0);
            bar(pen, &tine, 0.14f, 0.018f, 0.012f, colour);
        }
    }
}

static void beside(tg_synth_pen *pen, const tg_synth_frame *dish)
{
    tg_rng *rng = pen->rng;
    float across = tg_synth_chance(rng, 0.5f) ? 1 : -1;
    tg_synth_frame at = tg_synth_frame_near(pen, dish, 0, across * 1.13f, 0.2f, 0.11f, 0.25f, 0);
    at.base = 0.01f;
    cutlery(pen, &at);
}

/* A cup or glass seen from above: a wall around a drink. */
static void cup(tg_synth_pen *pen, const tg_synth_frame *dish)
{
    tg_rng *rng = pen->rng;
    float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), away = tg_synth_range(rng, 1.3f, 1.5f);
    tg_synth_frame at =
        tg_synth_frame_at(dish, tg_synth_cos(angle) * away, tg_synth_sin(angle) * away, 0,
                          tg_synth_range(rng, 0.3f, 0.45f), 0);
    at.base = 0;
    tg_synth_solid wall = tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 1, 1, 0, dish_colour(rng));
    wall.height = 0.5f;
    wall.bevel = 0.1f;
    wall.gloss = 0.7f;
    wall.opacity = tg_synth_range(rng, 0.6f, 1);
    tg_synth_paint(pen->canvas, &at, &wall);
    tg_synth_solid drink =
        tg_synth_solid_new(pen, TG_SYNTH_ELLIPSE, 0.82f, 0.82f, 0, any_colour(rng));
    drink.height = 0.35f;
    drink.bevel = 0.01f;
    drink.gloss = 0.6f;
    tg_synth_paint(pen->canvas, &at, &drink);
}

static void garnish_leaf(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    float length = tg_synth_range(rng, 0.12f, 0.26f);
    float width = length * tg_synth_range(rng, 0.35f, 0.6f);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_LEAF, length, width, 0,
                                          TG_SYNTH_TONE(pen, tg_synth_leafy));
    s.height = 0.05f;
    s.bevel = length * 0.4f;
    s.ragged = length * 0.08f;
    tg_synth_paint(pen->canvas, at, &s);
}

static void splash(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    float size = tg_synth_range(rng, 0.08f, 0.24f), bumps = tg_synth_range(rng, 6, 11);
    tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BLOB, size, 0.4f, bumps,
                                          TG_SYNTH_TONE(pen, tg_synth_fruity));
    s.height = 0.02f;
    s.bevel = 0.05f;
    s.gloss = 0.8f;
    s.pattern_depth = 0.1f;
    s.opacity = tg_synth_range(rng, 0.6f, 1);
    tg_synth_paint(pen->canvas, at, &s);
}

/* Pea, berry, nut, olive, bread cube or slice of a root: too plain to be a class. */
static void morsel(tg_synth_pen *pen, const tg_synth_frame *at)
{
    tg_rng *rng = pen->rng;
    int cube = tg_synth_chance(rng, 0.35f);
    float r = tg_synth_range(rng, 0.06f, 0.16f), longer = tg_synth_range(rng, 1, 1.5f);
    tg_synth_rgb colour = tg_synth_chance(rng, 0.6f) ? TG_SYNTH_TONE(pen, tg_synth_fruity)
                                                     : TG_SYNTH_TONE(pen, tg_synth_baked);
    tg_synth_solid s = tg_synth_solid_new(pen, cube ? TG_SYNTH_BOX : TG_SYNTH_ELLIPSE, r * longer,
                                          r, r * 0.3f, colour);
    s.height = r;
    s.bevel = cube ? r * 0.3f : r;
    s.gloss = tg_synth_range(rng, 0.1f, 0.8f);
    tg_synth_paint(pen->canvas, at, &s);
}

static void crumbs(tg_synth_pen *pen, const tg_synth_frame *dish, float low, float high)
{
    tg_rng *rng = pen->rng;
    tg_synth_rgb colour = TG_SYNTH_TONE(pen, tg_synth_baked);
    for (int i = tg_synth_count(rng, 4, 14); i > 0; i--) {
        float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), r = tg_synth_range(rng, low, high);
        tg_synth_frame at = tg_synth_frame_at(dish, tg_synth_cos(angle) * r,
                                              tg_synth_sin(angle) * r, angle, 1, 0.01f);
        float size = tg_synth_range(rng, 0.012f, 0.035f);
        tg_synth_solid s = tg_synth_solid_new(pen, TG_SYNTH_BLOB, size, 0.4f, 8, colour);
        s.height = s.bevel = size;
        tg_synth_paint(pen->canvas, &at, &s);
    }
}

static void scatter(tg_synth_pen *pen, const tg_synth_frame *centre, int count, float low,
                    float high)
{
    static void (*const things[])(tg_synth_pen *, const tg_synth_frame *) = {garnish_leaf, splash,
                                                                             morsel};
    tg_rng *rng = pen->rng;
    for (int i = 0; i < count; i++) {
        float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), r = tg_synth_range(rng, low, high);
        tg_synth_frame at =
            tg_synth_frame_at(centre, tg_synth_cos(angle) * r, tg_synth_sin(angle) * r,
                              tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), 1, 0.005f);
        things[tg_rng_below(rng, 3)](pen, &at);
    }
}

tg_synth_frame tg_synth_scene_lay(tg_synth_pen *pen)
{
    tg_rng *rng = pen->rng;
    table(pen);
    float angle = tg_synth_range(rng, -0.2f, 0.2f);
    float x = tg_synth_range(rng, -0.16f, 0.16f), y = tg_synth_range(rng, -0.16f, 0.16f);
    tg_synth_frame dish = {
        .x = x, .y = y, .cosine = tg_synth_cos(angle), .sine = tg_synth_sin(angle)};
    dish.scale = tg_synth_range(rng, 0.78f, 1);
    if (tg_synth_chance(rng, 0.35f)) {
        float u = tg_synth_range(rng, -0.8f, 0.8f), v = tg_synth_range(rng, -0.8f, 0.8f);
        cloth(pen, &dish, u, v);
    }
    for (int i = tg_synth_count(rng, 0, 2); i > 0; i--)
        beside(pen, &dish);
    if (tg_synth_chance(rng, 0.35f))
        cup(pen, &dish);
    float kind = tg_synth_range(rng, 0, 1);
    if (kind < 0.75f)
        dish.base = plate(pen, &dish);
    else if (kind < 0.9f)
        dish.base = board(pen, &dish);
    scatter(pen, &dish, tg_synth_count(rng, 0, 4), 0.75f, 1.15f);
    if (tg_synth_chance(rng, 0.4f))
        crumbs(pen, &dish, 0.3f, 1.2f);
    tg_synth_frame food = tg_synth_frame_near(pen, &dish, 0, 0, 0.14f, 0.14f, 0.35f, 0);
    food.scale *= tg_synth_range(rng, 0.75f, 1);
    return food;
}

/* Something that crosses the food's edge. */
static void occluder(tg_synth_pen *pen, const tg_synth_frame *food)
{
    tg_rng *rng = pen->rng;
    float angle = tg_synth_range(rng, 0, 2 * TG_SYNTH_PI);
    float away = tg_synth_range(rng, 0.75f, 1);
    float u = tg_synth_cos(angle) * away, v = tg_synth_sin(angle) * away;
    tg_synth_frame at = tg_synth_frame_at(food, u, v, tg_synth_range(rng, 0, 2 * TG_SYNTH_PI), 1,
                                          0.3f * food->scale);
    if (tg_synth_chance(rng, 0.4f)) {
        cutlery(pen, &at);
        return;
    }
    if (tg_synth_chance(rng, 0.4f)) {
        cloth(pen, food, tg_synth_cos(angle) * 1.75f, tg_synth_sin(angle) * 1.75f);
        return;
    }
    garnish_leaf(pen, &at);
}

void tg_synth_scene_cover(tg_synth_pen *pen, const tg_synth_frame *food)
{
    tg_rng *rng = pen->rng;
    tg_synth_frame above = *food;
    above.base += 0.15f * food->scale;
    scatter(pen, &above, tg_synth_count(rng, 0, 2), 0.6f, 1.1f);
    if (tg_synth_chance(rng, 0.2f))
        crumbs(pen, &above, 0, 0.9f);
    if (tg_synth_chance(rng, 0.35f))
        occluder(pen, food);
}
