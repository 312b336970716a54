#include "image/codec.h"

#include "base/checked.h"

#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

/* Pixels with alpha, or a first frame smaller than the canvas: composed on a white canvas. */
static tg_status compose(tg_codec_job *job, const uint8_t *bytes, size_t n, int left, int top,
                         int width, int height)
{
    tg_image *out = job->out;
    size_t row = (size_t)width * 4, total;
    if (!tg_mul_size(row, (size_t)height, &total))
        return tg_fail(TG_ERROR_MACHINE, "WebP does not fit in memory");
    uint8_t *rgba = tg_image_block_reserve(job->scratch, TG_IMAGE_BLOCK_CODEC, total);
    if (!rgba)
        return TG_ERROR_MACHINE;
    if (!WebPDecodeRGBAInto(bytes, n, rgba, total, (int)row))
        return tg_fail(TG_ERROR_INPUT, "broken WebP: the picture data is cut or damaged");
    memset(out->rgb, 255, (size_t)out->width_px * 3 * (size_t)out->height_px);
    for (int y = 0; y < height; y++) {
        size_t at = (size_t)(top + y) * (size_t)out->width_px + (size_t)left;
        tg_codec_compose_on_white(rgba + (size_t)y * row, (size_t)width, out->rgb + at * 3);
    }
    return TG_OK;
}

static tg_status decode_first_frame(tg_codec_job *job)
{
    WebPData data = {job->bytes, job->n};
    WebPIterator frame;
    tg_status status;
    WebPDemuxer *demuxer = WebPDemux(&data);
    if (!demuxer)
        return tg_fail(TG_ERROR_INPUT, "broken WebP: the list of frames is cut or damaged");
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) {
        status = tg_fail(TG_ERROR_INPUT, "broken WebP: an animation without frames");
        goto free_demuxer;
    }
    if (frame.x_offset + frame.width > job->out->width_px ||
        frame.y_offset + frame.height > job->out->height_px)
        status = tg_fail(TG_ERROR_INPUT, "broken WebP: the first frame is outside the canvas");
    else
        status = compose(job, frame.fragment.bytes, frame.fragment.size, frame.x_offset,
                         frame.y_offset, frame.width, frame.height);
    WebPDemuxReleaseIterator(&frame);
free_demuxer:
    WebPDemuxDelete(demuxer);
    return status;
}

tg_status tg_codec_webp(tg_codec_job *job)
{
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(job->bytes, job->n, &features) != VP8_STATUS_OK)
        return tg_fail(TG_ERROR_INPUT, "broken WebP: the header is cut or damaged");
    TG_TRY(tg_codec_set_size(job, (uint64_t)features.width, (uint64_t)features.height));
    job->report->has_alpha = features.has_alpha;
    job->report->channels = features.has_alpha ? 4 : 3;
    if (!job->out)
        return TG_OK;
    TG_TRY(tg_image_reserve(job->out, features.width, features.height));
    if (features.has_animation)
        return decode_first_frame(job);
    if (features.has_alpha)
        return compose(job, job->bytes, job->n, 0, 0, features.width, features.height);
    size_t row = (size_t)features.width * 3;
    if (!WebPDecodeRGBInto(job->bytes, job->n, job->out->rgb, row * (size_t)features.height,
                           (int)row))
        return tg_fail(TG_ERROR_INPUT, "broken WebP: the picture data is cut or damaged");
    return TG_OK;
}
