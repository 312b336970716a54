/* pictures.h - a batch of generated pictures that lies in memory, for measuring steps without photos.
 *
 * Values are uniform in [-2,2), about what normalised photos hold; a few pictures, over and over: no step's
 * time depends on them. Targets are one-hot, classes in turn.
 * Memory   one arena, owned. Errors TG_ERROR_USAGE when sizes do not fit the machine's numbers,
 *          TG_ERROR_MACHINE for memory. Threads one at a time.
 */
#ifndef TG_TRAIN_PICTURES_H
#define TG_TRAIN_PICTURES_H

#include "base/arena.h"
#include "data/loader.h"
#include "model/config.h"

typedef struct tg_pictures {
    tg_arena memory;
    tg_batch batch;
} tg_pictures;

/* B pictures for the student, and for a teacher (NULL: none) at its size, with targets of K classes (0: none).
 * seed: other pictures. */
tg_status tg_pictures_open(const tg_vit_config *student, const tg_vit_config *teacher, size_t K,
                           size_t B, uint64_t seed, tg_pictures *out) TG_MUST_CHECK;
/* Accepts NULL and a zeroed object. */
void tg_pictures_close(tg_pictures *pictures);

#endif
