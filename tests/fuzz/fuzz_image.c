/* Photo bytes of every format through probing, whole decoding and the decoding of a crop. The first
 * two bytes place the crop; the rest is the file. */
#include "image/decode.h"
#include "image/resize.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A crop that must decode whenever the whole does, and be what the report says. */
static void decode_crop(const uint8_t *bytes, size_t n, const tg_decode_options *options,
                        const tg_decode_report *report, const uint8_t place[2],
                        tg_image_scratch *scratch)
{
    tg_image image = {0}, small = {0};
    tg_image_box box;
    int w = 1 + place[0] % report->width_px, h = 1 + place[1] % report->height_px;
    tg_image_rect crop = {(report->width_px - w) / 2, (report->height_px - h) / 2, w, h};
    if (tg_image_decode_region(bytes, n, options, crop, 3, 3, 1, scratch, &image, &box, NULL) ==
        TG_OK) {
        tg_resize_spec spec = {.width_px = 3, .height_px = 3, .box = box};
        if (tg_image_resize(&image, &spec, scratch, &small) != TG_OK)
            abort();
    }
    tg_image_done(&image);
    tg_image_done(&small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tg_decode_options options = tg_decode_options_default();
    tg_decode_report report;
    tg_image image = {0};
    tg_image_scratch scratch = {0};
    options.max_pixels = 1 << 18;
    if (size < 2)
        return 0;
    if (tg_image_probe(data + 2, size - 2, &options, &report) == TG_OK) {
        tg_status whole = tg_image_decode(data + 2, size - 2, &options, &scratch, &image, NULL);
        if (whole == TG_OK && (image.width_px < 1 || image.height_px < 1))
            abort();
        if (report.width_px < 1 || report.height_px < 1)
            abort();
        decode_crop(data + 2, size - 2, &options, &report, data, &scratch);
    }
    tg_image_done(&image);
    tg_image_scratch_done(&scratch);
    return 0;
}
