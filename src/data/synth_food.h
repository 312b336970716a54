/* synth_food.h - the kinds of food that the picture generator draws.
 *
 * A food is drawn inside the unit circle of its frame. What makes a class is outline, parts and
 * texture; colours come from short palettes that overlap between classes, are shifted by the
 * picture's tint and are now and then replaced by any colour at all.
 * Reentrant; no memory.
 */
#ifndef TG_DATA_SYNTH_FOOD_H
#define TG_DATA_SYNTH_FOOD_H

#include "data/synth_canvas.h"

/* The picture's shift of every palette: no colour means a class. */
typedef struct tg_synth_tint {
    float hue;        /* turns added */
    float saturation; /* gain */
    float value;      /* gain */
    float odd;        /* probability that a colour is replaced by any other */
} tg_synth_tint;

/* What a food is drawn with. Two draws never stand in one expression: C leaves their order open,
 * and compilers differ. */
typedef struct tg_synth_pen {
    tg_synth_canvas *canvas;
    tg_rng *rng;
    tg_synth_tint tint;
    uint32_t noise; /* of the next solid; takes no draw */
} tg_synth_pen;

typedef struct tg_synth_hue {
    float h, s, v;
} tg_synth_hue;

typedef void (*tg_synth_food)(tg_synth_pen *pen, const tg_synth_frame *frame);

/* A colour out of `count` palette entries, the first one more often, varied and tinted. */
tg_synth_rgb tg_synth_tone(tg_synth_pen *pen, const tg_synth_hue *palette, int count);
/* The same for a whole array. */
#define TG_SYNTH_TONE(pen, palette)                                                                \
    tg_synth_tone(pen, palette, (int)(sizeof(palette) / sizeof((palette)[0])))

/* A solid of one colour, fully opaque, domed over a third of its size, with noise of its own. */
tg_synth_solid tg_synth_solid_new(tg_synth_pen *pen, tg_synth_shape shape, float a, float b,
                                  float c, tg_synth_rgb colour);
/* The second colour of a solid: the first one with its value multiplied. */
void tg_synth_solid_pattern(tg_synth_solid *solid, tg_synth_pattern pattern, float scale,
                            float shade, float depth);

/* A frame near (u, v) of another: each coordinate up to du and dv away, turned by up to `turn`,
 * raised by `lift` (plane units). */
tg_synth_frame tg_synth_frame_near(tg_synth_pen *pen, const tg_synth_frame *parent, float u,
                                   float v, float du, float dv, float turn, float lift);

#define TG_SYNTH_PIECES 5
/* Lays out 1..TG_SYNTH_PIECES pieces in the unit circle, turned at random; each frame's unit
 * circle is one piece. */
void tg_synth_lay_out(tg_synth_pen *pen, const tg_synth_frame *frame, int count,
                      tg_synth_frame *out_frames);

/* Palettes that several foods share. */
extern const tg_synth_hue tg_synth_baked[5], tg_synth_fruity[6], tg_synth_leafy[4],
    tg_synth_creamy[5], tg_synth_dark[4];

void tg_synth_food_pizza(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_hot_dog(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_hamburger(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_sushi(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_spaghetti(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_egg(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_fries(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_doughnut(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_waffle(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_cookie(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_pretzel(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_ice_cream(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_banana(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_strawberry(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_grape(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_watermelon(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_orange(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_apple(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_carrot(tg_synth_pen *pen, const tg_synth_frame *frame);
void tg_synth_food_mushroom(tg_synth_pen *pen, const tg_synth_frame *frame);

/* Draws class `index` (0 <= index < TG_SYNTH_CLASSES). */
void tg_synth_food_draw(tg_synth_pen *pen, int index, const tg_synth_frame *frame);

#endif
