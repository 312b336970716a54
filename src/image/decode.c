#include "image/decode.h"

#include "image/codec.h"
#include "image/exif.h"
#include "image/orient.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tg_decode_options tg_decode_options_default(void)
{
    return (tg_decode_options){
        .exif_orientation = true, .max_pixels = 89478485, .max_bytes = (uint64_t)256 << 20};
}

const char *tg_image_format_name(tg_image_format format)
{
    static const char *const names[] = {"unknown", "JPEG", "PNG", "WebP", "HEIF"};
    return names[format];
}

void tg_codec_warn(tg_decode_report *report, const char *format, ...)
{
    va_list args;
    if (report->warning_count++ > 0)
        return;
    va_start(args, format);
    vsnprintf(report->warning, sizeof report->warning, format, args);
    va_end(args);
}

void tg_codec_compose_on_white(const uint8_t *rgba, size_t n, uint8_t *out_rgb)
{
    for (size_t i = 0; i < n; i++, rgba += 4, out_rgb += 3) {
        unsigned a = rgba[3], white = 255 * (255 - a) + 127;
        for (int c = 0; c < 3; c++)
            out_rgb[c] = (uint8_t)((rgba[c] * a + white) / 255);
    }
}

tg_status tg_codec_set_size(tg_codec_job *job, uint64_t width_px, uint64_t height_px)
{
    const char *name = tg_image_format_name(job->report->format);
    if (width_px == 0 || height_px == 0)
        return tg_fail(TG_ERROR_INPUT, "broken %s: the header says %llu x %llu pixels", name,
                       (unsigned long long)width_px, (unsigned long long)height_px);
    if (width_px > INT32_MAX / 4 || height_px > INT32_MAX / 4 ||
        width_px * height_px > job->options->max_pixels)
        return tg_fail(TG_ERROR_INPUT,
                       "%s of %llu x %llu pixels is over the limit of %llu pixels; make a smaller "
                       "copy of it",
                       name, (unsigned long long)width_px, (unsigned long long)height_px,
                       (unsigned long long)job->options->max_pixels);
    job->report->width_px = (int)width_px;
    job->report->height_px = (int)height_px;
    return TG_OK;
}

static bool is_heif(const uint8_t *b, size_t n)
{
    static const char brands[][5] = {"heic", "heix", "heim", "heis", "hevc", "hevx",
                                     "mif1", "msf1", "avif", "avis", "mif2"};
    if (n < 12 || memcmp(b + 4, "ftyp", 4) != 0)
        return false;
    for (size_t i = 0; i < sizeof brands / sizeof brands[0]; i++)
        if (memcmp(b + 8, brands[i], 4) == 0)
            return true;
    return false;
}

tg_image_format tg_image_sniff(const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    if (n >= 3 && memcmp(b, "\xFF\xD8\xFF", 3) == 0)
        return TG_IMAGE_JPEG;
    if (n >= 8 && memcmp(b, "\x89PNG\r\n\x1A\n", 8) == 0)
        return TG_IMAGE_PNG;
    if (n >= 12 && memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WEBP", 4) == 0)
        return TG_IMAGE_WEBP;
    return is_heif(b, n) ? TG_IMAGE_HEIF : TG_IMAGE_UNKNOWN;
}

static bool is_text(const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n && i < 256; i++)
        if ((b[i] < 0x20 && b[i] != '\n' && b[i] != '\r' && b[i] != '\t') || b[i] == 0x7F)
            return false;
    return true;
}

static bool is_html(const uint8_t *b, size_t n)
{
    char head[256];
    size_t length = n < sizeof head - 1 ? n : sizeof head - 1;
    memcpy(head, b, length);
    head[length] = '\0';
    return strcasestr(head, "<html") || strcasestr(head, "<!doctype html");
}

static bool is_zeros(const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n && i < 256; i++)
        if (b[i])
            return false;
    return true;
}

