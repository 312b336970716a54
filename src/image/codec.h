/* codec.h - what decode.c asks of the four codec files; not for use outside image/.
 *
 * Each codec reads one format into stored (not yet turned) RGB pixels, checks the limits before
 * memory is taken, and adds its warnings to the report. Reentrant; errors as in decode.h.
 */
#ifndef TG_IMAGE_CODEC_H
#define TG_IMAGE_CODEC_H

#include "image/decode.h"

typedef struct tg_codec_job {
    const uint8_t *bytes;
    size_t n;
    const tg_decode_options *options;
    tg_image_scratch *scratch;
    tg_decode_report
        *report;        /* width_px, height_px: stored size, set by the codec's header stage */
    tg_image *out;      /* NULL: read the header only */
    tg_image_rect crop; /* JPEG: stored pixels wanted; zero width: the whole picture */
    int denominator;    /* JPEG: 1, 2, 4 or 8, reduced decoding */
} tg_codec_job;

tg_status tg_codec_jpeg(tg_codec_job *job) TG_MUST_CHECK;
tg_status tg_codec_png(tg_codec_job *job) TG_MUST_CHECK;
tg_status tg_codec_webp(tg_codec_job *job) TG_MUST_CHECK;
tg_status tg_codec_heif(tg_codec_job *job) TG_MUST_CHECK;

/* Sets the report's stored size and refuses pictures over the limit, or empty ones. */
tg_status tg_codec_set_size(tg_codec_job *job, uint64_t width_px, uint64_t height_px) TG_MUST_CHECK;

/* Counts a warning and keeps the text of the first. */
void tg_codec_warn(tg_decode_report *report, const char *format, ...) TG_PRINTF(2, 3);

/* n pixels of RGBA on white: c a + 255 (255 - a), divided by 255 and rounded. */
void tg_codec_compose_on_white(const uint8_t *rgba, size_t n, uint8_t *out_rgb);

#endif
