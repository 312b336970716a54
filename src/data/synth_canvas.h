/* synth_canvas.h - where generated pictures are painted: colour, height and gloss, lit at the end.
 *
 * Planes     The table is a plane with coordinates (x, y); the camera sees about [-1,1]^2 of it,
 *            tilted (nearer parts larger), turned. Every sample of the canvas knows its place on
 *            the plane. Heights are in the same unit.
 * Painting   Solids (signed-distance shapes with a height profile and a pattern) replace colour and
 *            height where they cover. Shading, shadows and highlights come from the height field
 *            when the canvas is developed, so that one light rules the whole picture.
 * Memory     one heap block per canvas, owned by it. A canvas belongs to one thread.
 */
#ifndef TG_DATA_SYNTH_CANVAS_H
#define TG_DATA_SYNTH_CANVAS_H

#include "base/status.h"
#include "data/synth_math.h"

#include <stddef.h>

typedef struct tg_synth_camera {
    float squash;       /* cosine of the tilt: 1 from above */
    float perspective;  /* growth of near parts; 0 none */
    float cosine, sine; /* of the turn about the upright axis */
    float zoom;         /* plane units in half a picture side */
} tg_synth_camera;

typedef struct tg_synth_canvas {
    int size_px; /* of the picture */
    int side;    /* samples a row: TG_SYNTH_SAMPLES a pixel */
    float pitch; /* plane units between samples at the centre */
    tg_synth_camera camera;
    float *x, *y; /* place of each sample on the plane */
    float *red, *green, *blue, *height, *gloss;
    void *memory;
} tg_synth_canvas;

#define TG_SYNTH_SAMPLES 2

/* What a solid's outline is, in its own coordinates (u, v); a, b, c are lengths or angles. */
typedef enum tg_synth_shape {
    TG_SYNTH_ELLIPSE, /* half axes a, b */
    TG_SYNTH_BOX,     /* half sides a, b, corner radius c */
    TG_SYNTH_TAPER,   /* from (-a,0) with radius b to (a,0) with radius c, straight sides */
    TG_SYNTH_ARC,     /* circle of radius a, half thickness b, half angle c about +u, round ends */
    TG_SYNTH_HORN,    /* the same, thinning towards its ends */
    TG_SYNTH_WEDGE,   /* sector of radius a and half angle c about +u, tip at the origin */
    TG_SYNTH_BLOB,    /* radius a, made uneven by b (share) in about c bumps */
    TG_SYNTH_LEAF,    /* pointed at (-a,0) and (a,0), half width b */
} tg_synth_shape;

/* How the second colour and the relief are laid on; pattern_scale is in local units or a count. */
typedef enum tg_synth_pattern {
    TG_SYNTH_MOTTLE,   /* cloudy noise; scale = lumps a unit */
    TG_SYNTH_GRAIN,    /* sharp small lumps; scale = lumps a unit */
    TG_SYNTH_SPOTS,    /* one small dot a cell; scale = cells a unit */
    TG_SYNTH_STRIPES,  /* across u; scale = stripes a unit */
    TG_SYNTH_FIBRES,   /* along u, uneven; scale = fibres a unit */
    TG_SYNTH_GRID,     /* square walls around sunk cells; scale = cells a unit */
    TG_SYNTH_CHECKS,   /* woven squares; scale = squares a unit */
    TG_SYNTH_SEGMENTS, /* spokes from the origin; scale = their number */
    TG_SYNTH_RINGS,    /* circles about the origin; scale = rings a unit */
    TG_SYNTH_RIM,      /* a band along the outline; scale = its width */
} tg_synth_pattern;

typedef struct tg_synth_solid {
    tg_synth_shape shape;
    float a, b, c;
    float ragged;        /* unevenness of the outline, local units */
    float height, bevel; /* of the middle; width of the rounded edge */
    tg_synth_rgb colour, second;
    tg_synth_pattern pattern;
    float pattern_scale;
    float pattern_depth; /* 0..1 share of the second colour */
    float relief;        /* height that the pattern adds where it is full */
    float gloss;         /* 0..1 */
    float opacity;       /* 0..1 */
    uint32_t seed;       /* of its noise */
} tg_synth_solid;

/* Where a solid stands: origin, turn, size (local to plane units) and the height of its foot. */
typedef struct tg_synth_frame {
    float x, y, cosine, sine, scale, base;
} tg_synth_frame;

typedef struct tg_synth_light {
    float x, y, z;          /* towards the light, length 1; x right, y down, z up */
    float ambient;          /* 0..1 share of light from everywhere */
    float shadow;           /* 0..1 depth of cast shadows */
    tg_synth_rgb colour;    /* gain of each channel: exposure and colour temperature */
    float slope_x, slope_y; /* brightness gradient over the picture */
    float vignette;         /* darkening of the corners */
    float blur;             /* 0..2: strength of the lens blur in output pixels */
    float noise;            /* half width of the sensor noise, 0..1 scale */
    float contrast;         /* about middle grey; 1 none */
    float saturation;       /* 1 none */
    uint32_t seed;          /* of the noise */
} tg_synth_light;

/* Reserves the canvas and lays out the plane. Errors: TG_ERROR_MACHINE memory. */
tg_status tg_synth_canvas_init(tg_synth_canvas *canvas, int size_px,
                               const tg_synth_camera *camera) TG_MUST_CHECK;
void tg_synth_canvas_done(tg_synth_canvas *canvas);

/* A frame at (u, v) of another, turned by `angle` and scaled, its foot raised by `lift` (plane). */
tg_synth_frame tg_synth_frame_at(const tg_synth_frame *parent, float u, float v, float angle,
                                 float scale, float lift);

/* Paints a solid. One that covers nothing of the picture is no error. */
void tg_synth_paint(tg_synth_canvas *canvas, const tg_synth_frame *frame,
                    const tg_synth_solid *solid);

/* Lights the canvas and averages it down: interleaved RGB, out_rgb[size_px * size_px * 3].
 * The canvas' colours are used up. */
void tg_synth_develop(tg_synth_canvas *canvas, const tg_synth_light *light, uint8_t *out_rgb);

#endif
