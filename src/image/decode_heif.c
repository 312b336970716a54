#include "image/codec.h"

#include <string.h>

#include <libheif/heif.h>

static tg_status fail_heif(struct heif_error error)
{
    if (error.code == heif_error_Memory_allocation_error &&
        error.subcode != heif_suberror_Security_limit_exceeded)
        return tg_fail(TG_ERROR_MACHINE, "no memory to decode a HEIF (%s)", error.message);
    if (error.code == heif_error_Unsupported_filetype ||
        error.code == heif_error_Unsupported_feature ||
        error.code == heif_error_Decoder_plugin_error)
        return tg_fail(TG_ERROR_INPUT, "HEIF of a kind that libheif here cannot read: %s",
                       error.message);
    return tg_fail(TG_ERROR_INPUT, "broken HEIF: %s", error.message);
}

/* Copies or composes the decoded rows; the picture may differ in size from what the handle said. */
static tg_status take_pixels(tg_codec_job *job, const struct heif_image *image, bool alpha)
{
    int stride, width = heif_image_get_primary_width(image);
    int height = heif_image_get_primary_height(image);
    const uint8_t *rows = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
    if (!rows)
        return tg_fail(TG_ERROR_INPUT, "broken HEIF: no pixels");
    TG_TRY(tg_codec_set_size(job, (uint64_t)width, (uint64_t)height));
    TG_TRY(tg_image_reserve(job->out, width, height));
    for (int y = 0; y < height; y++, rows += stride) {
        uint8_t *to = job->out->rgb + (size_t)y * (size_t)width * 3;
        if (alpha)
            tg_codec_compose_on_white(rows, (size_t)width, to);
        else
            memcpy(to, rows, (size_t)width * 3);
    }
    return TG_OK;
}

/* Tiles may be larger than the picture, and nothing says so before they are decoded. */
enum { TILE_SIDE_PX = 4096 };

/* A grid has a size of its own, which libheif takes memory for whatever the picture's header says. */
static void limit_sides(struct heif_context *context, const struct heif_image_handle *handle)
{
    int width = heif_image_handle_get_width(handle), height = heif_image_handle_get_height(handle);
    int side = width > height ? width : height;
    heif_context_set_maximum_image_size_limit(context, side > TILE_SIDE_PX ? side : TILE_SIDE_PX);
}

static tg_status decode_pixels(tg_codec_job *job, const struct heif_image_handle *handle)
{
    bool alpha = job->report->has_alpha;
    struct heif_image *image = NULL;
    tg_status status;
    struct heif_decoding_options *options = heif_decoding_options_alloc();
    if (!options)
        return tg_fail(TG_ERROR_MACHINE, "no memory to decode a HEIF");
    options->convert_hdr_to_8bit = 1;
    /* For AV1 pictures, where it is installed: dav1d prints its errors. HEVC is not affected. */
    options->decoder_id = "aom";
    struct heif_error error = heif_decode_image(
        handle, &image, heif_colorspace_RGB,
        alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options);
    heif_decoding_options_free(options);
    if (error.code != heif_error_Ok)
        return fail_heif(error);
    status = take_pixels(job, image, alpha);
    heif_image_release(image);
    return status;
}

static tg_status decode(tg_codec_job *job, struct heif_context *context)
{
    struct heif_image_handle *handle = NULL;
    heif_context_set_max_decoding_threads(context, 0);
    struct heif_error error =
        heif_context_read_from_memory_without_copy(context, job->bytes, job->n, NULL);
    if (error.code == heif_error_Ok)
        error = heif_context_get_primary_image_handle(context, &handle);
    if (error.code != heif_error_Ok)
        return fail_heif(error);
    tg_status status = tg_codec_set_size(job, (uint64_t)heif_image_handle_get_width(handle),
                                         (uint64_t)heif_image_handle_get_height(handle));
    job->report->has_alpha = heif_image_handle_has_alpha_channel(handle);
    job->report->channels = job->report->has_alpha ? 4 : 3;
    limit_sides(context, handle);
    if (status == TG_OK && job->out)
        status = decode_pixels(job, handle);
    heif_image_handle_release(handle);
    return status;
}

tg_status tg_codec_heif(tg_codec_job *job)
{
    struct heif_context *context = heif_context_alloc();
    if (!context)
        return tg_fail(TG_ERROR_MACHINE, "no memory to decode a HEIF");
    tg_status status = decode(job, context);
    heif_context_free(context);
    return status;
}
