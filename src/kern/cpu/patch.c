#include "kern/cpu/entries.h"
#include "kern/cpu/parallel.h"
#include "kern/cpu/rows.h"

#include <assert.h>

typedef struct patch_job {
    const tg_rows *rows;
    const tg_patch_shape *shape;
    const float *image;
    void *out_patches;
} patch_job;

static void patch_piece(void *user, size_t begin, size_t end)
{
    const patch_job *j = user;
    j->rows->patch_rows(j->shape, j->image, j->out_patches, begin, end);
}

void tg_cpu_patch_forward(tg_stream *stream, const tg_patch_shape *shape, const float *image,
                          void *out_patches)
{
    assert(shape->S_h % shape->P == 0 && shape->S_w % shape->P == 0);
    patch_job j = {.rows = tg_rows_select(tg_stream_level(stream)),
                   .shape = shape,
                   .image = image,
                   .out_patches = out_patches};
    tg_parallel(stream, shape->B * shape->S_h, shape->P, patch_piece, &j);
}
