#include "support/buffer.h"

#include "base/rng.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, POISON = 0xFF };

static size_t block_bytes(const tg_buffer *buffer)
{
    size_t bytes = buffer->n * tg_dtype_bytes(buffer->dtype) + 2 * GUARD_BYTES;
    return (bytes + 63) / 64 * 64;
}

tg_buffer tg_buffer_new(tg_dtype dtype, size_t n)
{
    tg_buffer buffer = {.dtype = dtype, .n = n};
    unsigned char *block = aligned_alloc(64, block_bytes(&buffer));
    assert_non_null(block);
    memset(block, POISON, block_bytes(&buffer));
    buffer.data = block + GUARD_BYTES;
    return buffer;
}

tg_buffer tg_buffer_copy(const tg_buffer *from)
{
    tg_buffer buffer = tg_buffer_new(from->dtype, from->n);
    memcpy(buffer.data, from->data, from->n * tg_dtype_bytes(from->dtype));
    return buffer;
}

tg_buffer tg_buffer_random(tg_dtype dtype, size_t n, uint64_t seed, double scale)
{
    tg_buffer buffer = tg_buffer_new(dtype, n);
    tg_rng rng = tg_rng_init(seed, 0, 0, TG_RNG_TEST);
    for (size_t i = 0; i < n; i++)
        tg_buffer_set(&buffer, i, (float)(scale * tg_rng_normal(&rng)));
    return buffer;
}

void tg_buffer_free(tg_buffer *buffer)
{
    if (!buffer->data)
        return;
    unsigned char *block = (unsigned char *)buffer->data - GUARD_BYTES;
    size_t used = GUARD_BYTES + buffer->n * tg_dtype_bytes(buffer->dtype);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(block[i], POISON);
    for (size_t i = used; i < block_bytes(buffer); i++)
        assert_int_equal(block[i], POISON);
    free(block);
    buffer->data = NULL;
}

float tg_buffer_get(const tg_buffer *buffer, size_t i)
{
    return buffer->dtype == TG_F32 ? ((const float *)buffer->data)[i]
                                   : tg_f32_from_bf16(((const uint16_t *)buffer->data)[i]);
}

void tg_buffer_set(tg_buffer *buffer, size_t i, float value)
{
    if (buffer->dtype == TG_F32)
        ((float *)buffer->data)[i] = value;
    else
        ((uint16_t *)buffer->data)[i] = tg_bf16_from_f32(value);
}

void tg_assert_near_at(const tg_buffer *got, const tg_buffer *want, double absolute,
                       double relative, const char *what, const char *file, int line)
{
    for (size_t i = 0; i < want->n; i++) {
        double g = tg_buffer_get(got, i), w = tg_buffer_get(want, i);
        double limit = absolute + relative * fabs(w);
        if ((isnan(g) && isnan(w)) || g == w || fabs(g - w) <= limit)
            continue;
        print_error("%s: element %zu of %zu: got %.9g want %.9g, off by %.3g, limit %.3g\n", what,
                    i, want->n, g, w, fabs(g - w), limit);
        _fail(file, line);
    }
}

void tg_assert_same_at(const tg_buffer *got, const tg_buffer *want, const char *what,
                       const char *file, int line)
{
    if (memcmp(got->data, want->data, want->n * tg_dtype_bytes(want->dtype)) != 0) {
        print_error("%s: bits differ\n", what);
        _fail(file, line);
    }
}
