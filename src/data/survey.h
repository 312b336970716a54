/* survey.h - looks at every photo of a list once, on several threads; under `data check` and
 * `data stats`.
 *
 * Facts come back in the order of the list, whatever the threads did.
 * Memory     facts are heap, owned by the caller (survey_done); about 500 bytes a photo.
 * Errors     TG_ERROR_MACHINE (memory, threads, handles, disk); a bad photo is a fact.
 */
#ifndef TG_DATA_SURVEY_H
#define TG_DATA_SURVEY_H

#include "base/status.h"
#include "image/decode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TG_SURVEY_SIDE 8 /* of the thumbnail */

typedef struct tg_photo_facts {
    bool bad;
    char *message;       /* heap: cause when bad, first warning when odd; else NULL */
    uint64_t bytes;      /* of the file */
    uint64_t content[2]; /* hash of the bytes */
    uint64_t look;       /* difference hash: each bit compares two neighbours of 9 x 8 grays */
    uint8_t thumbnail[TG_SURVEY_SIDE * TG_SURVEY_SIDE * 3];
    int width_px, height_px, orientation;
    tg_image_format format;
    bool has_alpha;
    uint64_t sum[3], square_sum[3]; /* of all pixels, 0..255 */
} tg_photo_facts;

/* `paths` is an array of count paths. */
tg_status tg_survey_photos(const char *const *paths, size_t count, int workers,
                           tg_photo_facts **out) TG_MUST_CHECK;
void tg_survey_done(tg_photo_facts *facts, size_t count);

#endif
