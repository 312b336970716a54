/* panels.h - where AMX kernels keep activations and weights that only AMX kernels read.
 *
 * Weights  b [K,N] of products: panels of 32 columns, in each its steps of 32 rows:
 *          [N/32][K/32][2 tiles], tiles as in kern/cpu/tiles.h.
 * Blocks   h [R,F], kept by forward for backward: blocks of 32 x 32 row-major elements, one row of
 *          blocks after the other: [R/32][F/32][32][32].
 * Pairs    wide operands [R,N] of weight gradients: chunks of 256 rows, in each the panels of 32
 *          columns, in each its steps of 32 rows: [R/256][N/32][8][2 tiles]; the first tile holds
 *          columns 0-3, 8-11, 16-19, 24-27 of the panel, the second the others.
 * R is padded to whole blocks or chunks; what lies there is finite. A block is 2 KiB on end: 64 bytes
 * in each of 32 pages are three times slower to write or read.
 */
#ifndef TG_KERN_CPU_PANELS_H
#define TG_KERN_CPU_PANELS_H

#include <stddef.h>

enum { TG_PANEL = 32, TG_PANEL_CHUNK = 256 };

/* Elements before the block at row m and column n, both multiples of 32, of N columns. */
static inline size_t tg_block_offset(size_t m, size_t n, size_t N)
{
    return m * N + n * TG_PANEL;
}

static inline size_t tg_pairs_offset(size_t m, size_t n, size_t N)
{
    return (m - m % TG_PANEL_CHUNK) * N + n * TG_PANEL_CHUNK + m % TG_PANEL_CHUNK * TG_PANEL;
}

#endif
