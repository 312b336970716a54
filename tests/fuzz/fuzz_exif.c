/* Hostile EXIF blocks and containers: the answer is always 1..8. */
#include "image/exif.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int value = tg_exif_tiff_orientation(data, size);
    if (value < 1 || value > 8)
        abort();
    for (int format = TG_IMAGE_UNKNOWN; format <= TG_IMAGE_HEIF; format++) {
        value = tg_exif_orientation(data, size, (tg_image_format)format);
        if (value < 1 || value > 8)
            abort();
    }
    if (tg_jpeg_scan_offset(data, size) > size)
        abort();
    return 0;
}