/* What bytes of no supported format look like, for the message. */
static const char *describe(const uint8_t *b, size_t n)
{
    static const struct {
        const char *magic;
        size_t length;
        const char *name;
    } known[] = {{"GIF8", 4, "a GIF"},          {"BM", 2, "a BMP"},
                 {"II*\0", 4, "a TIFF"},        {"MM\0*", 4, "a TIFF"},
                 {"%PDF", 4, "a PDF"},          {"PK\x03\x04", 4, "a ZIP archive"},
                 {"\x1F\x8B", 2, "gzip data"},  {"8BPS", 4, "a Photoshop file"},
                 {"\xFF\xD8", 2, "a cut JPEG"}, {"\0\0\1\0", 4, "an icon file"},
                 {"\x89PNG", 4, "a cut PNG"},   {"RIFF", 4, "a RIFF file that is not WebP"},
                 {"\xFF\x0A", 2, "a JPEG XL"},  {"\0\0\0\x0CjP  ", 8, "a JPEG 2000"}};
    if (n == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (n >= known[i].length && memcmp(b, known[i].magic, known[i].length) == 0)
            return known[i].name;
    if (is_zeros(b, n))
        return "zero bytes";
    if (is_html(b, n))
        return "an HTML page";
    return is_text(b, n) ? "text" : "unknown data";
}

static tg_status dispatch(tg_codec_job *job)
{
    switch (job->report->format) {
    case TG_IMAGE_JPEG:
        return tg_codec_jpeg(job);
    case TG_IMAGE_PNG:
        return tg_codec_png(job);
    case TG_IMAGE_WEBP:
        return tg_codec_webp(job);
    case TG_IMAGE_HEIF:
        return tg_codec_heif(job);
    case TG_IMAGE_UNKNOWN:
        break;
    }
    return tg_fail(TG_ERROR_INPUT,
                   "not a picture that can be read: looks like %s (JPEG, PNG, WebP and HEIF are)",
                   describe(job->bytes, job->n));
}

static void exchange(int *a, int *b)
{
    int t = *a;
    *a = *b;
    *b = t;
}

/* Format and orientation into the report; the limit on the file's size. */
static tg_status begin(tg_codec_job *job)
{
    *job->report = (tg_decode_report){.orientation = 1, .scale_denominator = 1};
    if (job->n > job->options->max_bytes)
        return tg_fail(TG_ERROR_INPUT, "file of %zu bytes is over the limit of %llu bytes", job->n,
                       (unsigned long long)job->options->max_bytes);
    job->report->format = tg_image_sniff(job->bytes, job->n);
    job->report->orientation = tg_exif_orientation(job->bytes, job->n, job->report->format);
    job->report->orientation_applied =
        job->options->exif_orientation && job->report->orientation != 1;
    return TG_OK;
}

static int applied_orientation(const tg_decode_report *report)
{
    return report->orientation_applied ? report->orientation : 1;
}

/* From here on the report's size is the upright one. */
static tg_status end(tg_codec_job *job)
{
    tg_decode_report *report = job->report;
    if (tg_orientation_is_transposed(applied_orientation(report)))
        exchange(&report->width_px, &report->height_px);
    if (job->options->strict && report->warning_count > 0)
        return tg_fail(TG_ERROR_INPUT, "damaged %s refused by the strict rule: %s",
                       tg_image_format_name(report->format), report->warning);
    return TG_OK;
}

tg_status tg_image_probe(const void *bytes, size_t n, const tg_decode_options *options,
                         tg_decode_report *out_report)
{
    tg_decode_options defaults = tg_decode_options_default();
    tg_codec_job job = {.bytes = bytes,
                        .n = n,
                        .options = options ? options : &defaults,
                        .report = out_report,
                        .denominator = 1};
    TG_TRY(begin(&job));
    TG_TRY(dispatch(&job));
    return end(&job);
}

tg_status tg_image_decode(const void *bytes, size_t n, const tg_decode_options *options,
                          tg_image_scratch *scratch, tg_image *out, tg_decode_report *out_report)
{
    tg_decode_options defaults = tg_decode_options_default();
    tg_decode_report report;
    tg_codec_job job = {.bytes = bytes,
                        .n = n,
                        .options = options ? options : &defaults,
                        .scratch = scratch,
                        .report = out_report ? out_report : &report,
                        .denominator = 1};
    TG_TRY(begin(&job));
    int orientation = applied_orientation(job.report);
    job.out = orientation == 1 ? out : &scratch->picture;
    TG_TRY(dispatch(&job));
    if (orientation != 1)
        TG_TRY(tg_image_orient(job.out, orientation, out));
    return end(&job);
}

/* Moves the rectangle's rows to the front of the picture's own storage. */
static void crop_in_place(tg_image *image, tg_image_rect r)
{
    size_t row = (size_t)image->width_px * 3, kept = (size_t)r.width_px * 3;
    const uint8_t *from = image->rgb + (size_t)r.top_px * row + (size_t)r.left_px * 3;
    for (int y = 0; y < r.height_px; y++, from += row)
        memmove(image->rgb + (size_t)y * kept, from, kept);
    image->width_px = r.width_px;
    image->height_px = r.height_px;
}

static int choose_denominator(tg_image_rect crop, int target_width_px, int target_height_px,
                              double reserve)
{
    int denominator = 1;
    if (!(reserve > 0))
        return denominator;
    while (denominator < 8 && crop.width_px >= 2 * denominator * reserve * target_width_px &&
           crop.height_px >= 2 * denominator * reserve * target_height_px)
        denominator *= 2;
    return denominator;
}

static bool is_inside(tg_image_rect r, int width_px, int height_px)
{
    return r.left_px >= 0 && r.top_px >= 0 && r.width_px > 0 && r.height_px > 0 &&
           r.width_px <= width_px - r.left_px && r.height_px <= height_px - r.top_px;
}

/* A file without end marker may have lost rows: whole decoding finds out how many. */
static bool may_skip_rows(const uint8_t *bytes, size_t n)
{
    for (size_t at = n, first = tg_jpeg_scan_offset(bytes, n); at > first + 1; at--)
        if (bytes[at - 1] == 0xD9 && bytes[at - 2] == 0xFF)
            return true;
    return false;
}

/* Decodes the stored rectangle into job->out; *out_box is the crop within it. */
static tg_status decode_stored(tg_codec_job *job, tg_image_rect stored, tg_image_box *out_box)
{
    tg_image_rect r = stored;
    if (job->report->format == TG_IMAGE_JPEG && may_skip_rows(job->bytes, job->n)) {
        int d = job->denominator;
        double left = stored.left_px / d, top = stored.top_px / d;
        job->crop = stored;
        TG_TRY(dispatch(job));
        *out_box =
            (tg_image_box){(double)stored.left_px / d - left, (double)stored.top_px / d - top,
                           (double)(stored.left_px + stored.width_px) / d - left,
                           (double)(stored.top_px + stored.height_px) / d - top};
        return TG_OK;
    }
    job->denominator = 1;
    TG_TRY(dispatch(job));
    if (!is_inside(r, job->out->width_px, job->out->height_px))
        return tg_fail(
            TG_ERROR_INPUT, "the picture decodes to %d x %d pixels, its header says %d x %d",
            job->out->width_px, job->out->height_px, job->report->width_px, job->report->height_px);
    crop_in_place(job->out, r);
    *out_box = (tg_image_box){0, 0, r.width_px, r.height_px};
    return TG_OK;
}

tg_status tg_image_decode_region(const void *bytes, size_t n, const tg_decode_options *options,
                                 tg_image_rect crop, int target_width_px, int target_height_px,
                                 double reserve, tg_image_scratch *scratch, tg_image *out,
                                 tg_image_box *out_box, tg_decode_report *out_report)
{
    tg_decode_options defaults = tg_decode_options_default();
    tg_decode_report report;
    tg_codec_job job = {.bytes = bytes,
                        .n = n,
                        .options = options ? options : &defaults,
                        .scratch = scratch,
                        .report = out_report ? out_report : &report};
    job.denominator = choose_denominator(crop, target_width_px, target_height_px, reserve);
    TG_TRY(tg_image_probe(bytes, n, job.options, job.report));
    if (!is_inside(crop, job.report->width_px, job.report->height_px))
        return tg_fail(TG_ERROR_USAGE, "crop %d x %d at %d, %d is outside the picture of %d x %d",
                       crop.width_px, crop.height_px, crop.left_px, crop.top_px,
                       job.report->width_px, job.report->height_px);
    int orientation = applied_orientation(job.report);
    int stored_width = job.report->width_px, stored_height = job.report->height_px;
    if (tg_orientation_is_transposed(orientation))
        exchange(&stored_width, &stored_height);
    tg_image_rect stored = tg_rect_to_stored(crop, orientation, stored_width, stored_height);
    TG_TRY(begin(&job));
    job.out = orientation == 1 ? out : &scratch->picture;
    TG_TRY(decode_stored(&job, stored, out_box));
    if (orientation != 1) {
        TG_TRY(tg_image_orient(job.out, orientation, out));
        *out_box = tg_box_to_upright(*out_box, orientation, job.out->width_px, job.out->height_px);
    }
    return end(&job);
}
