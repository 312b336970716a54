#include "image/codec.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

enum {
    MAX_SCANS = 100, /* real files have about 10; each scan is a pass over all coefficients */
    BAND_ROWS = 16,
    MARGIN_PX = 16, /* kept beside a crop so that chroma interpolation sees its neighbours */
};

/* Everything lives here and nothing in locals, so that longjmp loses nothing. */
typedef struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    tg_codec_job *job;
    bool source_ended, data_ended;  /* the bytes ran out; a scan had too few bits */
    unsigned ended_row, total_rows; /* bands of blocks: where data_ended came, and all */
    bool ended_in_refinement, lacks_first_scans;
    int error_code;
    char message[JMSG_LENGTH_MAX];
} decoder;

static void on_error(j_common_ptr info)
{
    decoder *d = info->client_data;
    d->error_code = info->err->msg_code;
    info->err->format_message(info, d->message);
    longjmp(d->jump, 1);
}

static void note_end_of_data(decoder *d)
{
    if (d->data_ended)
        return;
    d->data_ended = true;
    d->ended_row = d->info.input_iMCU_row;
    d->ended_in_refinement = d->info.progressive_mode && d->info.Ah > 0;
}

static void on_message(j_common_ptr info, int level)
{
    decoder *d = info->client_data;
    int code = info->err->msg_code;
    char text[JMSG_LENGTH_MAX];
    if (level >= 0)
        return;
    if (code == JWRN_JPEG_EOF)
        d->source_ended = true;
    /* With restart markers a lack of bits ends at the next marker, unless the bytes ran out. */
    bool lacks_bits = code == JWRN_HIT_MARKER && (d->info.restart_interval == 0 || d->source_ended);
    if (lacks_bits || (code == JWRN_JPEG_EOF && d->info.arith_code))
        note_end_of_data(d);
    info->err->format_message(info, text);
    tg_codec_warn(d->job->report, "%s", text);
}

static void on_output(j_common_ptr info)
{
    (void)info;
}

static void on_progress(j_common_ptr info)
{
    decoder *d = info->client_data;
    if (d->info.input_scan_number > MAX_SCANS) {
        d->error_code = 0;
        snprintf(d->message, sizeof d->message, "more than %d scans", MAX_SCANS);
        longjmp(d->jump, 1);
    }
}

static void set_up(decoder *d)
{
    d->info.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    d->errors.output_message = on_output;
    d->info.client_data = d;
    jpeg_create_decompress(&d->info);
    d->progress.progress_monitor = on_progress;
    d->info.progress = &d->progress;
    jpeg_mem_src(&d->info, d->job->bytes, (unsigned long)d->job->n);
}

static tg_status read_header(decoder *d)
{
    set_up(d);
    jpeg_read_header(&d->info, TRUE);
    TG_TRY(tg_codec_set_size(d->job, d->info.image_width, d->info.image_height));
    int channels = d->info.num_components;
    d->job->report->channels = channels;
    if (channels != 1 && channels != 3 && channels != 4)
        return tg_fail(TG_ERROR_INPUT, "JPEG with %d channels: 1, 3 and 4 can be read", channels);
    d->info.out_color_space = channels == 4 ? JCS_CMYK : JCS_RGB;
    d->info.dct_method = JDCT_ISLOW;
    d->info.scale_num = 8 / (unsigned)d->job->denominator;
    d->info.scale_denom = 8;
    d->job->report->scale_denominator = d->job->denominator;
    return TG_OK;
}

/* Inverted inks, as Adobe stores them: R = K' - (255 - C') K' / 255, rounded as Pillow does. */
static void convert_four_inks(const uint8_t *cmyk, size_t n, uint8_t *rgb)
{
    for (size_t i = 0; i < n; i++, cmyk += 4, rgb += 3)
        for (int c = 0; c < 3; c++) {
            unsigned k = cmyk[3], product = (255u - cmyk[c]) * k + 128;
            rgb[c] = (uint8_t)(k - (((product >> 8) + product) >> 8));
        }
}

/* The wanted rectangle in pixels of the reduced picture, smallest that covers the crop. */
static tg_image_rect reduced_rect(const decoder *d)
{
    tg_image_rect c = d->job->crop;
    int n = d->job->denominator;
    if (c.width_px == 0)
        return (tg_image_rect){0, 0, (int)d->info.output_width, (int)d->info.output_height};
    int left = c.left_px / n, top = c.top_px / n;
    int right = (c.left_px + c.width_px + n - 1) / n, bottom = (c.top_px + c.height_px + n - 1) / n;
    return (tg_image_rect){left, top, right - left, bottom - top};
}

/* Tells the library which columns and rows matter; returns the column its rows start with. */
static int narrow(decoder *d, tg_image_rect r)
{
    JDIMENSION width = d->info.output_width;
    JDIMENSION first = r.left_px > MARGIN_PX ? (JDIMENSION)(r.left_px - MARGIN_PX) : 0;
    JDIMENSION last = (JDIMENSION)(r.left_px + r.width_px + MARGIN_PX);
    JDIMENSION count = (last < width ? last : width) - first;
    if (count < width)
        jpeg_crop_scanline(&d->info, &first, &count);
    if (r.top_px > 0)
        jpeg_skip_scanlines(&d->info, (JDIMENSION)r.top_px);
    return (int)first;
}

