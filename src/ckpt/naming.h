/* naming.h - tensor names of other schemes, as maps over the parameter table (which has timm's).
 *
 * Hugging Face keeps query, key and value apart, so one entry of the table may be several tensors
 * of a file, one below the other. Which of their architectures computes the same function follows
 * from the shape of the network:
 *
 *   VIT          neither LayerScale nor a second token
 *   DEIT         a distillation token, with two heads ("...WithTeacher"); or, read from a file with
 *                one head, the same token as a register with a position
 *   DINOV2(_REG) LayerScale, without or with registers. Their classifier reads the class token and
 *                the mean of the patches [K,2C]; ours is written with zeros in the second half.
 *
 * Sources    transformers' modeling_vit, _deit, _dinov2, _dinov2_with_registers; timm's
 *            vision_transformer.checkpoint_filter_fn.
 * Memory     as said. Reentrant.
 */
#ifndef TG_CKPT_NAMING_H
#define TG_CKPT_NAMING_H

#include "ckpt/model_folder.h"

typedef enum tg_hf_kind {
    TG_HF_VIT,
    TG_HF_DEIT,
    TG_HF_DINOV2,
    TG_HF_DINOV2_REG,
    TG_HF_NONE /* they have no architecture that computes this network */
} tg_hf_kind;

#define TG_NAMING_BYTES 128
#define TG_NAMING_PIECES 3

tg_hf_kind tg_naming_hf_kind(const tg_vit_config *config);
/* "vit", ...: model_type, and the prefix of the backbone's tensors in a classifier. */
const char *tg_naming_hf_type(tg_hf_kind kind);
/* Rows of their position table before the patches. */
size_t tg_naming_hf_prefix_rows(tg_hf_kind kind);

/* Their names, without the backbone's prefix, of an entry of the table: 1 or 3 pieces, 0 when the
 * entry has no counterpart. */
size_t tg_naming_hf(tg_hf_kind kind, const tg_vit_config *config, const char *param,
                    char out[TG_NAMING_PIECES][TG_NAMING_BYTES]);
/* Heads stay outside the backbone's prefix. */
bool tg_naming_is_head(const char *param);

/* A file's name without wrappers' prefixes (module., _orig_mod., model., backbone., encoder.; for
 * TG_NAMING_HF also vit. and the like) and with older spellings made timm's (gamma_1, blocks of
 * DINOv2's chunks, register_tokens). From malloc; NULL when memory is short. */
char *tg_naming_canonical(const char *file_name, tg_naming naming);
/* Tensors of a file that no network of ours has and none needs: pre_logits, pooler, mask token,
 * MAE's decoder. `canonical` as above. */
bool tg_naming_is_ignored(const char *canonical);

#endif
