#include "image/write_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

typedef struct encoder {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    unsigned char *bytes;
    unsigned long size;
    char message[JMSG_LENGTH_MAX];
} encoder;

static void on_error(j_common_ptr info)
{
    encoder *e = info->client_data;
    info->err->format_message(info, e->message);
    longjmp(e->jump, 1);
}

static void on_output(j_common_ptr info)
{
    (void)info;
}

static void encode(encoder *e, const tg_image *image, int quality, tg_jpeg_sampling sampling)
{
    e->info.err = jpeg_std_error(&e->errors);
    e->errors.error_exit = on_error;
    e->errors.output_message = on_output;
    e->info.client_data = e;
    jpeg_create_compress(&e->info);
    jpeg_mem_dest(&e->info, &e->bytes, &e->size);
    e->info.image_width = (JDIMENSION)image->width_px;
    e->info.image_height = (JDIMENSION)image->height_px;
    e->info.input_components = 3;
    e->info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&e->info);
    jpeg_set_quality(&e->info, quality, TRUE);
    e->info.dct_method = JDCT_ISLOW;
    e->info.comp_info[0].h_samp_factor = sampling == TG_JPEG_444 ? 1 : 2;
    e->info.comp_info[0].v_samp_factor = sampling == TG_JPEG_420 ? 2 : 1;
    jpeg_start_compress(&e->info, TRUE);
    for (int y = 0; y < image->height_px; y++) {
        JSAMPROW row = image->rgb + (size_t)y * (size_t)image->width_px * 3;
        jpeg_write_scanlines(&e->info, &row, 1);
    }
    jpeg_finish_compress(&e->info);
}

tg_status tg_image_write_jpeg(const tg_image *image, int quality, tg_jpeg_sampling sampling,
                              uint8_t **out_bytes, size_t *out_size)
{
    encoder e = {.bytes = NULL};
    if (image->width_px < 1 || image->height_px < 1 || image->width_px > 65500 ||
        image->height_px > 65500 || quality < 1 || quality > 100)
        return tg_fail(TG_ERROR_USAGE, "a JPEG of %d x %d pixels, quality %d cannot be written",
                       image->width_px, image->height_px, quality);
    if (setjmp(e.jump)) {
        jpeg_destroy_compress(&e.info);
        free(e.bytes);
        return tg_fail(TG_ERROR_MACHINE, "cannot write a JPEG: %s", e.message);
    }
    encode(&e, image, quality, sampling);
    jpeg_destroy_compress(&e.info);
    *out_bytes = e.bytes;
    *out_size = e.size;
    return TG_OK;
}
