#include "train/pictures.h"

#include "base/checked.h"
#include "base/rng.h"

#include <string.h>

enum { DIFFERENT_PICTURES = 32 };

static size_t image_floats(const tg_vit_config *config)
{
    return 3 * config->img_h * config->img_w;
}

/* [B, floats]: the first few by random numbers, the others copies of them. */
static float *make_images(tg_pictures *p, size_t B, size_t floats, uint64_t seed, uint64_t purpose)
{
    const size_t different = B < DIFFERENT_PICTURES ? B : DIFFERENT_PICTURES;
    float *out = tg_arena_alloc(&p->memory, B * floats * sizeof *out);
    tg_rng rng = tg_rng_init(1, seed, purpose, TG_RNG_SYNTH);
    for (size_t i = 0; i < different * floats; i++)
        out[i] = (float)tg_rng_u32(&rng) * 0x1p-30F - 2.0F;
    for (size_t b = different; b < B; b++)
        memcpy(out + b * floats, out + (b % different) * floats, floats * sizeof *out);
    return out;
}

static void make_labels(tg_pictures *p, size_t B, size_t K)
{
    tg_batch *batch = &p->batch;
    batch->target = tg_arena_alloc(&p->memory, B * K * sizeof(float));
    batch->label = tg_arena_alloc(&p->memory, B * sizeof(int32_t));
    batch->sample_index = tg_arena_alloc(&p->memory, B * sizeof(uint64_t));
    for (size_t i = 0; i < B; i++) {
        batch->label[i] = K ? (int32_t)(i % K) : -1;
        batch->sample_index[i] = i;
        if (K)
            batch->target[i * K + i % K] = 1; /* the arena is zeroed */
    }
}

tg_status tg_pictures_open(const tg_vit_config *student, const tg_vit_config *teacher, size_t K,
                           size_t B, uint64_t seed, tg_pictures *out)
{
    tg_pictures p = {.batch = {.count = B}};
    size_t per_image = image_floats(student) + K, bytes;
    if (teacher)
        per_image += image_floats(teacher);
    if (!tg_mul_size(B, per_image * sizeof(float) + sizeof(uint64_t) + sizeof(int32_t), &bytes) ||
        !tg_add_size(bytes, 5 * TG_ALIGN, &bytes))
        return tg_fail(TG_ERROR_USAGE, "a batch of %zu pictures does not fit into memory", B);
    TG_TRY(tg_arena_init(&p.memory, bytes, "pictures"));
    p.batch.image = make_images(&p, B, image_floats(student), seed, 0);
    if (teacher)
        p.batch.teacher_image = make_images(&p, B, image_floats(teacher), seed, 1);
    make_labels(&p, B, K);
    *out = p;
    return TG_OK;
}

void tg_pictures_close(tg_pictures *pictures)
{
    if (!pictures)
        return;
    tg_arena_done(&pictures->memory);
    *pictures = (tg_pictures){0};
}
