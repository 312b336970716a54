/* product_amx.h - bf16 matrix products on AMX tiles, for weights packed once and used often.
 *
 * Formula    y[M,N] = a[M,K] b[K,N] (+ bias[N]), sums in fp32, then one finish:
 *            TG_AMX_BF16        out [M,N] bf16 = y
 *            TG_AMX_F32         out [M,N] fp32 = y
 *            TG_AMX_GELU        out = GELU(y); kept (may be NULL) = y in blocks
 *            TG_AMX_GELU_SLOPE  out = y GELU'(h), the same again in pairs_out, GELU(h) in pairs_g
 *            The last two write whole blocks: out has room for M rounded up to 32 rows, which hold
 *            finite values (0 where it is y GELU').
 * Layouts    b: weights, kept and h: blocks, pairs: pairs of kern/cpu/panels.h.
 * Shapes     K and N are multiples of 32 (tg_amx_fits); any M. m0 is a multiple of 32.
 * Why        oneDNN 2.6 reaches a third of what the tile unit can do. Here blocks of 32 x 32 keep it
 *            busy out of the first and second cache, and a block is finished on the vector units
 *            while the next one is multiplied.
 * Threads    one; the caller deals out rows, and tg_amx_enter and tg_amx_leave bracket its share. Bits
 *            of a row do not depend on the rows around it.
 */
#ifndef TG_KERN_CPU_PRODUCT_AMX_H
#define TG_KERN_CPU_PRODUCT_AMX_H

#include "kern/mlp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_amx_finish {
    TG_AMX_BF16,
    TG_AMX_F32,
    TG_AMX_GELU,
    TG_AMX_GELU_SLOPE
} tg_amx_finish;

typedef struct tg_amx_product {
    size_t M, K, N;
    const uint16_t *a; /* [M,K] row-major */
    const uint16_t *b;
    const float *bias; /* [N] or NULL */
    tg_amx_finish finish;
    void *out;
    size_t ldo; /* elements between rows of out */
    bool
        past_caches; /* TG_AMX_BF16: stream out, which is then 64-byte aligned with ldo a multiple of 32 */
    /* the GELU finishes; whole arrays, of which this product is rows [m0, m0 + M) */
    tg_gelu gelu;
    size_t m0;
    uint16_t *kept;
    const uint16_t *h;
    uint16_t *pairs_out, *pairs_g;
} tg_amx_product;

static inline bool tg_amx_fits(size_t K, size_t N)
{
    return K && N && K % 32 == 0 && N % 32 == 0;
}

void tg_amx_enter(void);
void tg_amx_leave(void);
void tg_amx_product_run(const tg_amx_product *product);

#endif
