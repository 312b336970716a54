/* synth_scene.h - all of a picture but its food: table, plate, clutter, occluders, light, camera.
 * Everything is drawn from the generator it is given; reentrant; no memory.
 */
#ifndef TG_DATA_SYNTH_SCENE_H
#define TG_DATA_SYNTH_SCENE_H

#include "data/synth_food.h"

/* Tilt, turn and distance of the camera. */
tg_synth_camera tg_synth_camera_pick(tg_rng *rng);
/* Direction, colour and depth of the light; lens and sensor. */
tg_synth_light tg_synth_light_pick(tg_rng *rng);
/* Shift of the palettes. */
tg_synth_tint tg_synth_tint_pick(tg_rng *rng);

/* Paints table, cloth, plate and what lies beside the food; returns where the food goes: a frame
 * whose unit circle it fills. */
tg_synth_frame tg_synth_scene_lay(tg_synth_pen *pen);
/* Paints what lies on or before the food: leaves, sauce, crumbs, cutlery, a napkin's corner. */
void tg_synth_scene_cover(tg_synth_pen *pen, const tg_synth_frame *food);

#endif
