/* patch.h - images to rows of patches (im2col of a convolution whose stride is its kernel).
 *
 * Formula    patches[b, gy*GW + gx, (c*P + py)*P + px] = image[b, c, gy*P + py, gx*P + px]
 *            so that patches * W^T with W = proj.weight reshaped [C, 3*P*P] is the convolution.
 * Arguments  image fp32 [B,3,S_h,S_w], S_h and S_w multiples of P (GH = S_h/P, GW = S_w/P);
 *            out [B*GH*GW, 3*P*P] in dtype. No gradient: images are leaves.
 */
#ifndef TG_KERN_PATCH_H
#define TG_KERN_PATCH_H

#include "dev/dev.h"
#include "tensor/dtype.h"

#include <stddef.h>

typedef struct tg_patch_shape {
    size_t B, S_h, S_w, P;
    tg_dtype dtype;
} tg_patch_shape;

typedef struct tg_patch_ops {
    void (*forward)(tg_stream *stream, const tg_patch_shape *shape, const float *image,
                    void *out_patches);
} tg_patch_ops;

#endif
