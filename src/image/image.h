/* image.h - a picture in memory: 8-bit RGB, interleaved, rows without padding; and scratch memory.
 *
 * Ownership  A tg_image owns its pixels and keeps them between uses: a function that writes into
 *            one grows the storage when it is too small and never shrinks it, so a worker that
 *            reuses its images allocates nothing once it has seen its largest photo. Start from a
 *            zeroed struct; tg_image_done frees. tg_image_view makes a read-only view of the
 *            caller's own pixels.
 * Scratch    Tables and rows that the functions of image/ need while they run, and small caches
 *            (filter tables of the last sizes). One per thread; zeroed struct to start,
 *            tg_image_scratch_done to free. Contents mean nothing to the caller.
 * Errors     TG_ERROR_MACHINE when memory cannot be had.
 * Threads    Different images and scratches may be used at the same time; one of them may not be
 *            shared by two threads.
 */
#ifndef TG_IMAGE_IMAGE_H
#define TG_IMAGE_IMAGE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tg_image {
    uint8_t *rgb;            /* [height][width][3] */
    int width_px, height_px; /* 0: no picture */
    size_t capacity_bytes;   /* storage behind rgb; 0: a view, or nothing */
} tg_image;

/* Integer rectangle and real-valued box inside a picture; right and bottom are left + width ... */
typedef struct tg_image_rect {
    int left_px, top_px, width_px, height_px;
} tg_image_rect;
typedef struct tg_image_box {
    double left_px, top_px, right_px, bottom_px;
} tg_image_box;

/* A growable block; see tg_image_block_reserve. */
typedef struct tg_image_block {
    void *data;
    size_t capacity_bytes;
} tg_image_block;

/* What the blocks are for; each is used by one function at a time. */
typedef enum tg_image_block_use {
    TG_IMAGE_BLOCK_CODEC,      /* decoded samples before conversion */
    TG_IMAGE_BLOCK_ROWS,       /* row pointers, single rows */
    TG_IMAGE_BLOCK_PASS,       /* resize: rows after the horizontal pass */
    TG_IMAGE_BLOCK_HORIZONTAL, /* resize: horizontal filter table */
    TG_IMAGE_BLOCK_VERTICAL,   /* resize: vertical filter table */
    TG_IMAGE_BLOCK_COUNT
} tg_image_block_use;

/* Which filter table a block holds, so that equal work is not repeated. */
typedef struct tg_image_table_key {
    float from, to;                            /* source range */
    int source_px, target_px, first_px, count; /* target pixels first .. first + count - 1 */
    int filter;
    int taps; /* weights a pixel; 0: the block holds no table */
} tg_image_table_key;

typedef struct tg_image_scratch {
    tg_image_block block[TG_IMAGE_BLOCK_COUNT];
    tg_image_table_key table[2]; /* of the horizontal and vertical block */
    tg_image picture;            /* before orientation, or before a colour operation */
} tg_image_scratch;

/* Gives `image` a size and storage for it; pixels are undefined. width and height >= 1. */
tg_status tg_image_reserve(tg_image *image, int width_px, int height_px) TG_MUST_CHECK;
/* Same size and pixels as `source`. */
tg_status tg_image_copy(const tg_image *source, tg_image *out) TG_MUST_CHECK;
void tg_image_done(tg_image *image);

/* A view of width x height pixels that stay the caller's. */
tg_image tg_image_view(uint8_t *rgb, int width_px, int height_px);

/* 64-byte aligned storage of at least `bytes`, contents undefined when it grew. NULL: no memory
 * (the error is recorded). */
void *tg_image_block_reserve(tg_image_scratch *scratch, tg_image_block_use use, size_t bytes);
void tg_image_scratch_done(tg_image_scratch *scratch);

/* Bytes held by the scratch now. */
size_t tg_image_scratch_bytes(const tg_image_scratch *scratch);

#endif
