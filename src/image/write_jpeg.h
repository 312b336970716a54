/* write_jpeg.h - RGB8 to JPEG bytes, the same bytes for the same pixels on every machine with the
 * same libjpeg-turbo (integer transform, fixed Huffman tables, no time or name inside).
 *
 * Memory   the bytes are malloc'ed and become the caller's (free).
 * Errors   TG_ERROR_USAGE: empty picture, side over 65500, quality outside 1..100.
 *          TG_ERROR_MACHINE: memory.
 * Threads  reentrant.
 */
#ifndef TG_IMAGE_WRITE_JPEG_H
#define TG_IMAGE_WRITE_JPEG_H

#include "base/status.h"
#include "image/image.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tg_jpeg_sampling {
    TG_JPEG_420,
    TG_JPEG_422,
    TG_JPEG_444,
} tg_jpeg_sampling;

tg_status tg_image_write_jpeg(const tg_image *image, int quality, tg_jpeg_sampling sampling,
                              uint8_t **out_bytes, size_t *out_size) TG_MUST_CHECK;

#endif
