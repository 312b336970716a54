#include "image/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12 };
enum { MARKER_SOI = 0xD8, MARKER_EOI = 0xD9, MARKER_SOS = 0xDA, MARKER_APP1 = 0xE1 };

typedef struct block {
    const uint8_t *data;
    size_t n;
} block;

static uint32_t read_u16(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read_u32(const uint8_t *p, bool big)
{
    return big ? read_u16(p, big) << 16 | read_u16(p + 2, big)
               : read_u16(p + 2, big) << 16 | read_u16(p, big);
}

int tg_exif_tiff_orientation(const uint8_t *tiff, size_t n)
{
    if (n < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return 1;
    bool big = tiff[0] == 'M';
    size_t at = read_u32(tiff + 4, big);
    if (at > n - 2)
        return 1;
    size_t entries = read_u16(tiff + at, big);
    at += 2;
    for (size_t i = 0; i < entries && n - at >= ENTRY_BYTES; i++, at += ENTRY_BYTES) {
        const uint8_t *entry = tiff + at;
        uint32_t type = read_u16(entry + 2, big);
        if (read_u16(entry, big) != TAG_ORIENTATION)
            continue;
        uint32_t value = type == TYPE_SHORT  ? read_u16(entry + 8, big)
                         : type == TYPE_LONG ? read_u32(entry + 8, big)
                                             : 0;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Steps to the next marker segment that has a length: *at behind its marker, *length of its data
 * after the two length bytes. Junk before a marker is passed over, as the decoder does. */
static bool next_segment(block jpeg, size_t *at, uint8_t *marker, size_t *length)
{
    size_t p = *at;
    for (;;) {
        while (p < jpeg.n && jpeg.data[p] != 0xFF)
            p++;
        while (p < jpeg.n && jpeg.data[p] == 0xFF)
            p++;
        if (p >= jpeg.n)
            return false;
        *marker = jpeg.data[p++];
        if (*marker == MARKER_EOI)
            return false;
        if (*marker != 0 && *marker != 1 && (*marker < 0xD0 || *marker > MARKER_SOI))
            break;
    }
    if (jpeg.n - p < 2)
        return false;
    *length = read_u16(jpeg.data + p, true);
    if (*length < 2)
        return false;
    *length -= 2;
    *at = p + 2;
    return true;
}

static block find_in_jpeg(block jpeg)
{
    size_t at = 0, length;
    uint8_t marker;
    while (next_segment(jpeg, &at, &marker, &length) && marker != MARKER_SOS) {
        if (length > jpeg.n - at)
            break;
        if (marker == MARKER_APP1 && length > 6 && memcmp(jpeg.data + at, "Exif\0\0", 6) == 0)
            return (block){jpeg.data + at + 6, length - 6};
        at += length;
    }
    return (block){NULL, 0};
}

size_t tg_jpeg_scan_offset(const uint8_t *bytes, size_t n)
{
    block jpeg = {bytes, n};
    size_t at = 0, length;
    uint8_t marker;
    while (next_segment(jpeg, &at, &marker, &length)) {
        if (marker == MARKER_SOS)
            return at;
        if (length > n - at)
            break;
        at += length;
    }
    return n;
}

/* Chunk lists: PNG has length, type, data, checksum; WebP (after 12 bytes of RIFF header) has type,
 * little-endian length, data padded to even. */
static block find_in_png(block png)
{
    size_t at = 8;
    while (png.n >= 12 && at <= png.n - 12) {
        size_t length = read_u32(png.data + at, true);
        if (length > png.n - at - 12)
            break;
        if (memcmp(png.data + at + 4, "eXIf", 4) == 0)
            return (block){png.data + at + 8, length};
        at += length + 12;
    }
    return (block){NULL, 0};
}

static block find_in_webp(block webp)
{
    size_t at = 12;
    while (webp.n >= 8 && at <= webp.n - 8) {
        size_t length = read_u32(webp.data + at + 4, false);
        if (length > webp.n - at - 8)
            break;
        if (memcmp(webp.data + at, "EXIF", 4) == 0) {
            block found = {webp.data + at + 8, length};
            bool prefixed = length > 6 && memcmp(found.data, "Exif\0\0", 6) == 0;
            return prefixed ? (block){found.data + 6, length - 6} : found;
        }
        at += 8;
        size_t padded = length + (length & 1);
        if (padded > webp.n - at)
            break;
        at += padded;
    }
    return (block){NULL, 0};
}

int tg_exif_orientation(const uint8_t *bytes, size_t n, tg_image_format format)
{
    block all = {bytes, n}, exif = {NULL, 0};
    if (format == TG_IMAGE_JPEG)
        exif = find_in_jpeg(all);
    else if (format == TG_IMAGE_PNG)
        exif = find_in_png(all);
    else if (format == TG_IMAGE_WEBP)
        exif = find_in_webp(all);
    return exif.data ? tg_exif_tiff_orientation(exif.data, exif.n) : 1;
}