/* Takes the wanted pixels of decoded rows, `row_bytes` apart, to the picture. */
static void keep_rows(const decoder *d, const uint8_t *rows, size_t row_bytes, int count, int width,
                      uint8_t *to)
{
    size_t kept = (size_t)width * 3;
    for (int y = 0; y < count; y++, rows += row_bytes, to += kept) {
        if (d->info.output_components == 4)
            convert_four_inks(rows, (size_t)width, to);
        else
            memcpy(to, rows, kept);
    }
}

/* Up to BAND_ROWS rows from the library; how many came. */
static int read_band(decoder *d, uint8_t *rows, size_t row_bytes, int wanted)
{
    JSAMPROW row[BAND_ROWS];
    int count = 0;
    for (int i = 0; i < BAND_ROWS; i++)
        row[i] = rows + (size_t)i * row_bytes;
    if (wanted > BAND_ROWS)
        wanted = BAND_ROWS;
    while (count < wanted)
        count += (int)jpeg_read_scanlines(&d->info, row + count, (JDIMENSION)(wanted - count));
    return count;
}

/* Whole rows go straight to the picture; cut ones through a band, whose rows have left the store
 * buffer of the processor before they are read again. */
static tg_status read_rows(decoder *d)
{
    tg_image_rect r = reduced_rect(d);
    int skipped = narrow(d, r), channels = d->info.output_components;
    size_t row_bytes = (size_t)d->info.output_width * (size_t)channels;
    size_t kept = (size_t)r.width_px * 3;
    bool direct = channels == 3 && (int)d->info.output_width == r.width_px;
    uint8_t *band =
        tg_image_block_reserve(d->job->scratch, TG_IMAGE_BLOCK_ROWS, row_bytes * BAND_ROWS);
    if (!band)
        return TG_ERROR_MACHINE;
    TG_TRY(tg_image_reserve(d->job->out, r.width_px, r.height_px));
    uint8_t *to = d->job->out->rgb;
    for (int y = 0; y < r.height_px;) {
        uint8_t *rows = direct ? to : band;
        int count = read_band(d, rows, row_bytes, r.height_px - y);
        if (!direct)
            keep_rows(d, band + (size_t)(r.left_px - skipped) * (size_t)channels, row_bytes, count,
                      r.width_px, to);
        to += kept * (size_t)count;
        y += count;
    }
    return TG_OK;
}

/* Whether a progressive file stopped before every luminance coefficient was sent once; later scans
 * only refine. Asked right after the library has read all scans, while it still knows. */
static bool lacks_first_scans(const decoder *d)
{
    if (!d->source_ended || !d->info.progressive_mode)
        return false;
    for (int k = 0; k < DCTSIZE2; k++)
        if (d->info.coef_bits[0][k] < 0)
            return true;
    return false;
}

/* Share of the picture that never arrived. */
static double missing_share(const decoder *d)
{
    const struct jpeg_decompress_struct *info = &d->info;
    if (d->lacks_first_scans)
        return 1;
    if (!d->data_ended || d->ended_in_refinement)
        return 0;
    bool one_by_one = info->comps_in_scan == 1 && info->num_components > 1;
    if (!info->progressive_mode && one_by_one && info->input_scan_number < info->num_components)
        return 1;
    return (double)(d->total_rows - d->ended_row) / d->total_rows;
}

static tg_status judge(decoder *d)
{
    double share = missing_share(d);
    d->job->report->missing_share = share;
    if (share > TG_IMAGE_MISSING_SHARE)
        return tg_fail(TG_ERROR_INPUT, "broken JPEG: %.0f %% of the picture is missing (%s)",
                       share * 100, d->job->report->warning);
    return TG_OK;
}

static tg_status decode(decoder *d)
{
    TG_TRY(read_header(d));
    if (!d->job->out)
        return TG_OK;
    jpeg_start_decompress(&d->info);
    d->total_rows = d->info.total_iMCU_rows;
    d->lacks_first_scans = lacks_first_scans(d);
    TG_TRY(read_rows(d));
    if (d->job->crop.width_px == 0)
        jpeg_finish_decompress(&d->info);
    return judge(d);
}

tg_status tg_codec_jpeg(tg_codec_job *job)
{
    decoder d = {.job = job};
    tg_status status;
    if (setjmp(d.jump) == 0)
        status = decode(&d);
    else if (d.error_code == JERR_OUT_OF_MEMORY)
        status = tg_fail(TG_ERROR_MACHINE, "no memory to decode a JPEG");
    else
        status = tg_fail(TG_ERROR_INPUT, "broken JPEG: %s", d.message);
    jpeg_destroy_decompress(&d.info);
    return status;
}
