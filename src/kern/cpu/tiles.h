/* tiles.h - AMX tiles as the bf16 products use them. Include only from files named *_amx.c.
 *
 * Tiles    0-3 accumulate a block of up to 32 x 32 floats (0 and 1 its upper rows), 4 and 5 hold 16
 *          rows x 32 columns of a, 6 and 7 two tiles of b.
 * b tile   16 words x 16 columns: word w of column n is the pair b[2w][n], b[2w+1][n]. 1 KiB.
 * State    tg_tiles_enter configures the calling thread's tiles, tg_tiles_leave gives them back.
 *          oneDNN configures them inside each of its calls, so nothing has to be restored. */
#ifndef TG_KERN_CPU_TILES_H
#define TG_KERN_CPU_TILES_H
#if defined(__AMX_TILE__) || defined(__AMXTILE__) /* gcc, clang */

#include "kern/cpu/pairs.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_TILE_ELEMENTS = 512 };

/* LDTILECFG's operand */
typedef struct tg_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tg_tile_config;

/* Tiles of `upper` rows for 0, 1, 4 and of `lower` rows for 2, 3, 5; both 1 to 16. */
static inline void tg_tiles_shape(size_t upper, size_t lower)
{
    const uint8_t u = (uint8_t)upper, l = (uint8_t)lower;
    tg_tile_config config = {.palette = 1,
                             .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                             .rows = {u, u, l, l, u, l, 16, 16}};
    /* the intrinsic does not tell the compiler that it reads all 64 bytes */
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

static inline void tg_tiles_enter(void)
{
    tg_tiles_shape(16, 16);
}

static inline void tg_tiles_leave(void)
{
    _tile_release();
}

/* The compiler does not know what the tile intrinsics read and write: call it between plain code and
 * tiles that share memory. */
static inline void tg_tiles_fence(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
#endif
