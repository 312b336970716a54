#include "image/codec.h"

#include "base/checked.h"

#include <string.h>

#include <spng.h>

enum { SIGNATURE_BYTES = 8, CHUNK_EXTRA_BYTES = 12 };

/* Feeds the library the chunks that make up the picture and passes over all others, so that text
 * and profile chunks are neither unpacked nor able to spoil the photo. */
typedef struct source {
    const uint8_t *bytes;
    size_t n, at;
    size_t left; /* bytes still to hand out of the current chunk (or of the signature) */
} source;

static bool is_needed(const uint8_t *type)
{
    static const char types[][5] = {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (memcmp(type, types[i], 4) == 0)
            return true;
    return (type[0] & 0x20) == 0; /* an unknown critical chunk: let the library refuse it */
}

static void find_chunk(source *s)
{
    while (s->n - s->at >= 8) {
        const uint8_t *p = s->bytes + s->at;
        uint64_t length = (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
        length += CHUNK_EXTRA_BYTES;
        size_t whole = length < s->n - s->at ? (size_t)length : s->n - s->at;
        if (is_needed(p + 4)) {
            s->left = whole;
            return;
        }
        s->at += whole;
    }
}

static int read_source(spng_ctx *context, void *user, void *target, size_t length)
{
    source *s = user;
    uint8_t *to = target;
    (void)context;
    while (length > 0) {
        if (s->left == 0)
            find_chunk(s);
        size_t part = length < s->left ? length : s->left;
        if (part == 0)
            return SPNG_IO_EOF;
        memcpy(to, s->bytes + s->at, part);
        to += part;
        length -= part;
        s->at += part;
        s->left -= part;
    }
    return 0;
}

static tg_status fail_png(int error)
{
    if (error == SPNG_EMEM)
        return tg_fail(TG_ERROR_MACHINE, "no memory to decode a PNG");
    return tg_fail(TG_ERROR_INPUT, "broken PNG: %s", spng_strerror(error));
}

/* Rows into `pixels` (which starts white) until the end or the first error; rows that arrived. */
static int read_rows(spng_ctx *context, uint8_t *pixels, size_t row_bytes, uint32_t *out_rows)
{
    struct spng_row_info info;
    int error = 0;
    *out_rows = 0;
    while (!error) {
        error = spng_get_row_info(context, &info);
        if (!error)
            error = spng_decode_row(context, pixels + info.row_num * row_bytes, row_bytes);
        if (error == 0 || error == SPNG_EOI)
            ++*out_rows;
    }
    return error;
}

/* Decides about a picture whose rows stopped before the end. */
static tg_status judge_cut(tg_codec_job *job, const struct spng_ihdr *header, int error,
                           uint32_t rows)
{
    double share = 1 - (double)rows / header->height;
    bool cut = error == SPNG_IO_EOF || error == SPNG_EOF;
    if (!cut)
        return fail_png(error);
    if (header->interlace_method)
        share = 1;
    job->report->missing_share = share;
    if (share > TG_IMAGE_MISSING_SHARE)
        return tg_fail(TG_ERROR_INPUT, "broken PNG: %.0f %% of the picture is missing",
                       share * 100);
    tg_codec_warn(job->report, "PNG is cut: %.1f %% of the rows are missing", share * 100);
    return TG_OK;
}

static tg_status decode_pixels(tg_codec_job *job, spng_ctx *context, const struct spng_ihdr *header)
{
    bool alpha = job->report->has_alpha;
    size_t row_bytes = (size_t)header->width * (alpha ? 4 : 3), bytes;
    if (!tg_mul_size(row_bytes, header->height, &bytes))
        return tg_fail(TG_ERROR_MACHINE, "PNG does not fit in memory");
    TG_TRY(tg_image_reserve(job->out, (int)header->width, (int)header->height));
    uint8_t *pixels = job->out->rgb;
    if (alpha)
        pixels = tg_image_block_reserve(job->scratch, TG_IMAGE_BLOCK_CODEC, bytes);
    if (!pixels)
        return TG_ERROR_MACHINE;
    memset(pixels, 255, bytes);
    int error = spng_decode_image(context, NULL, 0, alpha ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8,
                                  SPNG_DECODE_PROGRESSIVE | (alpha ? SPNG_DECODE_TRNS : 0));
    if (error)
        return fail_png(error);
    uint32_t rows;
    error = read_rows(context, pixels, row_bytes, &rows);
    if (error != SPNG_EOI)
        TG_TRY(judge_cut(job, header, error, rows));
    else if ((error = spng_decode_chunks(context)) != 0) {
        if (error != SPNG_IO_EOF && error != SPNG_EOF)
            return fail_png(error);
        tg_codec_warn(job->report, "PNG has no end marker");
    }
    if (alpha)
        tg_codec_compose_on_white(pixels, (size_t)header->width * header->height, job->out->rgb);
    return TG_OK;
}

static tg_status decode(tg_codec_job *job, spng_ctx *context, source *from)
{
    static const int channels[] = {1, 0, 3, 3, 2, 0, 4};
    struct spng_ihdr header;
    struct spng_trns transparency;
    int error = spng_set_png_stream(context, read_source, from);
    if (!error)
        error = spng_get_ihdr(context, &header);
    if (error)
        return fail_png(error);
    TG_TRY(tg_codec_set_size(job, header.width, header.height));
    error = spng_get_trns(context, &transparency);
    if (error && error != SPNG_ECHUNKAVAIL)
        return fail_png(error);
    bool alpha = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                 header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    job->report->has_alpha = alpha || error == 0;
    job->report->channels = channels[header.color_type];
    return job->out ? decode_pixels(job, context, &header) : TG_OK;
}

tg_status tg_codec_png(tg_codec_job *job)
{
    source from = {.bytes = job->bytes, .n = job->n, .left = SIGNATURE_BYTES};
    spng_ctx *context = spng_ctx_new(0);
    if (!context)
        return tg_fail(TG_ERROR_MACHINE, "no memory to decode a PNG");
    tg_status status = decode(job, context, &from);
    spng_ctx_free(context);
    return status;
}
