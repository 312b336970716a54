#include "image/image.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 64, SLACK_BYTES = 64 };

/* Vector code may read up to SLACK_BYTES past the last pixel. */
static void *grow(void *data, size_t *capacity_bytes, size_t bytes)
{
    size_t wanted;
    if (data && *capacity_bytes >= bytes)
        return data;
    if (!tg_add_size(bytes, SLACK_BYTES, &wanted) ||
        !tg_round_up_size(wanted, ALIGN_BYTES, &wanted)) {
        (void)tg_fail(TG_ERROR_MACHINE, "image memory of %zu bytes is more than can exist", bytes);
        return NULL;
    }
    void *fresh = aligned_alloc(ALIGN_BYTES, wanted);
    if (!fresh) {
        (void)tg_fail(TG_ERROR_MACHINE, "no memory for %zu bytes of image", bytes);
        return NULL;
    }
    if (*capacity_bytes)
        free(data);
    *capacity_bytes = wanted - SLACK_BYTES;
    return fresh;
}

tg_status tg_image_reserve(tg_image *image, int width_px, int height_px)
{
    size_t bytes;
    if (width_px < 1 || height_px < 1)
        return tg_fail(TG_ERROR_USAGE, "a picture of %d x %d pixels cannot be made", width_px,
                       height_px);
    if (!tg_mul_size((size_t)width_px * 3, (size_t)height_px, &bytes))
        return tg_fail(TG_ERROR_MACHINE, "a picture of %d x %d pixels does not fit in memory",
                       width_px, height_px);
    void *rgb = image->capacity_bytes ? image->rgb : NULL;
    rgb = grow(rgb, &image->capacity_bytes, bytes);
    if (!rgb)
        return TG_ERROR_MACHINE;
    image->rgb = rgb;
    image->width_px = width_px;
    image->height_px = height_px;
    return TG_OK;
}

tg_status tg_image_copy(const tg_image *source, tg_image *out)
{
    TG_TRY(tg_image_reserve(out, source->width_px, source->height_px));
    memcpy(out->rgb, source->rgb, (size_t)source->width_px * 3 * (size_t)source->height_px);
    return TG_OK;
}

void tg_image_done(tg_image *image)
{
    if (!image)
        return;
    if (image->capacity_bytes)
        free(image->rgb);
    *image = (tg_image){0};
}

tg_image tg_image_view(uint8_t *rgb, int width_px, int height_px)
{
    return (tg_image){.rgb = rgb, .width_px = width_px, .height_px = height_px};
}

void *tg_image_block_reserve(tg_image_scratch *scratch, tg_image_block_use use, size_t bytes)
{
    tg_image_block *block = &scratch->block[use];
    void *data = grow(block->data, &block->capacity_bytes, bytes);
    if (data)
        block->data = data;
    return data;
}

void tg_image_scratch_done(tg_image_scratch *scratch)
{
    if (!scratch)
        return;
    for (int i = 0; i < TG_IMAGE_BLOCK_COUNT; i++)
        free(scratch->block[i].data);
    tg_image_done(&scratch->picture);
    *scratch = (tg_image_scratch){0};
}

size_t tg_image_scratch_bytes(const tg_image_scratch *scratch)
{
    size_t sum = scratch->picture.capacity_bytes;
    for (int i = 0; i < TG_IMAGE_BLOCK_COUNT; i++)
        sum += scratch->block[i].capacity_bytes;
    return sum;
}
