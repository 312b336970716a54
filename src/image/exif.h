/* exif.h - the Orientation tag (0x0112) of a photo's EXIF block, and nothing else of it.
 *
 * Reads the APP1 segment of JPEG, the eXIf chunk of PNG and the EXIF chunk of WebP, both byte
 * orders. All offsets are checked against the bytes given. Reentrant, no memory.
 */
#ifndef TG_IMAGE_EXIF_H
#define TG_IMAGE_EXIF_H

#include "image/decode.h"

#include <stddef.h>
#include <stdint.h>

/* 1..8; 1 when there is no block, no tag, or a value that is none of these. */
int tg_exif_orientation(const uint8_t *bytes, size_t n, tg_image_format format);

/* Of a TIFF structure (the EXIF block without its "Exif\0\0"). */
int tg_exif_tiff_orientation(const uint8_t *tiff, size_t n);

/* Offset of the first start-of-scan marker of a JPEG, n when there is none. */
size_t tg_jpeg_scan_offset(const uint8_t *bytes, size_t n);

#endif
