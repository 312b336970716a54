#include "kern/ref/ref.h"

#include "kern/ref/element.h"

void tg_ref_patch_forward(tg_stream *stream, const tg_patch_shape *s, const float *image,
                          void *out_patches)
{
    (void)stream;
    const size_t P = s->P, GW = s->S_w / P, row = 3 * P * P;
    assert(s->S_h % P == 0 && s->S_w % P == 0);
    for (size_t b = 0; b < s->B; b++)
        for (size_t c = 0; c < 3; c++)
            for (size_t y = 0; y < s->S_h; y++)
                for (size_t x = 0; x < s->S_w; x++) {
                    size_t patch = (b * (s->S_h / P) + y / P) * GW + x / P;
                    size_t at = (c * P + y % P) * P + x % P;
                    double value = image[((b * 3 + c) * s->S_h + y) * s->S_w + x];
                    tg_element_store(out_patches, s->dtype, patch * row + at, value);
                }
}
