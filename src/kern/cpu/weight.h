/* weight.h - a linear layer's weight as the CPU multiplies with it: panels of kern/cpu/panels.h where AMX
 * tiles multiply, copies in oneDNN's layouts elsewhere. */
#ifndef TG_KERN_CPU_WEIGHT_H
#define TG_KERN_CPU_WEIGHT_H

#include "kern/cpu/product.h"
#include "kern/linear.h"

struct tg_weight {
    size_t out_features, in_features;
    tg_dtype compute;
    bool ready;
    bool panels; /* forward and backward are panels, and nothing of oneDNN's below is there */
    dnnl_memory_desc_t forward_layout;  /* W^T [in,out] */
    dnnl_memory_desc_t backward_layout; /* W [out,in]; only when trainable */
    void *forward, *backward;           /* prepared bytes; backward NULL when frozen */
    dnnl_primitive_t forward_reorder, backward_reorder; /* from fp32 [out,in] */
    dnnl_memory_t source, forward_memory, backward_memory;
};

/* Rows handled as one piece: `rows` each, the last piece may be shorter. Pieces are whole tiles
 * wherever the rows are divided, share the work evenly to about 2 % between threads where R allows, and
 * are small enough that a piece and its results stay in a core's cache. */
typedef struct tg_row_pieces {
    size_t R, rows, count;
} tg_row_pieces;

tg_row_pieces tg_row_pieces_for(const tg_stream *stream, size_t R);
static inline size_t tg_row_piece_rows(const tg_row_pieces *pieces, size_t i)
{
    size_t first = i * pieces->rows;
    return first + pieces->rows <= pieces->R ? pieces->rows : pieces->R - first;
}

/* A product for full pieces and one for the shorter last piece (NULL when there is none). */
typedef struct tg_piece_products {
    tg_product *full, *last;
} tg_piece_products;

tg_status tg_piece_products_get(tg_stream *stream, const tg_row_pieces *pieces,
                                tg_product_shape shape, tg_piece_products *out) TG_MUST_CHECK;
static inline tg_product *tg_piece_product(const tg_piece_products *products,
                                           const tg_row_pieces *pieces, size_t i)
{
    return tg_row_piece_rows(pieces, i) == pieces->rows ? products->full : products->last;
}

/* dw [out,in] (+)= dy^T x and dbias (+)= column sums of dy, over all R rows. */
tg_status tg_weight_gradient(tg_stream *stream, size_t R, size_t out_features, size_t in_features,
                             tg_dtype dtype, const void *x, const void *dy, float *dw, float *dbias,
                             bool accumulate) TG_MUST_CHECK;

#endif
