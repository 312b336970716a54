/* gradient_amx.h - weight gradients in bf16 on AMX tiles.
 *
 * Formula    c[M,N] = a[R,M]^T b[R,N]; dw (+)= c, or its transposed where `turned`;
 *            a_sums[M] (+)= sum_r a, b_sums[N] (+)= sum_r b
 * Roles      a is packed transposed, which is dear: give it the narrower operand. b is packed as
 *            pairs of rows, or comes as such (kern/cpu/panels.h).
 * Division   c is cut into units so small that a unit's sums stay in the second cache while the rows
 *            pass by in chunks of 256. A thread does whole units.
 * Order      a sum runs over the rows in order whatever the units: bits do not depend on threads.
 *            a_sums and b_sums gather rows by twos into steps of 32, steps in order.
 * Shapes     any R, M, N; with b_pairs N is a multiple of 32.
 */
#ifndef TG_KERN_CPU_GRADIENT_AMX_H
#define TG_KERN_CPU_GRADIENT_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_amx_gradient {
    size_t R, M, N;
    const uint16_t *a, *b; /* row-major; b in pairs with b_pairs */
    bool b_pairs, turned, accumulate;
    float *dw;              /* [M,N], turned [N,M] */
    float *a_sums, *b_sums; /* NULL: not wanted */
    /* filled in by tg_amx_gradient_divide */
    size_t M_unit, N_unit, m_units, n_units;
} tg_amx_gradient;

void tg_amx_gradient_divide(tg_amx_gradient *gradient, size_t threads);
/* Bytes of scratch of one thread (64-byte aligned), and one of the m_units x n_units units. */
size_t tg_amx_gradient_scratch(const tg_amx_gradient *gradient);
void tg_amx_gradient_unit(const tg_amx_gradient *gradient, size_t unit, void *scratch);

#endif
