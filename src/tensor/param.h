/* param.h - the parameter table: every trainable tensor of a model, placed in one flat buffer.
 *
 * Parameters are listed in the order in which forward uses them; each starts at a multiple of 16
 * floats (64 bytes). Backward therefore fills the gradient buffer from its tail, and a contiguous
 * range of the tail is final as soon as its layer is done: the unit of reduction between ranks.
 * Padding elements between tensors are zero in every buffer and stay zero.
 *
 * Names are timm's state_dict keys; other naming schemes are maps over this table (ckpt/naming).
 * Memory  the table owns its entries (heap); names are inside the entry.
 */
#ifndef TG_TENSOR_PARAM_H
#define TG_TENSOR_PARAM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define TG_PARAM_MAX_DIMS 4
#define TG_PARAM_NAME_BYTES 64

typedef struct tg_param {
    char name[TG_PARAM_NAME_BYTES];
    int ndim;
    size_t shape[TG_PARAM_MAX_DIMS];
    size_t count;  /* product of shape */
    size_t offset; /* first element in the flat buffer; multiple of 16 */
    int layer;     /* for layer-wise decay: 0 tokens, positions, patch embedding; 1..depth blocks
                      (depth: the final norm too); depth+1 fc_norm and heads (timm's grouping) */
    bool decay;    /* weight decay applies: at least 2-D and not a token or position table */
} tg_param;

typedef struct tg_param_table {
    tg_param *items;
    size_t count;
    size_t capacity;
    size_t elements; /* length of the flat buffer in floats, padding included; multiple of 16 */
} tg_param_table;

/* Appends one tensor. TG_ERROR_INPUT when a size wraps or is 0 or the name is too long,
 * TG_ERROR_MACHINE when memory is short. The table must start zeroed. */
tg_status tg_param_add(tg_param_table *table, const char *name, int ndim, const size_t *shape,
                       int layer, bool decay) TG_MUST_CHECK;
/* Borrowed until the next add; NULL when there is no such name. */
const tg_param *tg_param_find(const tg_param_table *table, const char *name);
/* Sum of `count` over all entries: what papers call "parameters". */
size_t tg_param_total(const tg_param_table *table);
void tg_param_table_done(tg_param_table *table);

#endif
